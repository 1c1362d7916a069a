package balance

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/pipelining"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/mofang"
	"github.com/dsasched/dsasched/internal/devicepipe"
	"github.com/dsasched/dsasched/internal/server"
	"github.com/dsasched/dsasched/internal/streams"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// PipelineMethods are the ways to divide a batch over devices.
func PipelineMethods() []solve.Method {
	return []solve.Method{
		{Name: "mofang", Description: "merge the shortest neighbours; micro-batches by bisection"},
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
	Server      *server.Server
}

// NewChain prices the operators of a network for training on the devices of a server.
func NewChain(net network.Network, n *server.Server, batch int, efficiency float64) (*Chain, error) {
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
	weights, outputs, boundary := bytes(one, first)
	for i := range first {
		const passes = 3 // forward, and two gradients
		t1, tn := passes*d.Alone(&first[i]), passes*d.Alone(&last[i])
		cost := pipelining.Cost{SampleSeconds: t1, WeightBytes: 3 * weights[i], ActivationBytes: outputs[i]}
		if batch > 1 {
			cost.SampleSeconds = max(0, (tn-t1)/float64(batch-1))
			cost.FixedSeconds = max(0, t1-cost.SampleSeconds)
		}
		c.Names = append(c.Names, first[i].Name)
		cost.LinkFixedSeconds, cost.LinkSampleSeconds = n.LinkSeconds, boundary[i]/n.LinkBytesPerSecond
		c.Costs = append(c.Costs, cost)
	}
	return c, nil
}

// bytes are the weights and outputs of each operator of a graph at batch 1, with what
// is fused into it, and what is alive after it for a later one.
func bytes(g *model.Graph, ops []streams.Operator) (weights, outputs, boundary []float64) {
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
	Order  string      `json:"order"` // of passes, see [Orders]
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

	Schedule *devicepipe.Schedule `json:"-"`
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

// DeviceBatch is the largest batch that a device takes at a time, for Mofang's
// micro-batches, where nothing else is said: that of the paper.
const DeviceBatch = 64

// Orders lists the orders of a pipeline's passes: all forward passes first (the order for which exact plans), each backward
// pass as soon as may be, and that with two stages on each device.
func Orders() []string { return []string{"gpipe", "1f1b", "interleaved"} }

// Pipeline divides the chain over at most so many devices by the named method and
// simulates the batch in the order of passes of that name.
func (c *Chain) Pipeline(ctx context.Context, devices int, method, order string,
	opt solve.Options[*pipelining.Plan]) (*Pipeline, error) {
	chunks := 1
	switch order {
	case "interleaved":
		if chunks = 2; method == "exact" || chunks*devices > len(c.Costs) || c.Batch < devices {
			return nil, fmt.Errorf("pipeline: found order interleaved for %d operators and a batch of %d on %d devices by %s, expected method mofang or gpipe, two operators and a sample for each device",
				len(c.Costs), c.Batch, devices, method)
		}
	case "gpipe", "1f1b":
	default:
		return nil, fmt.Errorf("pipeline: found order %q, expected one of %v", order, Orders())
	}
	if _, err := solve.Find(PipelineMethods(), method, nil); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	if devices < 1 || devices > c.Server.Devices {
		return nil, fmt.Errorf("pipeline: found %d devices, expected 1 to %d, which %s has", devices, c.Server.Devices,
			c.Server.Name)
	}
	for i, cost := range c.Costs {
		if need := cost.WeightBytes + float64(c.Batch)*cost.ActivationBytes; need > c.MemoryBytes {
			return nil, &pipelining.InputError{Field: fmt.Sprintf("operator %q", c.Names[i]), Found: fmt.Sprintf("%.0f bytes for a batch of %d", need, c.Batch), Expected: fmt.Sprintf("at most %.0f, the memory of a device", c.MemoryBytes)}
		}
	}
	ctx, cancel := opt.Begin(ctx)
	defer cancel()
	out := &Pipeline{Method: method, Status: milp.Feasible, MemoryBytes: c.MemoryBytes}
	var plan *pipelining.Plan
	switch method {
	case "exact":
		var err error
		plan, err = pipelining.Jointly(ctx, c.Costs, devices, c.Batch, c.MemoryBytes)
		switch {
		case plan == nil && err != nil:
			return nil, err
		case err != nil:
			out.Stop = solve.Why(ctx)
		default:
			out.Status, out.Bound = milp.Optimal, plan.BatchSeconds
		}
	default:
		var stages [][2]int
		b := 0
		if method == "gpipe" {
			stages = mofang.GPipeStages(len(c.Costs), chunks*devices)
			b = min(c.Batch, 4*len(stages)/chunks)
		} else {
			stages = c.merged(chunks * devices)
			ok := false
			if b, ok = mofang.MicroBatches(len(stages)/chunks, c.Batch, min(DeviceBatch, c.Batch)); !ok {
				b = c.Batch
			}
		}
		if chunks > 1 { // which wants a multiple of the devices
			b = max(devices, b/devices*devices)
		}
		var ends []int
		for _, s := range stages {
			ends = append(ends, s[1])
		}
		plan = pipelining.Measure(c.Costs, ends, c.Batch, b)
	}
	out.Order, out.MicroBatches, out.Samples = order, plan.MicroBatches, plan.Samples
	s := &devicepipe.Schedule{Tasks: devicepipe.GPipe(len(plan.Stages), plan.MicroBatches, true)}
	if order != "gpipe" {
		s.Tasks = devicepipe.Interleaved(len(plan.Stages)/chunks, chunks, plan.MicroBatches)
	}
	for _, r := range plan.Stages {
		t := 0.0
		for _, cost := range c.Costs[r[0]:r[1]] {
			t += cost.FixedSeconds + float64(plan.Samples)*cost.SampleSeconds
		}
		stage := Stage{First: c.Names[r[0]], Last: c.Names[r[1]-1], Layers: r[1] - r[0], Seconds: t}
		if r[1] < len(c.Costs) {
			end := c.Costs[r[1]-1]
			stage.LinkSeconds = end.LinkFixedSeconds + float64(plan.Samples)*end.LinkSampleSeconds
		}
		out.Stages = append(out.Stages, stage)
		s.Stages = append(s.Stages, devicepipe.Stage{Name: fmt.Sprintf("%s to %s", stage.First, stage.Last),
			ForwardSeconds: t / 3, BackwardSeconds: 2 * t / 3, LinkSeconds: stage.LinkSeconds})
	}
	var err error
	if out.Simulated, err = devicepipe.Simulate(s, devicepipe.Power{IdleWatts: c.Server.IdleWatts,
		BusyWatts: c.Server.BusyWatts}); err != nil {
		return nil, err
	}
	out.Schedule = s
	if out.BatchSeconds = plan.BatchSeconds; order != "gpipe" {
		out.BatchSeconds = out.Simulated.Seconds
		out.Status = milp.Feasible // the proof is for the other order
		out.Bound = 0
	}
	out.Bytes = c.bytes(plan, s)
	if out.Fits = out.Bytes <= c.MemoryBytes; !out.Fits {
		out.Status = milp.Limit // what the method found is no answer
	}
	out.Throughput = float64(c.Batch) / out.Simulated.Seconds
	return out, nil
}

// bytes is the memory of the fullest device: its weights, and the activations of the micro-batches whose backward passes it
// waits for.
func (c *Chain) bytes(plan *pipelining.Plan, s *devicepipe.Schedule) float64 {
	devices, most := len(s.Tasks), 0.0
	for i, tasks := range s.Tasks {
		now, weights := 0.0, 0.0
		held := make([]float64, len(plan.Stages)/devices) // of a micro-batch, by chunk
		for k := range held {
			r := plan.Stages[k*devices+i]
			for _, cost := range c.Costs[r[0]:r[1]] {
				weights += cost.WeightBytes
				held[k] += float64(plan.Samples) * cost.ActivationBytes
			}
		}
		for _, t := range tasks {
			if t.Backward {
				now -= held[t.Chunk]
			} else if now += held[t.Chunk]; weights+now > most {
				most = weights + now
			}
		}
	}
	return most
}

// merged merges the two neighbours that together take least until there are as many
// stages as devices.
func (c *Chain) merged(devices int) [][2]int {
	var stages [][2]int
	var seconds []float64
	for i, cost := range c.Costs {
		stages = append(stages, [2]int{i, i + 1})
		seconds = append(seconds, cost.FixedSeconds+float64(min(DeviceBatch, c.Batch))*cost.SampleSeconds)
	}
	for len(stages) > devices {
		best := 0
		for k := range len(stages) - 1 {
			if seconds[k]+seconds[k+1] < seconds[best]+seconds[best+1] {
				best = k
			}
		}
		stages[best][1] = stages[best+1][1]
		seconds[best] += seconds[best+1]
		stages, seconds = slices.Delete(stages, best+1, best+2), slices.Delete(seconds, best+1, best+2)
	}
	return stages
}
