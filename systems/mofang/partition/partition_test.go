package partition

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
)

const data = "../../../shared/data/partition/"

// The published layer graphs: optimum, PipeDream's and the expert's largest load
// by the authors' program (optimum of Inception-v3 by this package's only).
var published = []struct {
	name                       string
	optimum, pipedream, expert float64
}{
	{"bert24", 17.7899, 17.7899, 20.084},
	{"gnmt", 32.9107, 33.0311, 46.2085},
	{"resnet50", 33.7747, 39.3981, 43.9183},
	{"inceptionv3", 0, 60.417, 102.482},
}

func TestPublishedGraphs(t *testing.T) {
	for _, want := range published {
		t.Run(want.name, func(t *testing.T) {
			p, err := Load(data + want.name + "_inference.json")
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("the published graphs are not there")
			}
			if err != nil {
				t.Fatal(err)
			}
			expert, err := LoadDivision(data+want.name+"_inference_expert.json", p)
			if err != nil {
				t.Fatal(err)
			}
			load, err := p.MaxLoad(expert)
			if err != nil || math.Abs(load-want.expert) > 1e-3 {
				t.Errorf("the expert's division: %v, %v, published %v", load, err, want.expert)
			}
			for _, m := range []string{"greedy", "pipedream", "exact"} {
				begin := time.Now()
				r, err := Solve(context.Background(), p, m, Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %s %v bound %v, %d classes, %d ideals, %d pairs, %v", m, r.Status, r.MaxLoad, r.Bound, r.Classes,
					r.Ideals, r.Pairs, time.Since(begin))
				if m == "exact" && (r.Status != milp.Optimal ||
					want.optimum > 0 && math.Abs(r.MaxLoad-want.optimum) > 1e-4*want.optimum) {
					t.Errorf("exact: %s %v, published %v", r.Status, r.MaxLoad, want.optimum)
				}
				if m == "pipedream" && math.Abs(r.MaxLoad-want.pipedream) > 1e-3 {
					t.Errorf("PipeDream: %v, published %v", r.MaxLoad, want.pipedream)
				}
			}
		})
	}
}
