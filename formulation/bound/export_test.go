package bound

import (
	"context"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/network"
)

// A Traded has the bytes across the DDR and the seconds of products that no schedule of a cluster's share, alone on a
// machine, does without.
type Traded struct {
	Bytes, Products float64
	p               *partition
}

// Trade finds them for a share of n elements.
func Trade(net network.Network, spec *hardware.Spec, n int64) (*Traded, error) {
	m, err := cost.New(spec)
	if err != nil {
		return nil, err
	}
	w, err := measures(context.Background(), net, m, lines, nil)(n)
	if err != nil {
		return nil, err
	}
	t := &Traded{w.in + w.out + w.rows, w.total()[matrix], w.partition(context.Background(), n, spec, 1)}
	t.p.launch, t.p.ddr = 1, 1
	if eff := spec.DDRActivationEfficiency; eff > 0 {
		t.Bytes /= eff
	}
	t.Bytes += w.weightBytes()
	return t, nil
}

// Least is the least weighted sum of launches and of what passes the bytes and the products.
func (t *Traded) Least(launches, bytes, products float64) float64 {
	return t.p.least(launches, bytes, products)
}

// Fewest is the least weighted sum of what passes the bytes and the products with each number of launches up to most.
func (t *Traded) Fewest(most int, bytes, products float64) []float64 {
	return t.p.fewest(context.Background(), &prices{0, bytes, products}, len(t.p.markers), most)
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
	w, err := measures(context.Background(), net, m, lines, nil)(n)
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
