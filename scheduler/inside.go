package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/hardware/sim"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// InsideBinding is for kernels whose loops are searched: what stays in the L1 between two of
// their layers binds both, so that no search of one layer's loops can change it.
var InsideBinding = Strategy{Name: "inside",
	Description: "alg4; layers inside kernels in other ways where trials are faster, or those of a file of tuned kernels",
	Trials:      true, Decide: bindInside}

// insideTrials is the number of other ways that are simulated for each layer of a kernel of several, and
// maxInside in all, fewer where they would be more than insideSteps steps.
const (
	insideTrials = 3
	maxInside    = 80
	insideSteps  = maxInside << 12
)

// Tuned is what a file has of tuned kernels: their nests, which strategy ansor reads, and bindings of layers inside.
type Tuned interface {
	Inside() []schedule.NamedBinding
}

// bindInside changes bindings of layers in a row, in one group or in all that are alike, and
// keeps what makes the chunk faster on all clusters.
func bindInside(ctx context.Context, d *Draft) error {
	if err := ruleFor("bind").Decide(ctx, d); err != nil {
		return err
	}
	if t := d.Options.Tuned; t != nil {
		return d.bindAs(t.Inside())
	}
	rules := d.Recipe
	rules.Picks = slices.DeleteFunc(slices.Clone(rules.Picks), func(p Pick) bool { return p.Stage == "nest" })
	opt := run{d.Options, d.state}
	opt.note, opt.unchecked, opt.memo = nil, true, schedule.NewMemo()
	memory, steps := &lower.Memory{}, 0
	latency := func(own [][]schedule.Binding, limit int64) (int64, error) {
		s := *d.Schedule
		s.LayerBindings = own
		made, err := d.again(ctx, &s, "bind", rules, opt)
		if err != nil {
			return 0, err
		}
		made.Lower.Memory, steps = memory, len(made.Steps)
		p, alike, err := lower.Outline("", d.Spec, d.onBusy(made.Schedule, d.inRow()), made.Lower)
		if err != nil {
			return 0, err
		}
		ps, _, err := sim.Latency(ctx, p, alike, limit)
		return ps, err
	}
	own := make([][]schedule.Binding, len(d.Layers))
	kinds := make([]string, len(d.Layers))
	var places [][2]int
	for k, layers := range d.Layers {
		own[k] = make([]schedule.Binding, len(layers))
		var kind strings.Builder
		for l := range layers {
			for _, id := range layers[l].Ops {
				fmt.Fprint(&kind, string(d.Graph.Op(id).Kind), d.Graph.Tensor(d.Graph.Op(id).Outputs[0]).Shape)
			}
			if len(layers) > 1 {
				places = append(places, [2]int{k, l})
			}
		}
		kinds[k] = kind.String()
	}
	if len(places) == 0 {
		return nil
	}
	best, err := latency(own, 0)
	if err != nil {
		return err
	}
	began, changed := best, 0
	r := rand.New(rand.NewPCG(1, 0))
	for range min(maxInside, insideTrials*len(places), max(1, insideSteps/steps)) {
		place := places[r.IntN(len(places))]
		k, first, more := place[0], place[1], r.IntN(4)
		choice := d.insideChoices(k, first)
		if len(choice) == 0 {
			continue
		}
		to := choice[r.IntN(len(choice))]
		everywhere := r.IntN(3) > 0
		made := slices.Clone(own)
		for i := range made {
			if i != k && (!everywhere || kinds[i] != kinds[k]) {
				continue
			}
			made[i] = slices.Clone(made[i])
			for l := first; l <= min(first+more, len(made[i])-1); l++ {
				if l == first || slices.ContainsFunc(d.insideChoices(i, l), to.Equal) {
					made[i][l] = to
				}
			}
		}
		ps, err := latency(made, best)
		if err != nil {
			return err
		}
		if ps < best {
			best, own = ps, made
			changed++
		}
	}
	d.LayerBindings = own
	if changed > 0 {
		d.state.tell(fmt.Sprintf("%d changes of bindings inside kernels make a chunk %.2f %% faster", changed,
			100*(1-float64(best)/float64(began))))
	}
	return nil
}

// inRow is the number of consecutive chunks that are simulated to judge one: what overlaps between
// chunks counts, if a cluster runs several.
func (d *Draft) inRow() int {
	if d.state.times == 1 {
		return 1
	}
	return 2
}

// BusyPlans are plans of a schedule, run in a row, see onBusy.
func (d *Draft) BusyPlans(s *schedule.Schedule) [][]lower.Segment { return d.onBusy(s, d.inRow()) }

// onBusy are plans of a schedule that all clusters that have work run so many times, while they share the DDR.
func (d *Draft) onBusy(s *schedule.Schedule, times int) [][]lower.Segment {
	plans := make([][]lower.Segment, d.Spec.Clusters)
	for k := range d.BusyClusters() {
		plans[k] = []lower.Segment{{Schedule: s, Iterations: times}}
	}
	return plans
}

// insideChoices are the bindings that a layer of a group may have.
func (d *Draft) insideChoices(k, l int) []schedule.Binding {
	layer := &d.Layers[k][l]
	inst := &d.Instances.Instances[d.Instances.First[k]+int(d.Grouping.Groups[k].Factor()/2)]
	if len(layer.Outputs) == 0 || inst.Regions[layer.Outputs[0]].Elements() == 0 {
		return nil
	}
	return schedule.BindingsOf(d.Schedule, d.LayerKind(k, l), layer, layer.Outputs[0], inst.Regions[layer.Outputs[0]])
}

// bindAs gives layers the bindings of a file.
func (d *Draft) bindAs(list []schedule.NamedBinding) error {
	for i, b := range list {
		if b.Graph != d.Graph.Name {
			continue
		}
		found := false
		for k, layers := range d.Layers {
			for l := range layers {
				if d.Graph.Op(layers[l].Anchor).Name != b.Layer {
					continue
				}
				found = true
				var shape model.Shape
				if len(layers[l].Outputs) > 0 {
					shape = d.Graph.Tensor(layers[l].Outputs[0]).Shape
				}
				if len(b.Cores) != len(shape) || slices.ContainsFunc(b.Cores, func(f int64) bool { return f < 1 }) ||
					b.Cores.Cores() > schedule.CoresWithL1(d.Spec) {
					return fmt.Errorf("bindings[%d].cores is %v, expected a factor for each of %d dimensions, together at most %d", i,
						b.Cores, len(shape), schedule.CoresWithL1(d.Spec))
				}
				if d.LayerBindings == nil {
					d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
				}
				if d.LayerBindings[k] == nil {
					d.LayerBindings[k] = make([]schedule.Binding, len(layers))
				}
				d.LayerBindings[k][l] = b.Cores
			}
		}
		if !found {
			return fmt.Errorf("bindings[%d].layer is %q, which is no layer of %s", i, b.Layer, b.Graph)
		}
	}
	return nil
}
