package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// A restored schedule is one that is written and read again.
type restored struct {
	model, machine, variant string
	batch, chunk            int64
	clusters                scheduler.Division
}

// restoredOfSystems are those by divisions of systems, which can be taken off.
var restoredOfSystems []restored

// What is written, read back and simulated is what was simulated.
func TestRestore(t *testing.T) {
	for _, c := range append([]restored{
		{"resnet50", "stcp920", "cross-layer", 32, 0, scheduler.OverBatch},
		{"resnet50", "stcp920", "tvm", 5, 2, scheduler.OverBatch},
		{"bert-128", "stcp920", "cross-layer", 16, 0, scheduler.OverBatch},
		{"bert-128", "stcp920", "astitch", 4, 0, scheduler.OverBatch},
		{"toy-fig5", "stcp920", "llb", 7, 0, scheduler.OverBatch},
		{"toy-fig5", "stcp920-paper", "exact-all", 4, 0, scheduler.OverBatch},
		{"mobilenetv2", "goya", "cross-layer", 4, 0, scheduler.OverBatch},
		{"dlrm", "stcp920", "cross-layer", 64, 0, scheduler.OverBatch},
		{"densenet121", "a100", "l1", 1, 0, scheduler.OverBatch},
		{"vit-b16", "stcp920", "cross-layer", 8, 2, scheduler.OverBatch},      // uneven slices
		{"vit-b16-384", "stcp920", "cross-layer", 16, 4, scheduler.OverBatch}, // and instances
		{"resnet50", "stcp920", "cross-layer", 4, 4, scheduler.OverLayer},
	}, restoredOfSystems...) {
		t.Run(c.model+" "+c.machine+" "+c.variant+" "+c.clusters.Name(), func(t *testing.T) {
			src, err := network.Open(c.model, network.Options{})
			if err != nil {
				t.Fatal(err)
			}
			spec, err := scheduler.OpenMachine(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			name, bind, searched := strings.Cut(c.variant, "+bind=")
			v, err := recipes.Lookup(name)
			if err == nil && searched {
				v, err = v.Replace(scheduler.Options{}, scheduler.Pick{Stage: "bind", Strategy: bind})
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := scheduler.Run(context.Background(), src, spec, c.batch, v,
				scheduler.Options{Chunk: c.chunk, Clusters: c.clusters})
			if err != nil {
				t.Fatal(err)
			}
			first, err := r.File(schedulefile.Origin{Model: c.model}).Write()
			if err != nil {
				t.Fatal(err)
			}
			f, err := schedulefile.Read("a.json", first)
			if err != nil {
				t.Fatal(err)
			}
			again, err := scheduler.Restore(context.Background(), f, spec)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(again.Program, r.Program) {
				t.Error("another program")
			}
			if !reflect.DeepEqual(again.Sim, r.Sim) {
				t.Error("another result")
			}
			if !slices.Equal(again.Notes, r.Notes) || !reflect.DeepEqual(again.Shares, r.Shares) || again.Chunk != r.Chunk {
				t.Errorf("notes %q, shares %v, chunk %d; want %q, %v, %d", again.Notes, again.Shares, again.Chunk, r.Notes,
					r.Shares, r.Chunk)
			}
			second, err := again.File(*f.Origin).Write()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Error("the file is another one when it is written again")
			}
			if third, err := f.Write(); err != nil || !bytes.Equal(first, third) {
				t.Errorf("what was read is written as something else: %v", err)
			}
		})
	}
}

// A file of another maker, with no word on how it came about, is written again as it is.
// The text of a recipe stands for the same decisions again, whatever its name.
func TestNamed(t *testing.T) {
	src, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	base, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	v, err := base.Replace(scheduler.Options{}, scheduler.Pick{Stage: "split", Strategy: "search"},
		scheduler.Pick{Stage: "order", Strategy: "dfs"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, spec, 8, v, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := r.File(schedulefile.Origin{})
	if f.Origin.Variant != v.Name || f.Origin.Recipe != v.Text() {
		t.Errorf("the file is of %s, %q, expected %s, %q", f.Origin.Variant, f.Origin.Recipe, v.Name, v.Text())
	}
	type picks struct{ group, split, order string }
	for _, c := range []struct {
		variant, recipe string
		want            picks
	}{
		{v.Name, v.Text(), picks{"alg2", "search", "dfs"}},
		{"cross-layer", "", picks{"alg2", "alg1", "alg3"}},
		{"mine", "group=alg2 split=alg1 order=ilp", picks{"alg2", "alg1", "ilp"}}, // no solver is needed to read a file
		{"of another maker", "", picks{}},
		{"cross-layer+order=dfs", "", picks{}},                     // a name says nothing
		{"mine", "order=dfs split=x", picks{"layers", "x", "dfs"}}, // of which nobody knows more than the name
		{"mine", "ordre=dfs order", picks{"layers", "none", ""}},
	} {
		f.Origin.Variant, f.Origin.Recipe = c.variant, c.recipe
		again, err := scheduler.Restore(context.Background(), f, spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Recipe; got.Name != c.variant || (picks{got.Pick("group"), got.Pick("split"),
			got.Pick("order")}) != c.want {
			t.Errorf("%s, %s has come back as %+v", c.variant, c.recipe, got)
		}
	}
}

// What comes from a file is simulated again on the level that it was made for.
func TestRestoreKeepsTheLevel(t *testing.T) {
	one := load(t, "stcp920")
	one.CoreTypes[0].Count = 1 // a machine that is raised by itself
	want, err := scheduler.Run(context.Background(), open(t, "toy-fig5"), one, 8, last(t),
		scheduler.Options{Chunk: 1, Level: scheduler.LevelL1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Restore(context.Background(), want.File(schedulefile.Origin{}), one)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.On(context.Background(), one)
	if err != nil || again.Spec != one || again.Sim.TotalPs != want.Sim.TotalPs {
		t.Errorf("%v, want %d ps on the level of the L1", err, want.Sim.TotalPs)
	}
}

// A file of a variant that takes the fastest of several says which one it was, and so does what is read of it.
func TestRestoreKeepsTheFastest(t *testing.T) {
	v, err := recipes.Lookup("tiled")
	if err != nil {
		t.Fatal(err)
	}
	want, err := scheduler.Run(context.Background(), open(t, "resnet18"), load(t, "stcp920"), 64, v,
		scheduler.Options{Chunk: 16})
	if err != nil {
		t.Fatal(err)
	}
	f := want.File(schedulefile.Origin{})
	if by := want.By().Name; by == v.Name || f.Origin.Fastest != by {
		t.Errorf("the schedule is that of %s, the file says %q", by, f.Origin.Fastest)
	}
	r, err := scheduler.Restore(context.Background(), f, load(t, "stcp920"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Recipe.Name != v.Name || r.By().Text() != want.By().Text() {
		t.Errorf("%s by %s (%s), expected %s by %s", r.Recipe.Name, r.By().Name, r.By().Text(), v.Name, want.By().Name)
	}
	// The heading of a dump names its strategy, not that of the variant.
	differ := 0
	for _, st := range scheduler.Stages() {
		if text, err := r.Dump(st.Name); strings.Count(text, "\n") < 2 || strings.Contains(text, ":true ") {
			t.Errorf("dump of %s: %q, %v", st.Name, text, err)
		}
		own := r.By().Strategy(st.Name).Name
		if own == v.Strategy(st.Name).Name {
			continue
		}
		differ++
		if text, err := r.Dump(st.Name); err != nil || !strings.HasPrefix(text, "# "+st.Name+" by "+own+":") {
			t.Errorf("dump of %s begins with %.40q, %v, expected its strategy %s", st.Name, text, err, own)
		}
	}
	if differ == 0 {
		t.Error("the variant and its fastest have the same strategies")
	}
}

func TestRestoreOfUnknownOrigin(t *testing.T) {
	src, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("llb")
	if err != nil {
		t.Fatal(err)
	}
	v.Name = "of another maker"
	r, err := scheduler.Run(context.Background(), src, spec, 8, v, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := r.File(schedulefile.Origin{})
	want, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	f.Origin.Variant = "of another maker"
	again, err := scheduler.Restore(context.Background(), f, spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.File(schedulefile.Origin{}).Write()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file is another one when it is written again: %v", err)
	}
	// Without any origin there is a result all the same.
	f.Origin = nil
	nameless, err := scheduler.Restore(context.Background(), f, spec)
	if err != nil || nameless.Sim.TotalPs != r.Sim.TotalPs {
		t.Errorf("error %v", err)
	}
	// A broken one is refused, with all that is wrong.
	f.Batch = 9
	f.Schedules[0].Order = f.Schedules[0].Order[1:]
	var bad *scheduler.ViolationsError
	if _, err := scheduler.Restore(context.Background(), f, spec); !errors.As(err, &bad) || len(bad.Violations) < 2 {
		t.Errorf("error %v", err)
	}
}
