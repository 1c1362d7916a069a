package hardware

import (
	"cmp"
	"fmt"
	"slices"
)

// The classes of operators that [CoreType.Runs] may have; views are no work.
var operatorClasses = []string{"matrix", "reduction", "element-wise", "injective"}

// maxKinds is the number of kinds of core that a machine has at most.
const maxKinds = 16

// Mixed reports whether the cores are of several kinds, each a core type, of which a layer runs on one.
func (s *Spec) Mixed() bool { return len(s.CoreTypes) > 0 && len(s.CoreTypes[0].Runs) > 0 }

// Kinds lists the kinds of core: of a mixed machine the core types, the fastest together first, of equal ones by
// name, whatever the order in the description; else a single one, of all types.
func (s *Spec) Kinds() [][]CoreType {
	if !s.Mixed() {
		return [][]CoreType{s.CoreTypes}
	}
	var list [][]CoreType
	for i := range s.CoreTypes {
		list = append(list, s.CoreTypes[i:i+1])
	}
	slices.SortFunc(list, func(a, b []CoreType) int {
		return cmp.Or(cmp.Compare(b[0].peak(s), a[0].peak(s)), cmp.Compare(a[0].Name, b[0].Name))
	})
	return list
}

// peak is the multiply-accumulates in a cycle of the chip that the cores of a type do together in the type that they
// are fastest in: those of matrix units come before those of others.
func (t CoreType) peak(s *Spec) float64 {
	most := 0.0
	for _, u := range t.Units {
		for _, dtype := range dtypes {
			p := u.MACsPerCycle(dtype) / u.ClockRatio(s)
			if u.Kind != Matrix {
				p /= 1 << 40
			}
			most = max(most, p)
		}
	}
	return most * float64(t.Count)
}

// Together are the core types that run a layer together: all, or of a mixed machine the first of [Spec.Kinds].
func (s *Spec) Together() []CoreType {
	if !s.Mixed() {
		return s.CoreTypes
	}
	return s.Kinds()[0]
}

// FirstCore is the number of a kind's first core: cores are numbered kind by kind.
func (s *Spec) FirstCore(k int) int {
	n := 0
	for _, types := range s.Kinds()[:k] {
		for _, t := range types {
			n += t.Count
		}
	}
	return n
}

// Apart is a mixed machine with a cluster for each kind of core in place of each cluster with all of them: those of one
// follow each other in the order of [Spec.Kinds]. Each has queues of its own beside its L1s and links, and an equal
// part of the LLB's room; the LLB's bandwidth and the way to the DDR stay those of all of them together ([Spec.Sides]).
//
// Its clusters are still described as having cores of all kinds: a schedule runs on each the layers of its kind alone.
func (s *Spec) Apart() (*Spec, error) {
	if !s.Mixed() || s.Chips != nil {
		return nil, fmt.Errorf("accelerator %q has cores of one kind or several chips, expected several kinds on one", s.Name)
	}
	r := *s
	r.Name, r.sides = s.Name+"-kinds", len(s.Kinds())
	r.Clusters *= r.sides
	if s.LLB != nil {
		gb := *s.LLB
		gb.SizeBytes /= Bytes(r.sides)
		r.LLB = &gb
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("accelerator %q, with a cluster for each kind of core: %w", s.Name, err)
	}
	return &r, nil
}

// Sides is the number of clusters that share an LLB's bandwidth and a way to the DDR: 1, but for [Spec.Apart].
func (s *Spec) Sides() int { return max(1, s.sides) }

// Part is the machine with at most so many cores of each kind in each cluster; nil: those of several types run a layer
// together, they are in a network or grid, or the kinds would have another order.
func (s *Spec) Part(cores int64) *Spec {
	part := *s
	part.CoreTypes = slices.Clone(s.CoreTypes)
	for i, t := range s.CoreTypes {
		if part.CoreTypes[i].Count = min(t.Count, int(cores)); t.Grid != nil || s.Network != nil || i > 0 && !s.Mixed() {
			return nil
		}
	}
	if !slices.EqualFunc(part.Kinds(), s.Kinds(), func(a, b []CoreType) bool { return a[0].Name == b[0].Name }) {
		return nil
	}
	return &part
}

// Kind is the machine with the cores of one kind alone, by its place in [Spec.Kinds].
func (s *Spec) Kind(k int) *Spec {
	if !s.Mixed() {
		return s
	}
	one := *s
	one.CoreTypes = s.Kinds()[k]
	return &one
}
