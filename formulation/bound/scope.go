package bound

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model/network"
)

// Scope says in a line which schedules a bound is of.
const Scope = "schedules that divide the batch evenly over all clusters of one chip, by the same plan where clusters " +
	"have as much to do, in layers that are straight lines of the network's own operators"

// Check is an error if a schedule that the bound is of takes less, so that one of the two is wrong.
func (b *Bound) Check(latencySeconds float64) error {
	if latencySeconds < b.Seconds {
		return fmt.Errorf("internal error: a schedule takes %g s, less than the bound of %g s by the term %q",
			latencySeconds, b.Seconds, b.Term)
	}
	return nil
}

// AnyDivision bounds the simulated latency of a batch in whatever way the clusters of a machine divide
// the batch or the network between them: any of them may be idle or have more to do than others, and each
// a plan of its own.
func AnyDivision(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (seconds float64,
	err error) {
	if err := valid(spec, batch); err != nil {
		return 0, err
	}
	m, err := cost.New(spec)
	if err != nil {
		return 0, err
	}
	of := measures(ctx, net, m)
	all, err := of(batch)
	if err != nil {
		return 0, err
	}
	spec = all.launching(spec)
	weights, io := all.weightBytes(), all.in+all.out+all.rows
	moved := io
	if eff := spec.DDRActivationEfficiency; eff > 0 {
		moved /= eff
	}
	launch, ddr, clusters := spec.LaunchSeconds, spec.DDR.BandwidthBytesPerSecond, int64(spec.Clusters)
	// Clusters that each have a part of the network: what one of them has of the work, and all load.
	least := math.Max((weights+moved)/ddr, launch+best(all.total()).most()/float64(clusters))
	if port := spec.DDRLink.BandwidthBytesPerSecond; port > 0 {
		least = math.Max(least, (weights+io)/port/float64(clusters))
	}
	// Clusters that each have a part of the batch: of so many that are busy, one has the largest share at least.
	// What holds for many with less to do holds for fewer with more.
	for many := min(clusters, batch); many > 0; many /= 2 {
		w, err := of(ceilDiv(batch, many))
		if err != nil {
			return 0, err
		}
		own := w.alone(spec)
		for busy := many/2 + 1; busy <= many; busy++ {
			least = math.Min(least, math.Max(own, (float64(busy)*weights+moved)/ddr))
		}
	}
	return math.Floor(least*exact*1e12) * 1e-12, nil
}

// alone is what a cluster takes by itself.
func (w *work) alone(spec *hardware.Spec) float64 {
	launch, io, weights := spec.LaunchSeconds, w.in+w.out+w.rows, w.weightBytes()
	start, after := w.outer(launch, latency(spec))
	seconds := max(launch+best(w.total()).most(), launch+sumFrom(w.series())[0], w.chain(start, after, nil))
	if port := spec.DDRLink.BandwidthBytesPerSecond; port > 0 {
		seconds = max(seconds, (weights+io)/port)
	}
	if spec.GB != nil {
		seconds = max(seconds, 2*(weights+io)/spec.GB.BandwidthBytesPerSecond)
	}
	return seconds
}

// launching is the machine, without the time of launches if no result asks for one.
func (w *work) launching(spec *hardware.Spec) *hardware.Spec {
	for i := range w.ops {
		if w.needed(i) {
			return spec
		}
	}
	idle := *spec
	idle.LaunchSeconds = 0
	return &idle
}

// valid refuses what no bound is of.
func valid(spec *hardware.Spec, batch int64) error {
	if batch < 1 {
		return fmt.Errorf("bound: batch is %d, expected at least 1", batch)
	}
	if n := spec.ChipCount(); n > 1 {
		return fmt.Errorf("bound: %s has %d chips, expected one", spec.Name, n)
	}
	return nil
}
