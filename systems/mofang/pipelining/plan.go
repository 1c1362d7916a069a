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
	Link Line
	// SyncSeconds is the time of the gradients of the layer's weights over one link.
	SyncSeconds     float64
	WeightBytes     float64 // with gradients and optimiser state
	ActivationBytes float64 // of each sample, until its backward pass
	BoundaryBytes   float64 // of each sample, what later layers read after this one
}

// A Machine has equal devices, each with a memory.
type Machine struct {
	Devices     int
	MemoryBytes float64 // of each device
	// Replicas is the most devices that share a stage; 0 counts as 1. Each takes its part of every micro-batch, and at
	// the end of the batch they add their gradients up in a ring, whose steps take StepSeconds beside the bytes.
	Replicas    int
	StepSeconds float64
	// Recompute lets a stage keep only its input of each micro-batch, and run forward again before its backward pass.
	Recompute bool
}

// A Part is consecutive layers, from From to before To, on devices of their own.
type Part struct {
	From, To   int
	Devices    int
	Recomputes bool
}

// A Plan is a choice of stages and micro-batches.
type Plan struct {
	Stages       []Part
	MicroBatches int
	Samples      int     // of the largest micro-batch
	BatchSeconds float64 // in GPipe's order, with links and sums of gradients
	Bytes        float64 // of the fullest device
}

func share(samples, devices int) int { return (samples + devices - 1) / devices }

// Times returns the seconds of a stage: the forward and the backward pass of a micro-batch of so many samples, and the
// all-reduce of its gradients.
func (p *Part) Times(costs []Cost, samples int, step float64) (forward, backward, sync float64) {
	m := share(samples, p.Devices)
	for i := p.From; i < p.To; i++ {
		forward += costs[i].Forward.At(m)
		backward += costs[i].Backward.At(m)
		sync += costs[i].SyncSeconds
	}
	if p.Recomputes {
		backward += forward
	}
	return forward, backward, ring(p.Devices, sync, step)
}

// ring is the time of an all-reduce in a ring of r devices of what takes so long over a link.
func ring(r int, seconds, step float64) float64 {
	return 2 * float64(r-1) * (seconds/float64(r) + step)
}

// Bytes returns the memory that a device of the stage needs: for weights, for each micro-batch until its backward pass,
// and beside all of these while it recomputes one.
func (p *Part) Bytes(costs []Cost, samples int) (weights, each, beside float64) {
	for _, c := range costs[p.From:p.To] {
		weights += c.WeightBytes
		each += c.ActivationBytes
	}
	each *= float64(share(samples, p.Devices))
	if p.Recomputes {
		return weights, p.input(costs, samples), each
	}
	return weights, each, 0
}

func (p *Part) input(costs []Cost, samples int) float64 {
	if p.From == 0 {
		return 0 // of the data set, which somebody else keeps
	}
	return float64(share(samples, p.Devices)) * costs[p.From-1].BoundaryBytes
}

// Crossing returns the seconds that a micro-batch takes from a stage to the next.
func (p *Part) Crossing(costs []Cost, samples int, next *Part) float64 {
	return costs[p.To-1].Link.At(share(samples, min(p.Devices, next.Devices)))
}

// Measure is the plan with the given stages, whatever memory it needs.
func Measure(costs []Cost, stages []Part, batch, b int, step float64) *Plan {
	p := &Plan{Stages: stages, MicroBatches: b, Samples: share(batch, b)}
	var forward, backward, longestF, longestB, end float64
	for k := len(stages) - 1; k >= 0; k-- {
		s := &stages[k]
		f, g, sync := s.Times(costs, p.Samples, step)
		if k+1 < len(stages) {
			l := s.Crossing(costs, p.Samples, &stages[k+1])
			forward, backward = forward+l, backward+l
		}
		forward, backward = forward+f, backward+g
		longestF, longestB = max(longestF, f), max(longestB, g)
		end = max(end, backward+float64(b-1)*longestB+sync)
		weights, each, beside := s.Bytes(costs, p.Samples)
		p.Bytes = max(p.Bytes, weights+float64(b)*each+beside)
	}
	p.BatchSeconds = forward + float64(b-1)*longestF + end
	return p
}

// search is what [Jointly] knows of one number of micro-batches.
type search struct {
	costs      []Cost
	m          Machine
	b, samples int
	again      float64     // b - 1
	f, g       [][]float64 // of the first layers, forward and backward, by devices that share them
}

// label is stages of the layers from one on: sums and longest of their passes, links included, and the end of their
// last backward pass and sum of gradients, counted from the last stage's last forward pass.
type label struct {
	forward, backward, longestF, longestB, end float64
	to, devices, replicas, before              int // first stage; devices of all from To on, replicas and label there
	recomputes                                 bool
}

// dominates takes sums of the same layers in another order for equal.
func (l *label) dominates(o *label) bool {
	const same = 1 + 1e-12
	return l.forward <= o.forward*same && l.longestF <= o.longestF*same && l.end <= o.end*same &&
		l.backward <= o.backward*same && l.longestB <= o.longestB*same
}

func newSearch(costs []Cost, m Machine, batch, b int) *search {
	s := &search{costs: costs, m: m, b: b, samples: share(batch, b), again: float64(b - 1)}
	for r := range m.Replicas + 1 {
		f, g := make([]float64, len(costs)+1), make([]float64, len(costs)+1)
		for i := range costs {
			n := share(s.samples, max(1, r))
			f[i+1], g[i+1] = f[i]+costs[i].Forward.At(n), g[i]+costs[i].Backward.At(n)
		}
		s.f, s.g = append(s.f, f), append(s.g, g)
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
	// On r devices a layer takes no less than an r-th.
	r, all := min(left, s.m.Replicas), float64(left)
	f, g := s.f[r][i], s.g[r][i]
	return l.forward + f + s.again*max(l.longestF, s.f[1][i]/all) +
		max(l.end, l.backward+g+s.again*max(l.longestB, s.g[1][i]/all))
}

// solve is the best plan of less than limit seconds, nil where there is none.
func (s *search) solve(ctx context.Context, limit float64) (best *Plan, err error) {
	n, devices := len(s.costs), s.m.Devices
	labels := make([][][][]label, n+1) // by layer, devices, replicas of the first stage
	labels[n] = [][][]label{{{{}}}}
	for i := n - 1; i >= 0; i-- {
		labels[i] = make([][][]label, devices+1)
		for d := range labels[i] {
			labels[i][d] = make([][]label, s.m.Replicas+1)
		}
		for r := 1; r <= s.m.Replicas; r++ {
			part := Part{From: i, Devices: r}
			input, m := part.input(s.costs, s.samples), float64(share(s.samples, r))
			sync, weights, activations := 0.0, 0.0, 0.0
			for j := i + 1; j <= n; j++ {
				c := &s.costs[j-1]
				sync += c.SyncSeconds
				weights += c.WeightBytes
				activations += m * c.ActivationBytes
				f, g := s.f[r][j]-s.f[r][i], s.g[r][j]-s.g[r][i]
				// What fits without is better without.
				if part.Recomputes = weights+float64(s.b)*activations > s.m.MemoryBytes; part.Recomputes {
					if !s.m.Recompute || weights+float64(s.b)*input+activations > s.m.MemoryBytes {
						break
					}
					g += f
				}
				end := ring(r, sync, s.m.StepSeconds)
				for d, row := range labels[j] {
					if d+r > devices {
						break
					}
					if ctx.Err() != nil {
						return best, ctx.Err()
					}
					for q, list := range row {
						link := 0.0
						if j < n && len(list) > 0 {
							link = c.Link.At(share(s.samples, min(r, q)))
						}
						for k := range list {
							l := &list[k]
							x := label{forward: l.forward + link + f, backward: l.backward + link + g,
								longestF: max(l.longestF, f), longestB: max(l.longestB, g),
								to: j, devices: d, replicas: q, before: k, recomputes: part.Recomputes}
							x.end = max(l.end, x.backward+s.again*x.longestB+end)
							if s.least(&x, i, devices-d-r) >= limit || slices.ContainsFunc(labels[i][:d+r], func(fewer [][]label) bool {
								return slices.ContainsFunc(fewer[r], func(l label) bool { return l.dominates(&x) })
							}) {
								continue
							}
							insert(&labels[i][d+r][r], x)
						}
					}
				}
			}
		}
	}
	for d, row := range labels[0] {
		for r, list := range row {
			for k := range list {
				if x := s.least(&list[k], 0, 0); x < limit {
					limit = x * (1 - slack)
					best = &Plan{}
					for i, d, r, k := 0, d, r, k; i < n; {
						l := &labels[i][d][r][k]
						best.Stages = append(best.Stages, Part{i, l.to, r, l.recomputes})
						i, d, r, k = l.to, l.devices, l.replicas, l.before
					}
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

// Jointly finds the plan of the least time of a batch, ties by fewer devices. If ctx ends it returns the best plan so
// far with a bound on all and ctx's error; otherwise the plan's time is the bound.
func Jointly(ctx context.Context, costs []Cost, m Machine, batch int) (best *Plan, bound float64, err error) {
	if len(costs) == 0 || m.Devices < 1 || batch < 1 {
		return nil, 0, strict.Error("", "plan",
			fmt.Sprintf("%d layers, %d devices, a batch of %d", len(costs), m.Devices, batch),
			"at least one of each")
	}
	for i, c := range costs {
		for _, x := range []float64{c.Forward.Fixed, c.Forward.Sample, c.Backward.Fixed, c.Backward.Sample,
			c.Link.Fixed, c.Link.Sample,
			c.SyncSeconds, c.WeightBytes, c.ActivationBytes, c.BoundaryBytes} {
			if !(x >= 0) || math.IsInf(x, 1) {
				return nil, 0, strict.Error("", fmt.Sprintf("layer %d", i), fmt.Sprint(x), "numbers of at least 0")
			}
		}
	}
	m.Replicas = min(max(1, m.Replicas), m.Devices, batch)
	if m.Replicas == 1 {
		m.Devices = min(m.Devices, len(costs))
	}
	type try struct {
		*search
		least float64
	}
	var tries []try
	for b := 1; b <= batch; b++ {
		if b > 1 && share(batch, b) == share(batch, b-1) {
			continue // as large micro-batches, and more of them
		}
		s := newSearch(costs, m, batch, b)
		tries = append(tries, try{s, s.least(&label{}, len(costs), m.Devices)})
	}
	slices.SortStableFunc(tries, func(a, b try) int { return cmp.Compare(a.least, b.least) })
	if m.Replicas > 1 { // a start; without an answer it is none
		narrow := m
		narrow.Replicas = 1
		best, _, _ = Jointly(ctx, costs, narrow, batch)
	}
	for k, t := range tries {
		limit := math.Inf(1)
		if best != nil {
			limit = best.BatchSeconds * (1 - slack)
		}
		if t.least >= limit {
			break
		}
		plan, err := t.solve(ctx, limit)
		if err != nil {
			bound = t.least // of all that are left; those before are done
			if best != nil {
				bound = min(bound, best.BatchSeconds)
			}
			return best, bound, err
		}
		if plan != nil {
			best = Measure(costs, plan.Stages, batch, tries[k].b, m.StepSeconds)
		}
	}
	if best == nil {
		need := 0.0
		for _, c := range costs {
			need += c.WeightBytes + float64(batch)*c.ActivationBytes
		}
		return nil, 0, strict.Error("", "memory",
			fmt.Sprintf("%.0f bytes for %d layers and a batch of %d", need, len(costs), batch),
			fmt.Sprintf("what fits where there are %.0f bytes on each of the devices (%d)", m.MemoryBytes, m.Devices))
	}
	return best, best.BatchSeconds, nil
}
