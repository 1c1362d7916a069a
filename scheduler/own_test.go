package scheduler_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

type (
	grouper func(*model.Graph, *hardware.Spec) (*schedule.Grouping, error)
	orderer func(*schedule.Schedule) ([]int, error)
	binder  func(*schedule.Schedule) ([]schedule.Binding, []schedule.Level, error)
)

func (f grouper) Group(g *model.Graph, spec *hardware.Spec) (*schedule.Grouping, error) {
	return f(g, spec)
}
func (f orderer) Order(s *schedule.Schedule) ([]int, error) { return f(s) }
func (f binder) Bind(s *schedule.Schedule) ([]schedule.Binding, []schedule.Level, error) {
	return f(s)
}

// Decisions that come from outside give what the same decisions give by name.
func TestOwnDecisionsAreThoseOfTheName(t *testing.T) {
	layers := grouper(func(g *model.Graph, _ *hardware.Spec) (*schedule.Grouping, error) {
		gr, _ := tvm.Group(g, graphturbo.ExecutionOrder(g))
		return gr, nil
	})
	dfs := orderer(func(s *schedule.Schedule) ([]int, error) { return graphturbo.DFS(s.Instances), nil })
	plain := binder(func(s *schedule.Schedule) ([]schedule.Binding, []schedule.Level, error) {
		b, l := graphturbo.PlainBindGrid(s.Graph, s.Grouping, s.Instances, schedule.Grid(s.Spec))
		return b, l, nil
	})
	base := scheduler.Table()[4]
	for _, c := range []struct {
		name      string
		named, by func(*scheduler.Recipe)
	}{
		{"groups", func(v *scheduler.Recipe) { v.Groups = scheduler.LayerKernels }, func(v *scheduler.Recipe) { v.Grouper = layers }},
		{"order", func(v *scheduler.Recipe) { v.Order = scheduler.DepthFirst }, func(v *scheduler.Recipe) { v.Orderer = dfs }},
		{"bindings", func(v *scheduler.Recipe) { v.Bind = scheduler.PlainBinding }, func(v *scheduler.Recipe) { v.Binder = plain }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, got := base, base
			c.named(&want)
			c.by(&got)
			src, spec := open(t, "squeezenet"), load(t, "stcp920")
			w, err := scheduler.Run(context.Background(), src, spec, 8, want, scheduler.Options{Chunk: 2})
			if err != nil {
				t.Fatal(err)
			}
			g, err := scheduler.Run(context.Background(), src, spec, 8, got, scheduler.Options{Chunk: 2})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(g.Schedule.Order, w.Schedule.Order) || !reflect.DeepEqual(g.Schedule.Bindings, w.Schedule.Bindings) || g.Sim.TotalPs != w.Sim.TotalPs {
				t.Errorf("%d ps in order %v, want %d ps in %v", g.Sim.TotalPs, g.Schedule.Order, w.Sim.TotalPs, w.Schedule.Order)
			}
		})
	}
}

// What the caller's own decision does wrong is the caller's mistake, and said so.
func TestOwnMistakes(t *testing.T) {
	for _, c := range []struct {
		name string
		v    scheduler.Recipe
		want string
	}{
		{"a group is missing", scheduler.Recipe{Grouper: grouper(func(g *model.Graph, _ *hardware.Spec) (*schedule.Grouping, error) {
			gr, _ := tvm.Group(g, graphturbo.ExecutionOrder(g))
			gr.Groups = gr.Groups[:len(gr.Groups)-1]
			return gr, nil
		})}, `the groups of variant mine: operator "`},
		{"no groups", scheduler.Recipe{Grouper: grouper(func(*model.Graph, *hardware.Spec) (*schedule.Grouping, error) {
			return nil, errors.New("not today")
		})}, "the groups of variant mine: not today"},
		{"reversed", scheduler.Recipe{Orderer: orderer(func(s *schedule.Schedule) ([]int, error) {
			o := graphturbo.DFS(s.Instances)
			slices.Reverse(o)
			return o, nil
		})}, "the order of variant mine: instance "},
		{"nothing bound", scheduler.Recipe{Binder: binder(func(s *schedule.Schedule) ([]schedule.Binding, []schedule.Level, error) {
			return nil, nil, nil
		})}, "the bindings of variant mine: 0 bindings and 0 scopes, expected "},
		{"too many cores", scheduler.Recipe{Binder: binder(func(s *schedule.Schedule) ([]schedule.Binding, []schedule.Level, error) {
			b, l := graphturbo.PlainBindGrid(s.Graph, s.Grouping, s.Instances, schedule.Grid(s.Spec))
			b[0] = slices.Clone(b[0])
			b[0][0] = 1 << 20
			return b, l, nil
		})}, "the bindings of variant mine: instance 0 of g0: "},
		{"a level that does not exist", scheduler.Recipe{Binder: binder(func(s *schedule.Schedule) ([]schedule.Binding, []schedule.Level, error) {
			b, l := graphturbo.PlainBindGrid(s.Graph, s.Grouping, s.Instances, schedule.Grid(s.Spec))
			l[0] = 7
			return b, l, nil
		})}, "scope 7, expected LB, GB or DDR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := scheduler.Table()[4]
			v.Name, v.Grouper, v.Orderer, v.Binder = "mine", c.v.Grouper, c.v.Orderer, c.v.Binder
			_, err := scheduler.Run(context.Background(), open(t, "resnet50"), load(t, "stcp920"), 8, v, scheduler.Options{Chunk: 2})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "internal error") {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

// slow makes every product take four times as long.
type slow struct{}

func (slow) MatrixCycles(f *cost.Model, d model.MatrixDims, dt model.DType) hardware.Cycles {
	return 4 * f.MatrixCycles(d, dt)
}

func (slow) VectorCycles(f *cost.Model, w model.VectorWork, dt model.DType) (vector, special hardware.Cycles) {
	return f.VectorCycles(w, dt)
}

// An operator cost reaches the program and, where they price, the decisions; on a machine
// seen one level up, too.
func TestOwnCost(t *testing.T) {
	for _, hw := range []string{"stcp920", "../../hardware/testdata/goya.yaml"} {
		for _, name := range []string{"cross-layer", "exact-bind"} {
			v, err := scheduler.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			src, spec := open(t, "squeezenet"), load(t, hw)
			var total [2]int64
			for i, c := range []cost.Custom{nil, slow{}} {
				r, err := scheduler.Run(context.Background(), src, spec, 2, v, scheduler.Options{Chunk: 1, Cost: c})
				if err != nil {
					t.Fatal(err)
				}
				total[i] = r.Sim.TotalPs
			}
			if total[1] <= total[0] || total[1] > 4*total[0] {
				t.Errorf("%s on %s: %d ps with slower products, %d ps without", name, hw, total[1], total[0])
			}
		}
	}
}
