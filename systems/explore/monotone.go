package explore

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/recipes"
)

// amounts lists clusters, bandwidths, cores and memory sizes, which slow nothing by growing. rest is the spec without.
func amounts(s *hardware.Spec) (list []float64, rest *hardware.Spec) {
	rest = s.Clone()
	list, rest.Name, rest.Description, rest.Clusters = []float64{float64(s.Clusters)}, "", "", 0
	rates := []*float64{&rest.DDR.BandwidthBytesPerSecond, &rest.CoreLink.BandwidthBytesPerSecond,
		&rest.DDRLink.BandwidthBytesPerSecond}
	for i := range rest.CoreTypes {
		list, rest.CoreTypes[i].Count = append(list, float64(s.CoreTypes[i].Count)), 0
	}
	for _, m := range []*hardware.Memory{rest.L1, rest.LLB} {
		if m != nil {
			list, rates, m.SizeBytes = append(list, float64(m.SizeBytes)), append(rates, &m.BandwidthBytesPerSecond), 0
		}
	}
	for _, x := range rates {
		list, *x = append(list, cmp.Or(*x, math.Inf(1))), 0 // a link's 0 limits nothing
	}
	return list, rest
}

// NotMonotone names the worst pair of points where more clusters, cores, bandwidth or memory, or fewer images, with
// all else equal, make the same variant take more than half a percent longer. "": there is none.
func (p *Plan) NotMonotone(list []Explored) string {
	have, rests, points := make([][]float64, len(list)), make([]*hardware.Spec, len(list)), make([]*point, len(list))
	for i := range list {
		at := slices.IndexFunc(p.points, func(pt point) bool { return slices.Equal(pt.at, list[i].at) })
		if list[i].Row != nil && at >= 0 {
			points[i] = &p.points[at]
			have[i], rests[i] = amounts(points[i].spec)
		}
	}
	worst, text := 1.005, ""
	for i, a := range list {
		for k, b := range list {
			if points[i] == nil || points[k] == nil || b.Row.LatencySeconds <= worst*a.Row.LatencySeconds {
				continue
			}
			small, large := points[i], points[k]
			moved, same := []string(nil), small.batch >= large.batch
			for n, axis := range p.Axes {
				machine := axis.Key == "hardware" || axis.Key == "batch" || strings.HasPrefix(axis.Key, hardwareField)
				if same = same && (machine || a.Values[n] == b.Values[n]); a.Values[n] != b.Values[n] {
					moved = append(moved, fmt.Sprintf("%s=%s in place of %s", axis.Key, b.Values[n], a.Values[n]))
				}
			}
			for n, x := range have[i] {
				same = same && n < len(have[k]) && x <= have[k][n]
			}
			if same && reflect.DeepEqual(rests[i], rests[k]) { // they differ in nothing else
				worst = b.Row.LatencySeconds / a.Row.LatencySeconds
				why := "Its greedy decisions change with machine and batch"
				if large.v.Name != recipes.Default {
					why += "; variant " + recipes.Default + " also tries less of the machine"
				}
				if small.spec.NeedsRaise() && !large.spec.NeedsRaise() {
					why = "A cluster of one core has the LLB as its L1: moves between the two are not seen"
				}
				text = fmt.Sprintf("%s is not monotone: with %s it takes %.1f %% longer. %s", large.v.Name,
					strings.Join(moved, ", "), 100*(worst-1), why)
			}
		}
	}
	return text
}
