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
	p := w.partition(n, spec, 1)
	p.launch, p.ddr = 1, 1
	bytes = w.in + w.out + w.rows
	if eff := spec.DDRActivationEfficiency; eff > 0 {
		bytes /= eff
	}
	return bytes + w.weightBytes(), w.total()[matrix], p.least, nil
}
