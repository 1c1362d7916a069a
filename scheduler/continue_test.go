package scheduler_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/scheduler/answers"
)

// Whatever the recipe would split, factors that are kept stay, and the schedule that is
// continued is not changed.
func TestContinueKeepsTheSplit(t *testing.T) {
	ctx := context.Background()
	g, err := open(t, "squeezenet").Graph(8)
	if err != nil {
		t.Fatal(err)
	}
	factors := func(s *schedule.Schedule) (list []int64) {
		for _, sg := range s.Grouping.Groups {
			list = append(list, sg.Factor())
		}
		return list
	}
	from, err := last(t).Schedule(ctx, g, load(t, "stcp920"), scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := factors(from)
	for _, name := range []string{"tvm", "llb", "cross-layer", "exact-split"} {
		r, err := recipes.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []string{"split", "instances", "order", "bind", "join", "spill"} {
			bare := *from
			bare.Layers = nil // follow from the groups
			s, err := r.Continue(ctx, &bare, after, scheduler.Options{})
			if err != nil {
				t.Errorf("%s after %s: %v", name, after, err)
			} else if !reflect.DeepEqual(factors(s), want) {
				t.Errorf("%s after %s: factors %v, want %v", name, after, factors(s), want)
			}
		}
		if _, err := r.Continue(ctx, from, "group", scheduler.Options{}); err != nil {
			t.Errorf("%s after group: %v", name, err)
		}
	}
	if again, err := last(t).Schedule(ctx, g, from.Spec, scheduler.Options{}); err != nil ||
		!reflect.DeepEqual(from, again) {
		t.Errorf("the schedule has changed (%v)", err)
	}
}

// What a schedule lacks is an error that names the stage.
func TestContinueWithoutADecision(t *testing.T) {
	ctx := context.Background()
	g, err := open(t, "toy-fig3").Graph(8)
	if err != nil {
		t.Fatal(err)
	}
	full, err := last(t).Schedule(ctx, g, load(t, "stcp920"), scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after, want string
		remove      func(*schedule.Schedule)
	}{
		{"group", "group of the schedule to continue: there are no groups", func(s *schedule.Schedule) { s.Grouping = nil }},
		{"bind", "group of the schedule to continue: there are no groups", func(s *schedule.Schedule) { s.Grouping = nil }},
		{"instances", "instances of the schedule to continue: there are no instances",
			func(s *schedule.Schedule) { s.Instances = nil }},
		{"bind", "order of the schedule to continue: ", func(s *schedule.Schedule) { s.Order = nil }},
		{"spill", "bind of the schedule to continue: ", func(s *schedule.Schedule) { s.Scopes = nil }},
	} {
		s := *full
		c.remove(&s)
		if _, err := last(t).Continue(ctx, &s, c.after, scheduler.Options{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("after %s: the error is %v, want %q in it", c.after, err, c.want)
		}
	}
}

// Every door refuses a batch and a chunk that make no sense with the same words.
func TestBatchAndChunk(t *testing.T) {
	ctx, net, chip := context.Background(), open(t, "toy-fig3"), load(t, "stcp920")
	for _, c := range []struct {
		batch, chunk int64
		want         string
	}{
		{0, 0, "batch is 0, expected 1 to"}, {-5, 0, "batch is -5, expected 1 to"},
		{1 << 40, 1, "batch is 1099511627776, expected 1 to"},
		{8, -1, "chunk is -1, expected "}, {8, 3, "chunk is 3, expected "},
	} {
		opt := scheduler.Options{Chunk: c.chunk}
		_, run := scheduler.Run(ctx, net, chip, c.batch, last(t), opt)
		_, prepare := last(t).Prepare(ctx, net, chip, c.batch, opt)
		_, compare := answers.Compare(ctx, net, chip, c.batch, answers.CompareOptions{Options: opt})
		_, bind := answers.Bind(ctx, net, chip, c.batch, "greedy", answers.AloneOptions{Options: opt})
		_, split := answers.Split(ctx, net, chip, c.batch, "greedy", answers.AloneOptions{Options: opt})
		for name, err := range map[string]error{"Run": run, "Prepare": prepare, "Compare": compare, "Bind": bind,
			"Split": split} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, batch %d, chunk %d: the error is %v, want %q in it", name, c.batch, c.chunk, err, c.want)
			}
		}
	}
	opt := scheduler.Options{Clusters: "halves"}
	if _, err := scheduler.Run(ctx, net, chip, 8, last(t), opt); !strings.Contains(fmt.Sprint(err), `unknown division`) {
		t.Errorf("clusters halves: the error is %v", err)
	}
}
