package scheduler

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// Tables that are looked up side by side have more ideals than can be visited: their stages are
// those along topological orders, which the note says.
func TestStagesOfManyBranches(t *testing.T) {
	net, err := network.Open("dlrm", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	g, err := net.Graph(4)
	if err != nil {
		t.Fatal(err)
	}
	stage, note, err := stages(t.Context(), g, chip, run{Options: Options{Clusters: Pipelined}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(note, "not proven") || slices.Max(stage) == 0 || slices.Max(stage) >= chip.Clusters {
		t.Errorf("stages %v, note %q", stage, note)
	}
	for _, op := range g.Ops {
		for _, in := range op.Inputs {
			if p := g.Tensor(in).Producer; p >= 0 && stage[p] > stage[op.ID] {
				t.Errorf("%s of stage %d reads what stage %d makes", op.Name, stage[op.ID], stage[p])
			}
		}
	}
}

// Loops are searched in the stages of a network, too.
func TestSearchedLoopsOfStages(t *testing.T) {
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := Lookup("graphturbo+ansor")
	if err != nil {
		t.Fatal(err)
	}
	recipe.Picks, recipe.Fallback = slices.Clone(recipe.Picks), nil
	recipe.set(Pick{"bind", "alg4"})
	r, err := Run(t.Context(), net, chip, 1, recipe,
		Options{Chunk: 1, Clusters: Pipelined, Uneven: schedule.UnevenNone})
	if err != nil {
		t.Fatal(err)
	}
	nests := 0
	for _, plan := range r.Plans {
		for _, st := range plan[0].Schedule.Steps {
			if st.Nest != nil {
				nests++
			}
		}
	}
	if nests == 0 {
		t.Error("no loops were found")
	}
}

// Bindings of layers inside groups are decided for all clusters at once, and the sum of what the
// clusters run has all of them, in whatever order groups come.
func TestBindingsOfClusters(t *testing.T) {
	net, err := network.Open("resnet18", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chip, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	recipe = recipe.With("bind", Strategy{Name: "second choice", Decide: func(ctx context.Context, d *Draft) error {
		calls++
		if err := ruleFor("bind").Decide(ctx, d); err != nil {
			return err
		}
		d.LayerBindings = make([][]schedule.Binding, len(d.Layers))
		for k, layers := range d.Layers {
			d.LayerBindings[k] = make([]schedule.Binding, len(layers))
			for l := range layers {
				if choices := d.insideChoices(k, l); len(choices) > 1 {
					d.LayerBindings[k][l] = choices[1]
				}
			}
		}
		return nil
	}})
	r, err := Run(t.Context(), net, chip, 2, recipe,
		Options{Chunk: 2, Clusters: OverLayer, Uneven: schedule.UnevenNone})
	if err != nil {
		t.Fatal(err)
	}
	if most := len(OverLayer.weights(chip)); calls > most {
		t.Errorf("bindings were decided %d times, at most once for each of %d settings", calls, most)
	}
	var parts []*schedule.Schedule
	for _, plan := range r.Plans {
		parts = append(parts, plan[0].Schedule)
	}
	whole := r.Schedule
	backward := slices.Clone(whole.Order)
	slices.Reverse(backward)
	if len(whole.Grouping.Groups) < 2 {
		t.Fatal("one group has no order")
	}
	sum, err := joined(backward, parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, sum := range []*schedule.Schedule{whole, sum} {
		for k := range whole.Grouping.Groups {
			for c, part := range parts {
				if !reflect.DeepEqual(sum.LayerBindings[k], part.LayerBindings[k]) {
					t.Errorf("group %d: %v, cluster %d has %v", k, sum.LayerBindings[k], c, part.LayerBindings[k])
				}
			}
		}
	}
	data, err := File(r, schedulefile.Origin{Model: "resnet18"}).Write()
	if err != nil {
		t.Fatal(err)
	}
	f, err := schedulefile.Read("a.json", data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore(t.Context(), f, chip)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Program, r.Program) {
		t.Error("another program")
	}
}

// What a stage reads of one on another chip takes that chip's DDR and the link, each load of it,
// and nothing else does.
func TestStagesOverChips(t *testing.T) {
	net, err := network.Open("resnet18", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := OpenMachine("stcp920x4")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), net, machine, 16, recipe, Options{Chunk: 1}); err == nil ||
		!strings.Contains(err.Error(), `clusters is "batch", expected "pipeline"`) {
		t.Errorf("by the batch: %v", err)
	}
	ring := machine.Clone()
	ring.Chips.Torus = []int{4}
	if _, err := Run(t.Context(), net, ring, 2, recipe, Options{Chunk: 1, Clusters: Pipelined}); err == nil ||
		!strings.Contains(err.Error(), "network.kind: found ring, expected all-to-all") {
		t.Errorf("on a ring: %v", err)
	}
	r, err := Run(t.Context(), net, machine, 2, recipe, Options{Chunk: 1, Clusters: Pipelined})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Program
	named := func(name string) int32 {
		return int32(slices.IndexFunc(p.Resources, func(r isa.Resource) bool { return r.Name == name }))
	}
	crossed := make([]int64, len(p.Resources)) // bytes that a chip sends
	for i := range p.Commands {
		c := &p.Commands[i]
		if c.Kind != isa.DDRLoad && c.Kind != isa.DDRStore {
			continue
		}
		reads, _, ok := p.Data(i)
		if !ok {
			t.Fatalf("command %d moves nothing that is known", i)
		}
		here := p.Queues[c.Queue].Cluster / int32(machine.Clusters)
		from := here
		if k := reads[0].Instance; k >= 0 {
			from = int32(r.Schedule.Place[k]) / int32(machine.Clusters)
		}
		latency := machine.DDR.LatencySeconds + machine.DDRLink.LatencySeconds
		want := []int32{named(fmt.Sprintf("chip%d.ddr", from))}
		if from != here {
			latency += machine.Chips.Link.LatencySeconds
			want = append(want, named(fmt.Sprintf("chip%d.to-chips", from)), named(fmt.Sprintf("chip%d.from-chips", here)))
			crossed[want[1]] += c.Bytes
		}
		var chips []int32 // resources of chips
		for _, u := range c.Uses {
			if u.Resource < int32(3*machine.Chips.Count) {
				chips = append(chips, u.Resource)
			}
		}
		if !slices.Equal(chips, want) || c.DurationPs != int64(math.Ceil(latency*1e12)) {
			t.Fatalf("command %d of chip %d moves what chip %d has over %v in %d ps and more, expected %v and %g s", i, here,
				from, chips, c.DurationPs, want, latency)
		}
	}
	for k := range machine.Chips.Count {
		to := named(fmt.Sprintf("chip%d.to-chips", k))
		if k == 0 && crossed[to] == 0 || r.Sim.Resources[to].Bytes != crossed[to] {
			t.Errorf("chip %d sends %d bytes, by its commands %d", k, r.Sim.Resources[to].Bytes, crossed[to])
		}
	}
	// A link on which bytes crawl can't make it faster, nor can one of no latency make it slower.
	for _, c := range []struct {
		link   hardware.Link
		faster bool
	}{{hardware.Link{BandwidthBytesPerSecond: 1e9, LatencySeconds: 1e-3}, false},
		{hardware.Link{BandwidthBytesPerSecond: 1e12}, true}} {
		other := *machine
		other.Chips = &hardware.Chips{Count: machine.Chips.Count, Link: c.link}
		seconds, err := r.LatencyOn(t.Context(), &other)
		if err != nil {
			t.Fatal(err)
		}
		if was := r.LatencySeconds(); seconds == was || (seconds < was) != c.faster {
			t.Errorf("%g s with the link %+v, %g s with %+v", seconds, c.link, was, machine.Chips.Link)
		}
	}
}

// With several loads in flight, neither the load of what another cluster makes nor its request starts before it is
// there.
func TestRequestsWaitForOtherClusters(t *testing.T) {
	net, err := network.Open("resnet18", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := OpenMachine("v100x16")
	if err != nil {
		t.Fatal(err)
	}
	recipe := Parse("ahead", "",
		"group=alg2 split=alg1 outputs=l1 order=alg3 bind=alg4 issue=cross-layer prefetch=at-start weights=keep")
	r, err := Run(t.Context(), net, machine, 4, recipe, Options{Chunk: 2, Clusters: Pipelined})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Program
	waiting := 0
	for i := range p.Commands {
		c := &p.Commands[i]
		if c.Kind != isa.DDRLoad || p.Queues[c.Queue].Kind == isa.OtherQueue {
			continue
		}
		made := int64(-1) // when all that others make is there
		for _, d := range c.Deps {
			if p.Commands[d].Kind == isa.DDRStore && p.Queues[p.Commands[d].Queue].Cluster != p.Queues[c.Queue].Cluster {
				made = max(made, r.Sim.End[d])
			}
		}
		if made < 0 {
			continue
		}
		waiting++
		for _, d := range c.Deps {
			if p.Queues[p.Commands[d].Queue].Kind == isa.OtherQueue && r.Sim.Start[d] < made {
				t.Errorf("command %d: its request starts at %d ps, what it loads is there at %d", i, r.Sim.Start[d], made)
			}
		}
	}
	if waiting == 0 {
		t.Error("no load waits for another cluster")
	}
}
