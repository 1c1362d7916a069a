package pipelining

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/internal/strict"
)

// A Line is a time in seconds that grows with the samples: of none, and of each.
type Line struct{ Fixed, Sample float64 }

// At is the time of so many samples.
func (l Line) At(samples int) float64 { return l.Fixed + float64(samples)*l.Sample }

// A Cost is a layer as [Jointly] sees it.
type Cost struct {
	Forward, Backward Line
	// Link is the time of a micro-batch to the next stage, and of its gradient back, if this layer ends a stage.
	Link            Line
	WeightBytes     float64 // with gradients and optimiser state
	ActivationBytes float64 // of each sample, until its backward pass
}

// A Part is consecutive layers, from From to before To, on a device.
type Part struct{ From, To int }

// A Plan is a choice of stages and micro-batches.
type Plan struct {
	Stages       []Part
	MicroBatches int
	Samples      int     // of the largest micro-batch
	BatchSeconds float64 // in GPipe's order, with links
	Bytes        float64 // of the fullest device
}

// largest is the samples of the largest of b micro-batches.
func largest(batch, b int) int { return (batch + b - 1) / b }

// Times returns the seconds of a stage: the forward and the backward pass of a micro-batch of so many samples.
func (p *Part) Times(costs []Cost, samples int) (forward, backward float64) {
	for _, c := range costs[p.From:p.To] {
		forward += c.Forward.At(samples)
		backward += c.Backward.At(samples)
	}
	return forward, backward
}

// Bytes returns the memory that the stage's device needs: for weights, and for each micro-batch until its backward
// pass.
func (p *Part) Bytes(costs []Cost, samples int) (weights, each float64) {
	for _, c := range costs[p.From:p.To] {
		weights += c.WeightBytes
		each += c.ActivationBytes
	}
	return weights, each * float64(samples)
}

// Crossing returns the seconds that a micro-batch takes from a stage to the next.
func (p *Part) Crossing(costs []Cost, samples int) float64 { return costs[p.To-1].Link.At(samples) }

// Measure is the plan with the given stages, whatever memory it needs.
func Measure(costs []Cost, stages []Part, batch, b int) *Plan {
	p := &Plan{Stages: stages, MicroBatches: b, Samples: largest(batch, b)}
	var forward, backward, longestF, longestB, end float64
	for k := len(stages) - 1; k >= 0; k-- {
		s := &stages[k]
		f, g := s.Times(costs, p.Samples)
		if k+1 < len(stages) {
			l := s.Crossing(costs, p.Samples)
			forward, backward = forward+l, backward+l
		}
		forward, backward = forward+f, backward+g
		longestF, longestB = max(longestF, f), max(longestB, g)
		end = max(end, backward+float64(b-1)*longestB)
		weights, each := s.Bytes(costs, p.Samples)
		p.Bytes = max(p.Bytes, weights+float64(b)*each)
	}
	p.BatchSeconds = forward + float64(b-1)*longestF + end
	return p
}

// search is what [Jointly] knows of one number of micro-batches.
type search struct {
	costs      []Cost
	memory     float64 // of a device
	b, samples int
	again      float64   // b - 1
	f, g       []float64 // of the first layers, forward and backward
}

// label is stages of the layers from one on: sums and longest of their passes, links included, and the end of their
// last backward pass, counted from the last stage's last forward pass.
type label struct {
	forward, backward, longestF, longestB, end float64
	to, devices, before                        int // first stage; devices of all from to on, label there
}

// dominates takes sums of the same layers in another order for equal.
func (l *label) dominates(o *label) bool {
	const same = 1 + 1e-12
	return l.forward <= o.forward*same && l.longestF <= o.longestF*same && l.end <= o.end*same &&
		l.backward <= o.backward*same && l.longestB <= o.longestB*same
}

func newSearch(costs []Cost, memory float64, batch, b int) *search {
	s := &search{costs: costs, memory: memory, b: b, samples: largest(batch, b), again: float64(b - 1),
		f: make([]float64, len(costs)+1), g: make([]float64, len(costs)+1)}
	for i, c := range costs {
		s.f[i+1], s.g[i+1] = s.f[i]+c.Forward.At(s.samples), s.g[i]+c.Backward.At(s.samples)
	}
	return s
}

// least is a bound on the batch with a label's stages after i layers that so many devices are left for.
func (s *search) least(l *label, i, left int) float64 {
	if i == 0 {
		return l.forward + s.again*l.longestF + l.end
	}
	if left == 0 {
		return math.Inf(1)
	}
	f, g, all := s.f[i], s.g[i], float64(left)
	return l.forward + f + s.again*max(l.longestF, f/all) + max(l.end, l.backward+g+s.again*max(l.longestB, g/all))
}

// solve is the best plan of less than limit seconds on so many devices, nil where there is none.
func (s *search) solve(ctx context.Context, devices int, limit float64) (best *Plan, err error) {
	n := len(s.costs)
	labels := make([][][]label, n+1) // by layer and devices
	labels[n] = [][]label{{{}}}
	for i := n - 1; i >= 0; i-- {
		labels[i] = make([][]label, devices+1)
		weights, activations := 0.0, 0.0
		for j := i + 1; j <= n; j++ {
			c := &s.costs[j-1]
			weights += c.WeightBytes
			activations += float64(s.samples) * c.ActivationBytes
			if weights+float64(s.b)*activations > s.memory {
				break
			}
			f, g, link := s.f[j]-s.f[i], s.g[j]-s.g[i], 0.0
			if j < n {
				link = c.Link.At(s.samples)
			}
			for d, list := range labels[j] {
				if d == devices {
					break
				}
				if ctx.Err() != nil {
					return best, ctx.Err()
				}
				for k := range list {
					l := &list[k]
					x := label{forward: l.forward + link + f, backward: l.backward + link + g,
						longestF: max(l.longestF, f), longestB: max(l.longestB, g), to: j, devices: d, before: k}
					x.end = max(l.end, x.backward+s.again*x.longestB)
					if s.least(&x, i, devices-d-1) >= limit || slices.ContainsFunc(labels[i][:d+1], func(fewer []label) bool {
						return slices.ContainsFunc(fewer, func(l label) bool { return l.dominates(&x) })
					}) {
						continue
					}
					insert(&labels[i][d+1], x)
				}
			}
		}
	}
	for d, list := range labels[0] {
		for k := range list {
			if x := s.least(&list[k], 0, 0); x < limit {
				limit = x * (1 - slack)
				best = &Plan{}
				for i, d, k := 0, d, k; i < n; {
					l := &labels[i][d][k]
					best.Stages = append(best.Stages, Part{i, l.to})
					i, d, k = l.to, l.devices, l.before
				}
			}
		}
	}
	return best, nil
}

// insert adds a label that none dominates, in place of those that it does.
func insert(list *[]label, x label) {
	for k := range *list {
		if (*list)[k].dominates(&x) {
			return
		}
	}
	*list = slices.DeleteFunc(*list, func(l label) bool { return x.dominates(&l) })
	*list = append(*list, x)
}

// Jointly finds the plan of the least time of a batch on so many devices, each with so many bytes of memory, ties by
// fewer devices. If ctx ends it returns the best plan so far with a bound on all and ctx's error; otherwise the plan's
// time is the bound.
func Jointly(ctx context.Context, costs []Cost, devices int, memory float64, batch int) (best *Plan, bound float64,
	err error) {
	if len(costs) == 0 || devices < 1 || batch < 1 {
		return nil, 0, strict.Error("", "plan",
			fmt.Sprintf("%d layers, %d devices, a batch of %d", len(costs), devices, batch),
			"at least one of each")
	}
	for i, c := range costs {
		for _, x := range []float64{c.Forward.Fixed, c.Forward.Sample, c.Backward.Fixed, c.Backward.Sample,
			c.Link.Fixed, c.Link.Sample, c.WeightBytes, c.ActivationBytes} {
			if !(x >= 0) || math.IsInf(x, 1) {
				return nil, 0, strict.Error("", fmt.Sprintf("layer %d", i), fmt.Sprint(x), "numbers of at least 0")
			}
		}
	}
	devices = min(devices, len(costs))
	type try struct {
		*search
		least float64
	}
	var tries []try
	for b := 1; b <= batch; b++ {
		if b > 1 && largest(batch, b) == largest(batch, b-1) {
			continue // as large micro-batches, and more of them
		}
		s := newSearch(costs, memory, batch, b)
		tries = append(tries, try{s, s.least(&label{}, len(costs), devices)})
	}
	slices.SortStableFunc(tries, func(a, b try) int { return cmp.Compare(a.least, b.least) })
	for k, t := range tries {
		limit := math.Inf(1)
		if best != nil {
			limit = best.BatchSeconds * (1 - slack)
		}
		if t.least >= limit {
			break
		}
		plan, err := t.solve(ctx, devices, limit)
		if err != nil {
			bound = t.least // of all that are left; those before are done
			if best != nil {
				bound = min(bound, best.BatchSeconds)
			}
			return best, bound, err
		}
		if plan != nil {
			best = Measure(costs, plan.Stages, batch, tries[k].b)
		}
	}
	if best == nil {
		need := 0.0
		for _, c := range costs {
			need += c.WeightBytes + float64(batch)*c.ActivationBytes
		}
		return nil, 0, strict.Error("", "memory",
			fmt.Sprintf("%.0f bytes for %d layers and a batch of %d", need, len(costs), batch),
			fmt.Sprintf("what fits where there are %.0f bytes on each of the devices (%d)", memory, devices))
	}
	return best, best.BatchSeconds, nil
}
