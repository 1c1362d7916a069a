package bound

import (
	"context"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/network"
)

// Trade is what a cluster with a share of n elements, alone on a machine, can't do without: bytes across the
// DDR and seconds of products, and a function for the least weighted sum of
// launches and of what passes these.
func Trade(net network.Network, spec *hardware.Spec, n int64) (bytes, products float64,
	least func(launches, bytes, products float64) float64, err error) {
	m, err := cost.New(spec)
	if err != nil {
		return 0, 0, nil, err
	}
	w, err := measures(context.Background(), net, m, lines)(n)
	if err != nil {
		return 0, 0, nil, err
	}
	p := w.partition(context.Background(), n, spec, 1)
	p.launch, p.ddr = 1, 1
	bytes = w.in + w.out + w.rows
	if eff := spec.DDRActivationEfficiency; eff > 0 {
		bytes /= eff
	}
	return bytes + w.weightBytes(), w.total()[matrix], p.least, nil
}

// A Copying is the term copies of a network: the seconds of a multiply-accumulate on one core, and the least
// weighted mean of its products alone by the weights of the path and of the LLB.
type Copying struct {
	Row   float64
	Least func(path, llb float64) float64
}

// Copies is a network's, of a share of n elements.
func Copies(net network.Network, spec *hardware.Spec, n int64) (*Copying, error) {
	m, err := cost.New(spec)
	if err != nil {
		return nil, err
	}
	w, err := measures(context.Background(), net, m, lines)(n)
	if err != nil {
		return nil, err
	}
	c := w.copies(m, spec)
	row, _, _ := m.MatrixRate(w.g.Tensor(w.g.Ops[0].Inputs[0]).DType)
	return &Copying{row / float64(m.MatrixRows()*m.MatrixCols()) / spec.ClockHz, func(path, llb float64) (sum float64) {
		for _, p := range c.kinds {
			sum += c.products[p] * (c.of(&p, 1-path-llb, path, llb) + (1-path-llb)*p.peak)
			switch {
			case p.waits:
				sum += path * (p.peak + p.edges)
			case p.on:
				sum += path * p.peak
			}
		}
		return sum
	}}, nil
}
