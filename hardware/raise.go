package hardware

import (
	"fmt"
	"maps"
	"strings"
)

// Raise gives the same machine one level up: the clusters become the cores of a single cluster, and the LLB takes the
// role of their L1. This is how a network is scheduled across clusters (GraphTurbo paper, §3.6), and the way to use a
// machine on which the L1 can't hold what the matrix units work on.
//
// The units of a cluster's cores become one unit each of the raised core, as wide as all together: a matrix unit passes
// as many times more rows of its operand per cycle, and all its arrays get the same weights; a vector unit has as many
// times more lanes. What happens between LLB and L1 within a cluster is no longer seen: neither its time nor its energy
// nor the size of the L1. Clusters exchange data through the DDR, over the link that they have to it.
func Raise(s *Spec) (*Spec, error) {
	if s.LLB == nil {
		return nil, fmt.Errorf("accelerator %q has no LLB that could take the role of the L1", s.Name)
	}
	if s.Mixed() {
		return nil, fmt.Errorf("accelerator %q has cores of several kinds, expected one for the LLB in the role of the L1",
			s.Name)
	}
	r := *s
	r.Name = s.Name + "-gb"
	r.Clusters = 1
	gb := *s.LLB
	r.L1, r.L1WeightBytes, r.LLB = &gb, 0, nil
	core := CoreType{Name: "cluster", Count: s.Clusters, HasL1: true}
	named := map[string]bool{}
	for _, t := range s.CoreTypes {
		// Cores of several types may have units of one name.
		rename := map[string]string{}
		for _, u := range t.Units {
			rename[u.Name] = u.Name
			if named[u.Name] {
				rename[u.Name] = t.Name + "." + u.Name
			}
		}
		for _, u := range t.Units {
			u.Name = rename[u.Name]
			named[u.Name] = true
			if u.SharesWith != "" {
				u.SharesWith = rename[u.SharesWith]
			}
			if u.Kind == Matrix {
				rate := make(map[string]float64, len(u.Rate))
				for dtype, x := range u.Rate {
					rate[dtype] = x * float64(t.Count)
				}
				u.Rate = rate
			} else {
				u.Lanes *= t.Count
			}
			core.Units = append(core.Units, u)
		}
	}
	r.CoreTypes = []CoreType{core}
	// The way to the LLB of a cluster is now the way to the core.
	r.CoreLink = Link{BandwidthBytesPerSecond: s.DDRLink.BandwidthBytesPerSecond, LatencySeconds: s.DDRLink.LatencySeconds}
	way := "ddr_link."
	if r.CoreLink.BandwidthBytesPerSecond == 0 {
		r.CoreLink.BandwidthBytesPerSecond, way = s.DDR.BandwidthBytesPerSecond, "ddr."
	}
	r.fast = maps.Clone(s.fast)
	maps.DeleteFunc(r.fast, func(key string, _ float64) bool {
		at, _, _ := strings.Cut(key, ".")
		return at == "lb" || at == "gb" || at == "core_link" || at == "ddr_link"
	})
	for to, from := range map[string]string{"lb.size": "gb.size", "lb.bandwidth": "gb.bandwidth", "lb.latency": "gb.latency",
		"core_link.bandwidth": way + "bandwidth", "core_link.latency": "ddr_link.latency"} {
		if factor, ok := s.fast[from]; ok {
			r.fast[to] = factor
		}
	}
	r.DDRLink, r.Network = Link{InFlight: s.DDRLink.InFlight}, nil
	if s.Energy != nil {
		e := *s.Energy
		e.L1, e.LLB = e.LLB, 0
		r.Energy = &e
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("accelerator %q, with the LLB in the role of the L1: %w", s.Name, err)
	}
	return &r, nil
}

// NeedsRaise reports whether decisions are better made for the raised machine: there is an LLB, and no core has an L1,
// those with a matrix unit have none, or each cluster has a single core, so that L1 and LLB are one core's alike.
func (s *Spec) NeedsRaise() bool {
	if s.LLB == nil {
		return false
	}
	matrix, matrixWithL1, withL1 := false, false, false
	for _, t := range s.CoreTypes {
		_, ok := t.UnitOf(Matrix)
		matrix = matrix || ok
		matrixWithL1 = matrixWithL1 || ok && t.HasL1
		withL1 = withL1 || t.HasL1
	}
	return !withL1 || matrix && !matrixWithL1 || s.Cores() == 1
}
