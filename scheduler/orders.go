package scheduler

import (
	"context"
	"slices"
)

// sequence is the order of the instances.
type sequence struct {
	strategy Strategy // none: the recipe's, Algorithm 3 in the place of an exact one
	order    []int    // nil: by the strategy
	name     string   // of the order
}

func takeOrder(d *Draft, _ bool) Decision { return sequence{order: d.Order, name: d.OrderName} }

// Stage names the row.
func (x sequence) Stage() string { return "order" }

// Apply orders the instances.
func (x sequence) Apply(ctx context.Context, d *Draft) error {
	if x.order != nil {
		d.Order, d.OrderName = x.order, x.name
		return nil
	}
	by := x.strategy
	if by.Decide == nil {
		if by = d.Recipe.Strategy("order"); by.Exact {
			by = ruleFor("order")
		}
	}
	return by.Decide(ctx, d)
}

// Key has the order, or who makes it.
func (x sequence) Key(b *Key, _ *Decisions) {
	b.Add(int64(len(x.order)))
	for _, id := range x.order {
		b.Add(int64(id))
	}
	b.Text(x.strategy.Name)
}

// After drops the order unless it is of the same instances all the same.
func (x sequence) After(changed string, _, _ *Decisions) Decision {
	if changed != "layers" && changed != "outputs" {
		x.order = nil
	}
	return x
}

func (x sequence) extend(*extension) Decision {
	x.order = nil
	return x
}

// Orders lists the rules by which a searched schedule may order instances: the recipe's own, if it is a caller's,
// first.
func (p *Decisions) Orders() []Strategy {
	var list []Strategy
	st, _ := lookupStage(p.Stages, "order")
	for _, name := range table.Orders {
		if s, err := st.Lookup(name); err == nil {
			list = append(list, s)
		}
	}
	if own, ok := p.Recipe.own["order"]; ok {
		list = append([]Strategy{own}, list...)
	}
	return list
}

var orderMoves = []Move{
	{"order", 1, (*Site).moveOrder},
	{"position", 1, (*Site).movePosition},
}

func (a *Site) moveOrder() *Decisions {
	orders := a.Orders()
	return a.with(sequence{strategy: orders[a.Rand.IntN(len(orders))]})
}

// movePosition lets an instance run sooner or later, as far as what it reads and who reads it allow.
func (a *Site) movePosition() *Decisions {
	made := a.Schedule
	from := a.Rand.IntN(len(made.Order))
	id := made.Order[from]
	at := make([]int, len(made.Order))
	for i, x := range made.Order {
		at[x] = i
	}
	first, last := 0, len(made.Order)-1
	for _, d := range made.Instances.Instances[id].Deps {
		first = max(first, at[d.From]+1)
	}
	for _, c := range made.Instances.Consumers[id] {
		last = min(last, at[c]-1)
	}
	to := first + a.Rand.IntN(last-first+1)
	if to == from {
		return nil
	}
	x := of[sequence](a.Decisions)
	x.order, x.name = slices.Insert(slices.Delete(slices.Clone(made.Order), from, from+1), to, id), "best"
	return a.with(x)
}
