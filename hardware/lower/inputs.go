package lower

import (
	"slices"

	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/schedule"
)

// keptInput is a network input that has an entry of its own, for the steps that read it again.
type keptInput struct {
	*entry
	step int     // that loads it
	deps []int32 // before the first write there
	has  []bool  // of the parts, as that step cuts them
}

// nextRead is the position among the uses of weights at which a later step reads a network input; never: none does.
func (l *lowering) nextRead(v *schedule.Value) int64 {
	last := min(v.Last, len(l.of.Steps)-1) // a step that is lowered alone has no later ones
	for k := l.lp.step.ID + 1; l.opt.KeepInputs && l.early(v) && k <= last; k++ {
		if slices.ContainsFunc(l.of.Steps[k].Reads, func(r schedule.Read) bool { return r.Value == v.ID }) {
			return int64(l.begun + l.usesAt[k])
		}
	}
	return never
}

// entryOf is the entry of a network input; nil: it has none.
func (l *lowering) entryOf(in *incoming) *keptInput {
	if k := in.state.kept; k != nil && l.pages.entries[k.place] == k.entry {
		return k
	}
	return nil
}

// keeps reports whether a network input has an entry or there is one for it.
func (l *lowering) keeps(in *incoming) bool {
	next, all := l.nextRead(in.val), in.val.Bytes
	return l.entryOf(in) != nil ||
		next != never && l.pages != nil && in.read.UnionBytes >= all && l.pages.keeps(all, next) &&
			4*l.pages.need(all) <= 3*len(l.pages.claims) // of larger ones bounds count more loads
}

// held is the entry that has all of a network input; nil: there is none.
func (l *lowering) held(in *incoming) *entry {
	if k := l.entryOf(in); k != nil && !slices.Contains(k.has, false) {
		return k.entry
	}
	return nil
}

// keep is the entry of a network input that the step reads in n parts and later steps read again, with part i in it
// behind its last load. A missing one loads so many parts, of so many bytes, as the portion says. nil: there is none.
func (l *lowering) keep(in *incoming, i, many, n, bytes int64, portion isa.Portion) *entry {
	if !l.keeps(in) {
		return nil
	}
	k := l.entryOf(in)
	if k == nil {
		k = &keptInput{step: l.lp.step.ID, has: make([]bool, n)}
		k.entry, k.deps = l.pages.add(0, in.val.Bytes, l.nextRead(in.val))
		in.state.kept = k
	}
	if k.step != l.lp.step.ID || int64(len(k.has)) != n {
		return l.held(in)
	}
	if !k.has[i] {
		l.toLLB(in, k.entry, portion, bytes, k.deps)
	}
	for j := range many {
		k.has[i+j] = true
	}
	return k.entry
}
