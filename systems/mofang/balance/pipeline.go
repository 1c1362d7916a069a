package balance

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/systems/mofang"
	"github.com/dsasched/dsasched/systems/mofang/devicepipe"
	"github.com/dsasched/dsasched/systems/mofang/pipelining"
	"github.com/dsasched/dsasched/systems/mofang/streams"
)

// PipelineMethods are the ways to divide a batch over devices.
func PipelineMethods() []solve.Method {
	return []solve.Method{
		{Name: "mofang",
			Description: "stages of equal time; the fewest micro-batches whose bubbles cost no more than their size, by bisection"},
		{Name: "gpipe", Description: "stages of equal numbers of layers; four micro-batches for each"},
		{Name: "exact", Description: "stages, micro-batches and memory jointly, with proof", Exact: true},
	}
}

// A Chain is a network as layers in a row, for training on a machine.
type Chain struct {
	Name        string
	Batch       int
	Names       []string
	Costs       []pipelining.Cost
	MemoryBytes float64 // of a device
	Server      *chips.Server
}

// between is the straight line through the times of two numbers of samples, or proportional to the one.
func between(n0 int, t0 float64, n1 int, t1 float64) pipelining.Line {
	if n0 == n1 {
		return pipelining.Line{Sample: t0 / float64(n0)}
	}
	l := pipelining.Line{Sample: max(0, (t1-t0)/float64(n1-n0))}
	l.Fixed = max(0, t0-float64(n0)*l.Sample)
	return l
}

// NewChain prices the operators of a network for training on the devices of a server.
func NewChain(net network.Network, n *chips.Server, batch int, efficiency float64) (*Chain, error) {
	spec, err := hardware.Load(n.Device)
	if err != nil {
		return nil, err
	}
	d, err := streams.NewDevice(spec, efficiency)
	if err != nil {
		return nil, err
	}
	one, err := net.Graph(1)
	if err != nil {
		return nil, err
	}
	first, _, err := streams.Operators(one, d)
	if err != nil {
		return nil, err
	}
	last := first
	if batch > 1 {
		g, err := net.Graph(int64(batch))
		if err != nil {
			return nil, err
		}
		if last, _, err = streams.Operators(g, d); err != nil {
			return nil, err
		}
	}
	if len(first) != len(last) {
		return nil, fmt.Errorf("%s: found %d operators at batch 1 and %d at %d, expected as many", net.Name, len(first),
			len(last), batch)
	}
	c := &Chain{Name: net.Name, Batch: batch, Server: n, MemoryBytes: float64(spec.DDR.SizeBytes)}
	weights, outputs, boundary := sizes(one, first)
	for i := range first {
		forward := between(1, d.Alone(&first[i]), batch, d.Alone(&last[i]))
		c.Costs = append(c.Costs, pipelining.Cost{Forward: forward,
			Backward:    pipelining.Line{Fixed: 2 * forward.Fixed, Sample: 2 * forward.Sample}, // two gradients
			Link:        pipelining.Line{Fixed: n.LinkSeconds, Sample: boundary[i] / n.LinkBytesPerSecond},
			WeightBytes: 3 * weights[i], ActivationBytes: outputs[i]})
		c.Names = append(c.Names, first[i].Name)
	}
	return c, nil
}

// sizes are the weights and outputs of each operator of a graph at batch 1, with what
// is fused into it, and what is alive after it for a later one.
func sizes(g *model.Graph, ops []streams.Operator) (weights, outputs, boundary []float64) {
	number := map[string]int{}
	for i, op := range ops {
		number[op.Name] = i
	}
	n := len(ops)
	weights, outputs, boundary = make([]float64, n), make([]float64, n), make([]float64, n)
	at := make([]int, len(g.Tensors)) // the operator that a tensor belongs to
	current := 0
	seen := make([]bool, len(g.Tensors))
	until := make([]int, len(g.Tensors))
	for _, op := range g.Ops {
		if i, ok := number[op.Name]; ok {
			current = i
		} else if len(op.Inputs) > 0 {
			current = 0
			for _, in := range op.Inputs {
				current = max(current, at[in])
			}
		}
		for _, in := range op.Inputs {
			t := g.Tensor(in)
			if t.Role == model.Constant {
				if t.Learned && !seen[in] {
					seen[in] = true
					weights[current] += float64(t.Bytes())
				}
				continue
			}
			until[in] = max(until[in], current)
		}
		for _, out := range op.Outputs {
			at[out] = current
			outputs[current] += float64(g.Tensor(out).Bytes())
		}
	}
	for id, t := range g.Tensors {
		if t.Role == model.Activation {
			for i := at[id]; i < until[id]; i++ {
				boundary[i] += float64(t.Bytes())
			}
		}
	}
	return weights, outputs, boundary
}

// A Pipeline is a training batch divided over devices.
type Pipeline struct {
	Method string      `json:"method"`
	Status milp.Status `json:"status"`
	Stop   milp.Stop   `json:"stop"`
	// BatchSeconds is the batch's time by [pipelining.Measure], which the exact method makes
	// least, and the simulation, too.
	BatchSeconds float64            `json:"batch_s"`
	Bound        float64            `json:"bound_s"`
	MicroBatches int                `json:"micro_batches"`
	Samples      int                `json:"micro_batch"` // samples of the largest one
	Bytes        float64            `json:"device_bytes"`
	MemoryBytes  float64            `json:"memory_bytes"`
	Fits         bool               `json:"fits"`
	Stages       []Stage            `json:"stages"`
	Simulated    *devicepipe.Result `json:"simulated"`
	// Throughput is samples per second of the simulated batch.
	Throughput float64 `json:"throughput_per_s"`
}

// A Stage is consecutive layers on a device.
type Stage struct {
	First   string  `json:"first"` // operator
	Last    string  `json:"last"`
	Layers  int     `json:"layers"`
	Seconds float64 `json:"micro_batch_s"`
	// LinkSeconds is for a micro-batch to reach the next stage.
	LinkSeconds float64 `json:"link_s"`
}

// PipelineOptions are settings of [Chain.Pipeline].
type PipelineOptions = solve.Options[*pipelining.Plan]

// DeviceBatch is the paper's largest batch on one device. Mofang chooses its micro-batches with it.
const DeviceBatch = 64

// Pipeline divides the chain over at most so many devices by the named method and
// simulates the batch in GPipe's order: all forward passes first.
func (c *Chain) Pipeline(ctx context.Context, devices int, method string, opt PipelineOptions) (*Pipeline, error) {
	if _, err := solve.Find(PipelineMethods(), method, nil); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	if devices < 1 || devices > c.Server.Devices {
		return nil, fmt.Errorf("pipeline: found %d devices, expected 1 to %d, which %s has", devices, c.Server.Devices,
			c.Server.Name)
	}
	if err := c.each(); err != nil {
		return nil, err
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	out := &Pipeline{Method: method, Status: milp.Feasible, MemoryBytes: c.MemoryBytes}
	var plan *pipelining.Plan
	switch method {
	case "exact":
		var err error
		plan, out.Bound, err = pipelining.Jointly(ctx, c.Costs, devices, c.MemoryBytes, c.Batch)
		switch {
		case plan == nil && err != nil:
			return nil, err
		case err != nil:
			out.Stop = solve.Why(ctx)
		default:
			out.Status = milp.Optimal
		}
	case "gpipe":
		stages := mofang.GPipeStages(len(c.Costs), devices)
		plan = c.plan(stages, min(c.Batch, 4*len(stages)))
	default:
		for p := 1; p <= devices; p++ {
			x := c.balanced(p)
			fits, fitted := x.Bytes <= c.MemoryBytes, plan != nil && plan.Bytes <= c.MemoryBytes
			if plan == nil || fits && !fitted || fits == fitted && x.BatchSeconds < plan.BatchSeconds {
				plan = x
			}
		}
	}
	out.BatchSeconds, out.MicroBatches, out.Samples = plan.BatchSeconds, plan.MicroBatches, plan.Samples
	s := &devicepipe.Schedule{Tasks: devicepipe.GPipe(len(plan.Stages), plan.MicroBatches, true)}
	for k := range plan.Stages {
		part := &plan.Stages[k]
		f, g := part.Times(c.Costs, plan.Samples)
		stage := Stage{First: c.Names[part.From], Last: c.Names[part.To-1], Layers: part.To - part.From, Seconds: f + g}
		if k+1 < len(plan.Stages) {
			stage.LinkSeconds = part.Crossing(c.Costs, plan.Samples)
		}
		out.Stages = append(out.Stages, stage)
		s.Stages = append(s.Stages, devicepipe.Stage{Name: fmt.Sprintf("%s to %s", stage.First, stage.Last),
			ForwardSeconds: f, BackwardSeconds: g, LinkSeconds: stage.LinkSeconds})
	}
	var err error
	if out.Simulated, err = devicepipe.Simulate(s, devicepipe.Power{IdleWatts: c.Server.IdleWatts,
		BusyWatts: c.Server.BusyWatts}); err != nil {
		return nil, err
	}
	out.Bytes = plan.Bytes
	if out.Fits = out.Bytes <= c.MemoryBytes; !out.Fits {
		out.Status = milp.Limit // what the method found is no answer
	}
	out.Throughput = float64(c.Batch) / out.Simulated.Seconds
	return out, nil
}

// each reports the first operator that one device has no room for with the whole batch.
func (c *Chain) each() error {
	for i, cost := range c.Costs {
		if need := cost.WeightBytes + float64(c.Batch)*cost.ActivationBytes; need > c.MemoryBytes {
			return &pipelining.InputError{Field: fmt.Sprintf("operator %q", c.Names[i]),
				Found:    fmt.Sprintf("%.0f bytes for a batch of %d", need, c.Batch),
				Expected: fmt.Sprintf("at most %.0f, the memory of a device", c.MemoryBytes)}
		}
	}
	return nil
}

// plan is stages and b micro-batches.
func (c *Chain) plan(stages [][2]int, b int) *pipelining.Plan {
	var parts []pipelining.Part
	for _, s := range stages {
		parts = append(parts, pipelining.Part{From: s[0], To: s[1]})
	}
	return pipelining.Measure(c.Costs, parts, c.Batch, b)
}

// balanced is Mofang's plan for p devices. What a device loses by small micro-batches follows from the operators'
// times.
func (c *Chain) balanced(p int) *pipelining.Plan {
	seconds := func(samples int) (of []float64, each float64) {
		for _, cost := range c.Costs {
			t := cost.Forward.At(samples) + cost.Backward.At(samples)
			of = append(of, t)
			each += t / float64(samples)
		}
		return of, each
	}
	_, full := seconds(min(DeviceBatch, c.Batch))
	b, ok := mofang.MicroBatches(p, c.Batch, func(b int) float64 {
		_, each := seconds((c.Batch + b - 1) / b)
		return 1 - full/each
	})
	if !ok {
		b = c.Batch
	}
	samples := (c.Batch + b - 1) / b
	b = (c.Batch + samples - 1) / samples // whole samples: the fewest that are so large
	of, _ := seconds(samples)
	return c.plan(mofang.Balanced(of, p), b)
}
