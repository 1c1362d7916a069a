package balance

import (
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/systems/mofang/partition"
	"github.com/dsasched/dsasched/systems/mofang/streams"
	"github.com/dsasched/dsasched/systems/training"
)

// Division makes the training step of a network a graph to divide over so many devices
// of a server: an operator's gradients and its parameters' updates have its colour.
//
// A node takes the longer of its work on all processors, with the given efficiency (0 is [streams.Efficiency]), and
// its bytes at the memory's bandwidth, and a launch; moving a result takes the link's latency and its bytes over the
// link. Memory has the results of forward operators, and of each parameter the weight, its gradient and its momentum.
func Division(net *model.Graph, s *chips.Server, devices int, efficiency float64) (*partition.Problem, error) {
	if devices < 1 || devices > s.Devices {
		return nil, fmt.Errorf("%s: found %d devices, expected 1 to %d, which %s has", net.Name, devices, s.Devices, s.Name)
	}
	spec, err := hardware.Load(s.Device)
	if err != nil {
		return nil, err
	}
	d, err := streams.NewDevice(spec, efficiency)
	if err != nil {
		return nil, err
	}
	step, err := training.Derive(net)
	if err != nil {
		return nil, err
	}
	dtype := net.Tensor(net.Ops[0].Outputs[0]).DType.String()
	rate := d.MACsPerSecond[dtype] * float64(d.Processors)
	if rate == 0 {
		return nil, fmt.Errorf("%s: element type %s does not run on %s", net.Name, dtype, d.Name)
	}
	p := &partition.Problem{Name: net.Name, Accelerators: devices, MemoryBytes: float64(spec.DDR.SizeBytes)}
	for i, n := range step.Nodes {
		work := float64(n.MACs) + float64(n.Vector.Total())
		v := partition.Node{ID: i, Name: n.Name, Supported: true, Backward: n.Pass != training.Forward, Color: int(n.Of),
			AcceleratorLatency: d.LaunchSeconds + max(work/rate, float64(n.InputBytes+n.OutputBytes)/d.BytesPerSecond)}
		v.CPULatency = v.AcceleratorLatency
		switch n.Pass {
		case training.Forward:
			v.SizeBytes = float64(n.OutputBytes)
		case training.Update:
			v.SizeBytes = float64(n.InputBytes)
		}
		p.Nodes = append(p.Nodes, v)
		for _, h := range n.After {
			p.Edges = append(p.Edges, partition.Edge{From: h, To: i,
				Cost: s.LinkSeconds + float64(step.Nodes[h].OutputBytes)/s.LinkBytesPerSecond})
		}
	}
	return p, p.Validate()
}
