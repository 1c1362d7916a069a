package bound

import (
	"context"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
)

// scope says in a line which schedules a bound is of.
const scope = "even batch split over one chip's clusters, the same plan on each, fusion of linear operator chains"

// formScope is that of [AnyForm].
const formScope = "even batch split over one chip's clusters, the same plan on each, any fusion that a variant makes: " +
	"attention as one operator or not, feed-forwards in slices where they fit neither the L1s nor the LLB"

// layers says which operators may be one layer.
type layers int

const (
	// Straight lines: each light operator is the only reader of the one before it.
	lines layers = iota
	// Whatever has no product, or one in front of light operators.
	anyLayers
)

// inSlices says which feed-forwards of a network a variant may cut where a cluster has n batch elements at most; it is
// not nil. Of several kinds of core each may be a cluster of its own, with a part of the memory.
func inSlices(net network.Network, spec *hardware.Spec, n int64) (cut []bool, err error) {
	g, err := net.Graph(n)
	if err != nil {
		return nil, err
	}
	room := schedule.LargestRoom(spec)
	if apart, err := spec.Apart(); err == nil {
		room = min(room, schedule.LargestRoom(apart))
	}
	cut = []bool{}
	for _, f := range simplify.FeedForwards(g) {
		cut = append(cut, f.Pays(g, room))
	}
	return cut, nil
}

func (may layers) scope() string {
	if may != lines {
		return formScope
	}
	return scope
}

// joins reports whether an operator may be in one layer with that which makes an operand of it.
func (w *work) joins(op *model.Op, t *model.Tensor) bool {
	if w.may == lines {
		return light(op) && len(t.Consumers) == 1 && !w.g.IsOutput(t.ID) && len(w.g.Op(t.Producer).Outputs) == 1
	}
	// What reduces is in no layer of a product. Without products, a layer takes as long as its operators one after the
	// other where all of them use one unit.
	return light(op) || !w.oneUnit && !w.g.OnMatrixUnit(op) && !w.g.OnMatrixUnit(w.g.Op(t.Producer))
}

// AnyForm is [Cold] of more schedules: layers may be of any form, as those of TVM and AStitch and the scans of variant
// tiled, and the graph may be that with attention as one operator.
func AnyForm(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (*Bound, error) {
	list, err := graphs(net)
	var least *Bound
	for _, n := range list {
		cut, err := inSlices(n, spec, ceilDiv(batch, int64(spec.Clusters)))
		if err != nil {
			return nil, err
		}
		b, _, _, err := bounds(ctx, n, spec, batch, anyLayers, cut)
		if err != nil {
			return nil, err
		}
		if least == nil || b.Seconds < least.Seconds {
			least = b
		}
	}
	return least, err
}

// graphs are a network, and that with attention as one operator if it has any.
func graphs(net network.Network) ([]network.Network, error) {
	g, err := net.Graph(1)
	if err != nil {
		return nil, err
	}
	fused := network.FuseAttention(net)
	f, err := fused.Graph(1)
	if err != nil {
		return nil, err
	}
	if len(f.Ops) == len(g.Ops) {
		return []network.Network{net}, nil
	}
	return []network.Network{net, fused}, nil
}

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
// a plan of its own, of schedules of all forms; see [AnyForm]. Kinds of core may work one behind the other or, each as
// a cluster of its own ([hardware.Spec.Apart]), side by side.
func AnyDivision(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (seconds float64,
	err error) {
	list, err := graphs(net)
	seconds = math.Inf(1)
	for _, n := range list {
		s, err := anyDivision(ctx, n, spec, batch)
		if err != nil {
			return 0, err
		}
		seconds = math.Min(seconds, s)
	}
	return seconds, err
}

func anyDivision(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (seconds float64,
	err error) {
	if err := valid(spec, batch); err != nil {
		return 0, err
	}
	cut, err := inSlices(net, spec, batch) // by the memory that there is
	if err != nil {
		return 0, err
	}
	spec = spec.Fast()
	m, err := cost.New(spec)
	if err != nil {
		return 0, err
	}
	of := measures(ctx, net, m, anyLayers, cut)
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
	port := spec.DDRLink.BandwidthBytesPerSecond
	if port > 0 {
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
	if spec.Mixed() {
		beside := math.Max((weights+moved)/ddr, launch+all.divided(clusters))
		if port > 0 {
			beside = math.Max(beside, (weights+io)/port/float64(clusters))
		}
		least = math.Min(least, beside)
	}
	return math.Floor(least*exact*1e12) * 1e-12, nil
}

// divided bounds the time of the busiest unit where kinds of core work side by side on clusters of their own: by the
// fractional load of each unit.
func (w *work) divided(clusters int64) (seconds float64) {
	for u := range numUnits {
		var costs [][]float64
		for i := range w.ops {
			if w.ops[i][u] == 0 { // by some kind, or of this share
				continue
			}
			var row []float64
			for _, t := range w.onKinds[i] {
				row = append(row, t[u])
			}
			costs = append(costs, row)
		}
		load, _ := Load(costs)
		seconds = math.Max(seconds, load/float64(clusters))
	}
	return seconds
}

// alone is the bound of a cluster by itself.
func (w *work) alone(spec *hardware.Spec) float64 {
	launch, io, weights := spec.LaunchSeconds, w.in+w.out+w.rows, w.weightBytes()
	far, near := ways(spec)
	start, after := w.outer(launch, far, near)
	seconds := max(launch+best(w.total()).most(), launch+w.series().all(), w.chain(start, after, nil))
	if port := spec.DDRLink.BandwidthBytesPerSecond; port > 0 {
		seconds = max(seconds, (weights+io)/port)
	}
	if spec.LLB != nil {
		seconds = max(seconds, 2*(weights+io)/spec.LLB.BandwidthBytesPerSecond)
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
