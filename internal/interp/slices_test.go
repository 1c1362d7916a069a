package interp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/interp"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Programs of feed-forwards in slices compute what their graph says.
func TestSlicedPrograms(t *testing.T) {
	recipe, err := recipes.Lookup("tiled-slices")
	if err != nil {
		t.Fatal(err)
	}
	done, small, coarse := 0, 0, map[string]int{}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 23))
		spec := machine(r)
		if spec.LLB != nil {
			spec.LLB.SizeBytes = 8 << 10
		}
		rows, features, width := 1+r.Int64N(40), 1+r.Int64N(12), 50+r.Int64N(200)
		gated := r.IntN(2) == 0
		src := network.Network{Name: "feed", Graph: func(batch int64) (*model.Graph, error) {
			b := model.NewBuilder("feed")
			x := b.Input("x", model.F16, batch, rows, features)
			for k := range 2 {
				product := func(name string, x model.TensorID, from, to int64) model.TensorID {
					name = fmt.Sprint(name, k)
					return b.Op("MatMul", name, model.Attr{}, x, b.Param(name+".weight", model.F16, from, to))
				}
				y := b.Op("Relu", fmt.Sprint("relu", k), model.Attr{}, product("up", x, features, width))
				if gated {
					y = b.Op("Mul", fmt.Sprint("gated", k), model.Attr{}, y, product("gate", x, features, width))
				}
				x = b.Op("Add", fmt.Sprint("residual", k), model.Attr{}, product("down", y, width, features), x)
			}
			b.Output(x)
			return b.Build()
		}}
		what := fmt.Sprintf("seed %d", seed)
		batch := pick(r, int64(1), 2, 3)
		made, err := scheduler.Run(context.Background(), src, spec, batch, recipe, scheduler.Options{})
		var tooBig *graphturbo.DoesNotFitError
		if errors.As(err, &tooBig) {
			small++
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		sliced := false
		for _, op := range made.Schedule.Graph.Ops {
			sliced = sliced || strings.HasPrefix(op.Name, "down0[")
		}
		if !sliced {
			continue
		}
		_, err = interp.Run(made.Program, graphs(made.Plans), seed)
		var part *interp.CoarseError
		switch {
		case errors.As(err, &part):
			coarse[part.What]++
		case err != nil:
			t.Errorf("%s: %v", what, err)
		default:
			done++
		}
	}
	t.Logf("%d agree, %d do not fit, %v", done, small, coarse)
	if done < 10 {
		t.Errorf("%d programs in slices compute what they should, expected at least 10", done)
	}
}
