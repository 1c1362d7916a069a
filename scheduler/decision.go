package scheduler

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Decision is the value of a row of [Stages]. It is immutable. Where it depends on rows before, it has some of the
// methods of follower, inheritor and extender as well.
type Decision interface {
	// Stage names the row.
	Stage() string
	// Apply lets a draft follow the decision; the rows before have decided.
	Apply(ctx context.Context, d *Draft) error
	// Key appends what identifies the decision among those of its row and for the groups of p.
	Key(b *Key, p *Decisions)
}

// A follower keeps less of itself, or nothing, when an earlier row, changed, has another value.
type follower interface {
	After(changed string, from, to *Decisions) Decision
}

// An inheritor gives new groups what a schedule has for the same operators in others.
type inheritor interface {
	inherit(from *schedule.Schedule, fresh Groups) Decision
}

// An extender takes over what is decided for the operators of a network's head to the operators that repeat them.
type extender interface {
	extend(x *extension) Decision
}

// An extension says what in a network repeats what in its head, itself among it, or one of its blocks.
type extension struct {
	same    bool // the groups stay, and with them what is decided for their instances
	pieces  [][2]piece
	ops     [][2]model.OpID
	tensors [][2]model.TensorID
}

func (e *extension) add(g *model.Graph, from, to model.OpID) {
	e.ops = append(e.ops, [2]model.OpID{from, to})
	for m, t := range g.Op(from).Outputs {
		e.tensors = append(e.tensors, [2]model.TensorID{t, g.Op(to).Outputs[m]})
	}
}

// extended is a map in which what repeats a head has its values and no others.
func extended[K comparable, V any](m map[K]V, pairs [][2]K) map[K]V {
	all := cloned(m)
	for _, x := range pairs {
		if v, there := m[x[0]]; there {
			all[x[1]] = v
		} else {
			delete(all, x[1])
		}
	}
	return all
}

// A Key is a name under construction.
type Key []byte

// Add appends numbers.
func (b *Key) Add(list ...int64) {
	for _, n := range list {
		*b = binary.AppendVarint(*b, n)
	}
}

// Text appends a text.
func (b *Key) Text(s string) {
	b.Add(int64(len(s)))
	*b = append(*b, s...)
}

// Binding appends a binding.
func (b *Key) Binding(x schedule.Binding) {
	b.Add(int64(len(x)))
	b.Add(x...)
}

func (b *Key) region(r model.Region) {
	b.Add(int64(len(r)))
	for _, iv := range r {
		b.Add(iv.Lo, iv.Hi)
	}
}

// addMap appends the entries of a map that are not zero, by key, and an end.
func addMap[K ~int | ~int32, V any](b *Key, m map[K]V, add func(V) bool) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		at := len(*b)
		b.Add(int64(id))
		if !add(m[id]) {
			*b = (*b)[:at]
		}
	}
	b.Add(-1)
}

// cloned is a copy that can be written to.
func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m = maps.Clone(m); m == nil {
		m = map[K]V{}
	}
	return m
}

// is reports whether something is set.
func is(x bool) bool { return x }
