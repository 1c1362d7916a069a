package loops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/heuristics/ansor"
	"github.com/dsasched/dsasched/plots"
)

// climbed holds the times of a network's kernels by GraphTurbo after the search, without its parts, and hill climbing.
type climbed struct {
	Network string  `json:"network"`
	Kernels int     `json:"kernels"`
	Rule    float64 `json:"rule_s"`
	// Found is the sum over all kernels, by setting, seed and Trials, which are of all kernels.
	Found  map[string][][]float64 `json:"found_s"`
	Trials []int                  `json:"trials"`
}

// mostTrials bounds those of all kernels of a network in turn.
const mostTrials = 2000

// climbing: whether the search is worth what it knows, and what its parts are worth where programs differ.
func (s study) climbing() harness.Experiment {
	return experiment(s, "ansor-climbing",
		"the search against its parts and hill climbing at the same trials, on GraphTurbo's kernels",
		"Fig. 7, on kernels that no published system has", func() (cells []harness.Cell) {
			for _, x := range s.inside {
				cells = append(cells, s.cell(x.network, nil, func(ctx context.Context) (any, error) {
					at := s
					at.chunk = x.chunk
					tasks, err := at.kernels(ctx, "graphturbo+ansor", x.network)
					if err != nil {
						return nil, err
					}
					r := climbed{Network: x.network, Kernels: len(tasks), Found: map[string][][]float64{}}
					for _, t := range tasks {
						rule, err := t.Seconds(ctx, t.Rule)
						if err != nil {
							return nil, err
						}
						r.Rule += rule * float64(t.Weights[0])
					}
					known := memo{}
					for n := s.grouped * len(tasks) / 2; len(r.Trials) < 3 || n <= mostTrials && len(r.Trials) < 8; n *= 2 {
						r.Trials = append(r.Trials, n)
					}
					for _, set := range kernelSettings {
						for seed := range s.seeds {
							o := set.options
							o.Trials, o.Batch, o.Seed, o.Scheduler = slices.Max(r.Trials), s.grouped/2, uint64(judged+seed), "round-robin"
							out, err := ansor.Tune(ctx, tasks, known.in(o))
							if err != nil {
								return nil, err
							}
							var found []float64
							for _, n := range r.Trials {
								found = append(found, reached(out.Curve, n))
							}
							r.Found[set.name] = append(r.Found[set.name], found)
						}
					}
					return r, nil
				}))
			}
			return cells
		}, func(d *harness.Document, results []climbed) {
			t := harness.Table{Title: "Time of all kernels over that by the rules", Name: "climbing",
				Columns: harness.Columns("<Network", "<Search")}
			longest := slices.MaxFunc(results, func(a, b climbed) int { return len(a.Trials) - len(b.Trials) })
			for _, n := range longest.Trials {
				t.AddColumns("Trials a kernel|" + fmt.Sprint(n/longest.Kernels))
			}
			var panels []plots.Curves
			for _, r := range results {
				c := plots.Curves{Title: r.Network, XLabel: "Trials", YLabel: "Time over the rules'", LogX: true, Line: 1}
				for _, n := range r.Trials {
					c.X = append(c.X, float64(n))
				}
				ends := map[string]float64{}
				for _, set := range kernelSettings {
					line, row := plots.Series{Name: set.name}, []string{r.Network, set.name}
					for i := range longest.Trials {
						if i >= len(r.Trials) {
							row = append(row, "-")
							continue
						}
						x := geomean(column(r.Found[set.name], i)) / r.Rule
						line.Values, row = append(line.Values, x), append(row, ratio(x))
						ends[set.name] = x
					}
					c.Series, t.Rows = append(c.Series, line), append(t.Rows, row)
				}
				panels = append(panels, c)
				var published, ours []string
				for _, set := range operatorSettings { // as in Fig. 7
					published = append(published, set.name)
				}
				ours = slices.Clone(published)
				slices.SortStableFunc(ours, func(a, b string) int { return cmp.Compare(ends[a], ends[b]) })
				d.Claim("order of the searches, kernels of "+r.Network, strings.Join(published, ", "), strings.Join(ours, ", "),
					harness.Agreement(slices.Equal(ours, published)))
				if !slices.Equal(ours, published) {
					d.Why(
						"a search in a template's space begins with the rules' tiles, which are near the best here, and random programs of many layers are slow")
				}
			}
			d.Note(
				"Trials are given to kernels in turn; geometric means of %d seeds. All searches begin with the rules' program.",
				s.seeds)
			d.Table(t)
			d.Curves("climbing", "What each search has after how many trials", panels...)
		})
}
