package loops

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/plots"
)

// climbed holds the times of a network's kernels by GraphTurbo after the search, hill climbing and random programs.
type climbed struct {
	Network string  `json:"network"`
	Kernels int     `json:"kernels"`
	Rule    float64 `json:"rule_s"`
	// Found is the sum over all kernels, by method, seed and s.steps; Trials is how many of all they are.
	Found  map[ansor.Method][][]float64 `json:"found_s"`
	Trials []int                        `json:"trials"`
}

var climbers = []ansor.Method{ansor.Evolution, ansor.Climb, ansor.Random}

// climbing: whether the search is worth what it knows.
func (s study) climbing() harness.Experiment {
	return experiment(s, "ansor-climbing", "the search against hill climbing at the same trials, on GraphTurbo's kernels", "asks what the paper does not", func() (cells []harness.Cell, err error) {
		for _, x := range s.inside {
			c, err := s.cell(x.network, nil, func(ctx context.Context) (any, error) {
				at := s
				at.chunk = x.chunk
				tasks, err := at.kernels(ctx, "graphturbo+ansor", x.network)
				if err != nil {
					return nil, err
				}
				r := climbed{Network: x.network, Kernels: len(tasks), Found: map[ansor.Method][][]float64{}}
				for _, t := range tasks {
					rule, err := t.Seconds(ctx, t.Rule)
					if err != nil {
						return nil, err
					}
					r.Rule += rule * float64(t.Weights[0])
				}
				known := memo{}
				for _, n := range []int{1, 2, 4, 8} {
					r.Trials = append(r.Trials, n*s.grouped*len(tasks)/2)
				}
				for _, m := range climbers {
					for seed := range s.seeds {
						out, err := ansor.Tune(ctx, tasks, known.in(ansor.Options{Trials: slices.Max(r.Trials), Batch: s.grouped / 2, Method: m, Seed: uint64(judged + seed), Scheduler: "round-robin"}))
						if err != nil {
							return nil, err
						}
						var found []float64
						for _, n := range r.Trials {
							i, _ := slices.BinarySearchFunc(out.Curve, n, func(p ansor.Point, n int) int { return p.Trials - n })
							found = append(found, out.Curve[min(i, len(out.Curve)-1)].Objective)
						}
						r.Found[m] = append(r.Found[m], found)
					}
				}
				return r, nil
			})
			if err != nil {
				return nil, err
			}
			cells = append(cells, c)
		}
		return cells, nil
	}, func(d *harness.Document, results []climbed) error {
		t := harness.Table{Title: "Time of all kernels over that by the rules", Name: "climbing", Columns: []harness.Column{{Name: "Network", Text: true}, {Name: "Search", Text: true}}}
		for i := range results[0].Trials {
			t.Columns = append(t.Columns, harness.Column{Group: "Trials a kernel", Name: fmt.Sprint(results[0].Trials[i] / results[0].Kernels)})
		}
		var panels []plots.Curves
		for _, r := range results {
			c := plots.Curves{Title: r.Network, XLabel: "Trials", YLabel: "Time over the rules'", LogX: true, Line: 1}
			for _, n := range r.Trials {
				c.X = append(c.X, float64(n))
			}
			for _, m := range climbers {
				line, row := plots.Series{Name: string(m)}, []string{r.Network, string(m)}
				for i := range r.Trials {
					x := geomean(column(r.Found[m], i)) / r.Rule
					line.Values, row = append(line.Values, x), append(row, ratio(x))
				}
				c.Series, t.Rows = append(c.Series, line), append(t.Rows, row)
			}
			panels = append(panels, c)
		}
		d.Note("Trials are given to kernels in turn; geometric means of %d seeds.", s.seeds)
		if err := d.Table(t); err != nil {
			return err
		}
		f, err := plots.Lines(panels...)
		return d.Figure("climbing", "What each search has after how many trials", f, err)
	})
}
