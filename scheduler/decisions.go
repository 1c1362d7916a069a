package scheduler

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Decisions determine the schedule of a chunk: a value for each row of Stages. They are immutable: Decisions that
// differ in one value share the others.
type Decisions struct {
	Recipe  Recipe // decides where there is no value
	InPlace bool
	Uneven  schedule.Uneven
	Chunk   int64
	Stages  []Stage              // the recipe's
	Values  []Decision           // by stage; nil: the recipe's strategy decides
	rest    map[int64]*Decisions // of chunks of other sizes; nil: the recipe decides
}

// value returns the value of a row, nil without one.
func (p *Decisions) value(stage string) Decision {
	if i := p.row(stage); i >= 0 {
		return p.Values[i]
	}
	return nil
}

// row is the number of a row, -1 if there is none.
func (p *Decisions) row(stage string) int {
	return slices.IndexFunc(p.Stages, func(st Stage) bool { return st.Name == stage })
}

// of returns the value of a type, the zero value if there is none.
func of[T Decision](p *Decisions) (x T) {
	for _, v := range p.Values {
		if y, ok := v.(T); ok {
			return y
		}
	}
	return x
}

// with returns decisions with another value of its row. Values of later rows keep what still makes sense.
func (p *Decisions) with(x Decision) *Decisions { return p.replace(x.Stage(), x) }

// replace is with; nil: the recipe decides the row.
func (p *Decisions) replace(stage string, x Decision) *Decisions {
	q := *p
	q.Values = slices.Clone(p.Values)
	at := p.row(stage)
	q.Values[at] = x
	for i := at + 1; i < len(q.Values); i++ {
		if v, ok := q.Values[i].(follower); ok {
			q.Values[i] = v.After(stage, p, &q)
		}
	}
	if p.Stages[at].own {
		// Rows behind are left to the caller's strategies, which may ask for its value. Those for order and bind are asked
		// anyway, unless a move has chosen others.
		for _, st := range q.Stages[at+1:] {
			if _, own := q.Recipe.own[st.Name]; own && st.Name != "order" && st.Name != "bind" {
				q.Values[q.row(cmp.Or(st.heldBy, st.Name))] = nil
			}
		}
	}
	return &q
}

// With returns the decisions with other groups. Values of later rows are kept as far as they are valid.
func (p *Decisions) With(list Groups) *Decisions { return p.with(list) }

// amend sets the value of a row in decisions that nobody else has.
func (p *Decisions) amend(x Decision) {
	p.Values[p.row(x.Stage())] = x
}

// alter returns a change of the value of a type.
func alter[T Decision](set func(*T)) func(*Decisions) *Decisions {
	return func(p *Decisions) *Decisions {
		x := of[T](p)
		set(&x)
		return p.unless(x)
	}
}

// unless is with; the decisions themselves if they have the value.
func (p *Decisions) unless(x Decision) *Decisions {
	var now, then Key
	if v := p.value(x.Stage()); v != nil {
		v.Key(&now, p)
		x.Key(&then, p)
		if bytes.Equal(now, then) {
			return p
		}
	}
	return p.with(x)
}

// Regrouped returns the decisions with other groups, whose results take the place of operands where they can: more fits
// the L1, and larger groups with it.
func (p *Decisions) Regrouped(list Groups) *Decisions {
	q := p.with(list)
	x := of[placement](q)
	x.overwrite, x.rule = true, overRule()
	return q.with(x)
}

// Ordered returns the decisions with the order of a strategy.
func (p *Decisions) Ordered(by Strategy) *Decisions { return p.with(sequence{strategy: by}) }

// Inheriting gives each group that others do not have the values that the schedule s of others has for its operators.
func (p *Decisions) Inheriting(s *schedule.Schedule, others *Decisions) *Decisions {
	old := map[piece]bool{}
	for _, x := range others.Groups() {
		old[x.piece()] = true
	}
	fresh := slices.DeleteFunc(slices.Clone(p.Groups()), func(x Cut) bool { return old[x.piece()] })
	q := *p
	q.Values = slices.Clone(p.Values)
	for i, v := range q.Values {
		if x, ok := v.(inheritor); ok {
			q.Values[i] = x.inherit(s, fresh)
		}
	}
	return &q
}

// ExtendTo extends decisions for the head of a network to the whole network. Group i of the network repeats group
// from[i] of the head.
func (p *Decisions) ExtendTo(whole *Decisions, g *model.Graph, from []int) *Decisions {
	head, all := p.Groups(), whole.Groups()
	e := &extension{}
	for i, k := range from {
		e.pieces = append(e.pieces, [2]piece{head[k].piece(), all[i].piece()})
		for n, id := range head[k].Ops {
			e.add(g, id, all[i].Ops[n])
		}
	}
	q := *whole
	q.Values = slices.Clone(whole.Values)
	for i, v := range p.Values {
		switch x := v.(type) {
		case Groups:
		case extender:
			q.Values[i] = x.extend(e)
		default:
			q.Values[i] = v
		}
	}
	return &q
}

// Copied returns the decisions with those for the first operator of each pair applied to the second one, too: layers,
// kinds and bindings of cores, results sent to the LLB, and nests of layers. Groups, the order and decisions for single
// instances stay.
func (p *Decisions) Copied(g *model.Graph, pairs [][2]model.OpID) *Decisions {
	e := &extension{same: true}
	source := map[model.OpID]model.OpID{}
	for _, x := range pairs {
		e.add(g, x[0], x[1])
		source[x[1]] = x[0]
	}
	list, firsts := p.Groups(), map[model.OpID]int{}
	for k := range list {
		firsts[list[k].Ops[0]] = k
	}
	for i := range list {
		id, copied := source[list[i].Ops[0]]
		k, there := firsts[id]
		if copied && there && list[k].Split == list[i].Split && slices.EqualFunc(list[k].Ops, list[i].Ops,
			func(from, to model.OpID) bool { x, ok := source[to]; return ok && x == from }) {
			e.pieces = append(e.pieces, [2]piece{list[k].piece(), list[i].piece()})
		}
	}
	for i, st := range p.Stages {
		if x, ok := p.Values[i].(extender); ok && st.Name != "order" {
			p = p.unless(x.extend(e))
		}
	}
	return p
}

// byRule reports whether a rule of the table decides a stage, so that it decides the same again at once.
func (r Recipe) byRule(stage string) bool {
	s := r.Strategy(stage)
	_, own := r.own[stage]
	return !own && s.Decide != nil && !s.Exact && !s.Trials
}

// By returns the decisions with another recipe for what they leave open.
func (p *Decisions) By(r Recipe) *Decisions {
	q := *p
	q.Recipe, q.Stages, q.rest = r, r.table(), map[int64]*Decisions{}
	q.Values = make([]Decision, len(q.Stages))
	for i, st := range q.Stages {
		q.Values[i] = p.value(st.Name)
	}
	for size, other := range p.rest {
		q.rest[size] = other.By(r)
	}
	return &q
}

// Taking returns the decisions with another's value for a row, as far as it is valid for these groups.
func (p *Decisions) Taking(stage string, from *Decisions) *Decisions {
	x := from.value(stage)
	if v, ok := x.(follower); ok && !p.Groups().same(from.Groups()) {
		x = v.After("group", from, p)
	}
	return p.replace(stage, x)
}

// Groups are the groups that are decided.
func (p *Decisions) Groups() Groups { return of[Groups](p) }

// Tiled reports whether products run in tiles by rule where no nest is decided.
func (p *Decisions) Tiled() bool {
	x, decided := p.value("nest").(loops)
	return decided && x.tiles || !decided && p.Recipe.Strategy("nest").Tiles
}

// Name is a hash that identifies the decisions among those for a chunk of a search.
func (p *Decisions) Name() [sha256.Size]byte {
	b := make(Key, 0, 1<<12)
	for i, v := range p.Values {
		if v != nil {
			b.Add(int64(i))
			v.Key(&b, p)
		}
	}
	return sha256.Sum256(fmt.Append(b, p.Recipe.Name, p.InPlace, p.Uneven))
}
