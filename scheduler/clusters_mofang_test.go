package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// Loops are searched in the stages of a network, too.
func TestSearchedLoopsOfStages(t *testing.T) {
	net, chip, recipe := standing(t, "toy-fig5", "stcp920", "graphturbo+ansor")
	recipe.Picks, recipe.Fallback = slices.Clone(recipe.Picks), nil
	r, err := Run(t.Context(), net, chip, 1, recipe,
		Options{Chunk: 1, Clusters: "pipeline", Uneven: schedule.UnevenNone})
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

// The note on stages is of the graph that runs, in which attentions are operators.
func TestStagesOfRewrittenGraph(t *testing.T) {
	net, chip, recipe := standing(t, "bert-128", "stcp920", "tiled-llb")
	r, err := Run(t.Context(), net, chip, 1, recipe, Options{Clusters: "pipeline"})
	if err != nil {
		t.Fatal(err)
	}
	var n [4]int
	note := r.Notes[len(r.Notes)-1]
	if _, err := fmt.Sscanf(note, "stages of %d, %d, %d, %d layers", &n[0], &n[1], &n[2], &n[3]); err != nil {
		t.Fatalf("%q: %v", r.Notes, err)
	}
	g := r.Schedule.Graph
	if want := len(schedule.Layers(g, schedule.ExecutionOrder(g))); n[0]+n[1]+n[2]+n[3] != want {
		t.Errorf("%q, of %d layers", note, want)
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
		!strings.Contains(err.Error(), `clusters is "batch", expected pipeline`) {
		t.Errorf("by the batch: %v", err)
	}
	r, err := Run(t.Context(), net, machine, 2, recipe, Options{Chunk: 1, Clusters: "pipeline"})
	if err != nil {
		t.Fatal(err)
	}
	moves := func(r *Result) {
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
	}
	moves(r)
	// Operands of tiles gather in the LLB, several tiles in one load.
	if recipe, err = Lookup("tiled-llb"); err != nil {
		t.Fatal(err)
	}
	gathered, err := Run(t.Context(), net, machine, 8, recipe, Options{Chunk: 4, Clusters: "pipeline"})
	if err != nil {
		t.Fatal(err)
	}
	moves(gathered)
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
	r, err := Run(t.Context(), net, machine, 4, recipe, Options{Chunk: 2, Clusters: "pipeline"})
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
