package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Decisions are all that the schedule of a chunk follows from: a value for each row of [Stages]. They are immutable:
// Decisions that differ in one value share the others.
type Decisions struct {
	Recipe  Recipe // decides where there is no value
	InPlace bool
	Uneven  schedule.Uneven
	Chunk   int64
	Stages  []Stage              // the recipe's
	Values  []Decision           // by stage; nil: the recipe's strategy decides
	rest    map[int64]*Decisions // of chunks of other sizes; nil: the recipe decides
}

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
		q.askAgain(at)
	}
	return &q
}

// askAgain leaves rows behind a stage of the caller's own to the caller's strategies, which may ask for its value.
// Those for order and bind are asked anyway, unless a move has chosen others.
func (p *Decisions) askAgain(at int) {
	for _, st := range p.Stages[at+1:] {
		if _, own := p.Recipe.own[st.Name]; own && st.Name != "order" && st.Name != "bind" {
			p.Values[p.row(cmp.Or(st.heldBy, st.Name))] = nil
		}
	}
}

// With returns the decisions with other groups. Values of later rows keep what still makes sense.
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

// DecisionsOf takes the decisions of a schedule as they are. What the recipe's own strategies make again at once is
// left to them, unless all is asked for, as of a file.
func DecisionsOf(r *Result, inPlace, all bool) *Decisions {
	_, slow := r.Recipe.greedy()
	all = all || r.Recipe.stages != nil || r.Recipe.evaluations > 0
	behind := slices.IndexFunc(r.Recipe.table(), func(st Stage) bool { return st.Name == "bind" }) + 1
	for _, st := range r.Recipe.table()[behind:] {
		all = all || !r.Recipe.byRule(st.Name)
	}
	by := r.Recipe
	by.Fallback, by.evaluations = nil, 0
	take := func(s *schedule.Schedule, size int64) *Decisions {
		d := &Draft{Schedule: s, Recipe: r.Recipe, Outputs: r.Outputs, Lower: r.Lower, values: r.values[s]}
		p := &Decisions{Recipe: by, InPlace: inPlace, Uneven: r.Uneven, Chunk: size, Stages: r.Recipe.table()}
		for _, st := range p.Stages {
			var x Decision
			if st.take != nil {
				x = st.take(d, all)
			}
			p.Values = append(p.Values, x)
		}
		return p
	}
	p := take(r.Schedule, r.Chunk)
	if all || slow {
		p.rest = map[int64]*Decisions{}
		for s, size := range r.Sizes() {
			if size != r.Chunk {
				p.rest[size] = take(s, size)
			}
		}
	}
	return p
}

// Regrouped returns the decisions with other groups, whose results take the place of operands where they can: more fits
// the L1, and larger groups with it.
func (p *Decisions) Regrouped(list Groups) *Decisions {
	q := p.with(list)
	x := of[placement](q)
	x.overwrite, x.rule = true, graphturbo.LeastMoved
	return q.with(x)
}

// Ordered returns the decisions with the order of a strategy.
func (p *Decisions) Ordered(by Strategy) *Decisions { return p.with(sequence{strategy: by}) }

// Inheriting gives the groups that other decisions do not have what the schedule of those has for their operators.
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

// ExtendTo returns the decisions for a whole network, of which p are those for its head, with what p decides for all
// that repeats the head. Group i of the network repeats group from[i] of the head.
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

// Copied returns the decisions with those for the first operator of each pair made for the second one, too: layers,
// kinds and bindings of cores, results that go to the GB, and nests of layers. Groups, the order and what is decided
// for single instances stay.
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

// byRule reports whether a rule of the table decides a stage, so that it decides the same again at once.
func (r Recipe) byRule(stage string) bool {
	s := r.at(stage)
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

// Taking returns the decisions with the value that others have for a row. For other groups, what it can be for them.
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
	return decided && x.tiles || !decided && p.Recipe.Pick("nest") == tiledNests.Name
}

// Name is one that no other decisions have, among those for a chunk of a search.
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

func (b *Key) binding(x schedule.Binding) {
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

// A Setting declares a decision that is one value: one of some choices, or what Change makes of them. [Setting.Stage]
// makes the row. All of it but the name may be left out.
type Setting[T any] struct {
	Name, Description string
	Choices           []Choice[T] // the first by default
	// Apply lets a draft follow the value. A strategy of a later row may ask for the value with [Setting.Of] instead.
	Apply func(d *Draft, x T) error
	// Change draws another value for a search to try, beside the choices; false: there is none.
	Change func(r Rand, s *schedule.Schedule, x T) (T, bool)

	inPlan bool                               // the schedule file has it in other words
	text   func(b *strings.Builder, d *Draft) // see Stage
}

// A Choice is a named value of a setting, which becomes a strategy of its row.
type Choice[T any] struct {
	Name, Description string
	Value             T
}

// Rand is a source of random numbers.
type Rand interface {
	IntN(n int) int
	Float64() float64
	NormFloat64() float64
}

// plain is the decision of a setting.
type plain[T any] struct {
	of    *Setting[T]
	value T
}

func (x plain[T]) Stage() string { return x.of.Name }

func (x plain[T]) Apply(_ context.Context, d *Draft) error {
	d.values = maps.Clone(d.values) // may be shared
	if d.values == nil {
		d.values = map[string]Decision{}
	}
	d.values[x.of.Name] = x
	if x.of.Apply == nil {
		return nil
	}
	return x.of.Apply(d, x.value)
}

func (x plain[T]) Key(b *Key, _ *Decisions) {
	data, err := json.Marshal(x.value)
	if err != nil {
		data = fmt.Append(nil, x.value) // Stage has tried the choices
	}
	b.Text(string(data))
}

// MarshalJSON writes the value.
func (x plain[T]) MarshalJSON() ([]byte, error) { return json.Marshal(x.value) }

// Of returns the value that a draft follows, the first choice if none was made.
func (s *Setting[T]) Of(d *Draft) (x T) {
	if v, ok := d.values[s.Name].(plain[T]); ok {
		return v.value
	}
	if len(s.Choices) > 0 {
		x = s.Choices[0].Value
	}
	return x
}

// named is the value of a choice, the first's if there is none of that name.
func (s *Setting[T]) named(name string) T {
	i := max(0, slices.IndexFunc(s.Choices, func(c Choice[T]) bool { return c.Name == name }))
	return s.Choices[i].Value
}

// choice is the name of a choice.
func (s *Setting[T]) choice(x T) string {
	i := slices.IndexFunc(s.Choices, func(c Choice[T]) bool { return any(c.Value) == any(x) })
	return s.Choices[i].Name
}

// Stage returns the setting's row.
func (s *Setting[T]) Stage() Stage {
	st := Stage{Name: s.Name, Description: s.Description, inPlan: s.inPlan, text: s.text}
	var all []func(*Decisions) *Decisions
	for _, c := range s.Choices {
		x := plain[T]{s, c.Value}
		st.Strategies = append(st.Strategies, Strategy{Name: c.Name, Description: c.Description,
			Decide: func(ctx context.Context, d *Draft) error { return x.Apply(ctx, d) }})
		all = append(all, func(p *Decisions) *Decisions { return p.unless(x) })
	}
	if len(all) == 0 {
		st.Strategies = []Strategy{{Name: "none", Decide: func(context.Context, *Draft) error { return nil }}}
	}
	if len(all) > 1 {
		st.settings = append(st.settings, all)
	}
	st.take = func(d *Draft, _ bool) Decision {
		if x, there := d.values[s.Name]; there {
			return x
		}
		for _, c := range s.Choices {
			if c.Name == d.Recipe.Pick(s.Name) {
				return plain[T]{s, c.Value}
			}
		}
		return plain[T]{s, s.Of(d)}
	}
	st.read = func(data []byte) (Decision, error) {
		x := plain[T]{of: s}
		if err := json.Unmarshal(data, &x.value); err != nil {
			such, _ := json.Marshal(s.Of(&Draft{}))
			return nil, fmt.Errorf("value is %s, expected one such as %s", data, such)
		}
		return x, nil
	}
	if s.Change != nil {
		st.moves = []Move{{s.Name, 1, func(a *Site) *Decisions {
			v, _ := a.value(s.Name).(plain[T])
			x, ok := s.Change(a.Rand, a.Schedule, v.value)
			if !ok {
				return nil
			}
			return a.with(plain[T]{s, x})
		}}}
	}
	return st
}
