package scheduler

import (
	"slices"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// A file has the values of settings of the table that the recipe does not say, so that a new row changes no file; and
// all values of a caller's own.
func TestSettingsInFiles(t *testing.T) {
	x := Setting[int64]{Name: "x", Choices: []Choice[int64]{{Name: "one", Value: 1}, {Name: "two", Value: 2}}}
	row := x.Stage()
	recipe, err := Lookup(GreedyRecipe)
	if err != nil {
		t.Fatal(err)
	}
	table := recipe
	table.stages = append(Stages(), row)
	for _, c := range []struct {
		recipe Recipe
		pick   string
		value  int64
		want   string // "": not in the file
	}{
		{table, "one", 1, ""}, {table, "one", 2, "2"}, {table, "two", 1, "1"}, {table, "two", 2, ""},
		{recipe.WithStage("", row), "one", 1, "1"},
	} {
		r, s := &Result{Recipe: c.recipe.Picking(Pick{"x", c.pick})}, &schedule.Schedule{}
		r.keep(s, map[string]Decision{"x": plain[int64]{&x, c.value}, "order": unread{"order", "7"}})
		want := []schedulefile.Decision{{Stage: "order", Value: "7"}}
		if c.want != "" {
			want = append(want, schedulefile.Decision{Stage: "x", Value: c.want})
		}
		if got := r.written(s); !slices.Equal(got, want) {
			t.Errorf("picked %s, decided %d: the file has %v, expected %v", c.pick, c.value, got, want)
		}
	}
	if y, err := row.read([]byte("2")); err != nil || y.(plain[int64]).value != 2 {
		t.Errorf("2 is read as %v (%v)", y, err)
	}
	if _, err := row.read([]byte(`"a"`)); err == nil || err.Error() != `value is "a", expected one such as 1` {
		t.Errorf(`"a": %v`, err)
	}
}

// Schedules with each room for weights in the L1s keep all rules, and are the same read from their files: all of a
// result have one room, also those of a chunk of another size, and decisions of it that another is decided for.
func TestRoomsForWeights(t *testing.T) {
	ctx := t.Context()
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := Lookup("tiled-moved")
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"ipu", "goya", "stcp920"} {
		described, err := hardware.Load(machine)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := LevelAuto.Machine(described)
		if err != nil {
			t.Fatal(err)
		}
		rooms, batch := map[int64]bool{}, int64(5*spec.Clusters)
		for _, room := range buffer.Choices {
			r := recipe.Picking(Pick{buffer.Name, room.Name})
			made, err := Run(ctx, net, described, batch, r, Options{Chunk: 2})
			if err != nil {
				t.Fatal(err)
			}
			rooms[room.Value.HomeBytes(spec)<<32+made.Schedule.L1Capacity] = true
			for _, other := range buffer.Choices {
				w := NewProblem(net, described, spec, batch, Options{})
				p := made.Decisions(false, true).with(plain[schedule.WeightRoom]{&buffer, other.Value})
				changed, _, err := w.Decided(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				if err := changed.Simulate(ctx); err != nil {
					t.Fatalf("%s, %s for %s: %v", machine, other.Name, room.Name, err)
				}
				for s := range changed.Sizes() {
					if s.WeightRoom != other.Value {
						t.Errorf("%s: a schedule has room %q, decided is %q", machine, s.WeightRoom, other.Value)
					}
				}
			}
			f := made.File(schedulefile.Origin{})
			read, err := Restore(ctx, f, described)
			if err != nil {
				t.Fatal(err)
			}
			if err := read.Simulate(ctx); err != nil {
				t.Fatal(err)
			}
			if read.Sim.TotalPs != made.Sim.TotalPs || read.Schedule.WeightRoom != room.Value {
				t.Errorf("%s, %s: %d ps, from the file with room %q %d", machine, room.Name, made.Sim.TotalPs,
					read.Schedule.WeightRoom, read.Sim.TotalPs)
			}
		}
		if want := map[string]int{"ipu": 2, "goya": 3, "stcp920": 1}[machine]; len(rooms) != want {
			t.Errorf("%s: rooms differ in %d ways, expected %d", machine, len(rooms), want)
		}
	}
}
