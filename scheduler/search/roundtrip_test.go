package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// What a recipe decides gives its schedule again, to the picosecond: as the decisions of a plan, out of a file, and as
// the start of a search. With DSASCHED_LONG=1 in the environment all recipes run on all of these networks and machines.
func TestDecisionsComeBack(t *testing.T) {
	full := os.Getenv("DSASCHED_LONG") != ""
	networks := []struct {
		name         string
		batch, chunk int64 // of a cluster
	}{
		{"toy-fig5", 3, 2}, {"toy-fig3", 4, 2}, {"squeezenet", 3, 2}, {"dlrm", 5, 4}, {"mobilenetv2", 2, 2},
		{"resnet18", 1, 1}, {"bert-128", 1, 1}, {"alexnet", 2, 1}, {"densenet121", 1, 1}, {"vit-b16", 1, 1},
		{"mamba-block", 1, 1},
	}
	for k, n := range networks {
		for m, name := range hardware.Presets() {
			machine, err := hardware.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if machine.Chips != nil {
				continue
			}
			for i, r := range recipes.Known() {
				// Exact spills and searched loops that no rule gives, and layers of several running sums.
				also := slices.Contains([]string{"squeezenet/stcp920-paper/exact-all", "squeezenet/ipu/graphturbo+ansor",
					"mamba-block/stcp920/tiled-llb"}, n.name+"/"+name+"/"+r.Name)
				slow := r.Exact() || r.Pick("nest") != "rules" || r.Evaluations > 0
				if every := 3 + 7*k; !full && !also && ((m*7+i)%every != 0 || slow && (k > 0 || (m+i)%5 != 0)) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", n.name, name, r.Name), func(t *testing.T) {
					comeBack(t, n.name, machine, n.batch*int64(machine.Clusters), n.chunk, r)
				})
			}
		}
	}
}

func comeBack(t *testing.T, name string, machine *hardware.Spec, batch, chunk int64, r scheduler.Recipe) {
	net, err := network.Open(name, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Fallback = nil
	made, err := scheduler.Run(t.Context(), net, machine, batch, r, scheduler.Options{Chunk: chunk})
	if err != nil {
		if scheduler.TooLarge(err) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	w := scheduler.NewProblem(net, machine, made.Spec, batch, scheduler.Options{})
	again, err := w.Result(t.Context(), made.Decisions(false, false))
	if err != nil {
		t.Fatal(err)
	}
	if again.Sim.TotalPs != made.Sim.TotalPs {
		t.Errorf("%d ps, from its decisions %d", made.Sim.TotalPs, again.Sim.TotalPs)
	}
	for i := range made.Schedule.Steps {
		if a, b := made.Schedule.Steps[i].Attending, again.Schedule.Steps[i].Attending; a != nil && b != nil {
			again.Schedule.Steps[i].Attending = a // refers to the graph
		}
	}
	text := func(s *schedule.Schedule) []byte { // not whether a memo knew its steps
		data, err := json.Marshal([]any{s.Steps, s.Values})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !bytes.Equal(text(again.Schedule), text(made.Schedule)) {
		t.Error("other steps or values from its decisions")
	}
	write := func(r *scheduler.Result) []byte {
		data, err := r.File(schedulefile.Origin{}).Write()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data := write(made)
	f, err := schedulefile.Read("", data)
	if err != nil {
		t.Fatal(err)
	}
	back, err := scheduler.Restore(t.Context(), f, machine)
	if err != nil {
		t.Fatal(err)
	}
	if back.Sim.TotalPs != made.Sim.TotalPs || !bytes.Equal(write(back), data) {
		t.Errorf("%d ps, out of its file %d; or another file", made.Sim.TotalPs, back.Sim.TotalPs)
	}
	s := &seeker{w: w, from: back, found: &Found{}, starts: map[family]startAt{}}
	if err := s.startFrom(t.Context(), []int64{made.Chunk}); err != nil {
		t.Fatal(err)
	}
	if x := s.bestAt(made.Chunk); x.Decisions == nil || x.Ps != made.Sim.TotalPs {
		t.Errorf("%d ps, as the start of a search %d", made.Sim.TotalPs, x.Ps)
	}
}
