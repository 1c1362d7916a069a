package optimality

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/plots"
)

// growth measures the time to order instances against their number. Its figures are
// wall times: they are of the machine that measured them and do not repeat.
type growth struct {
	families []growthFamily
	limit    time.Duration
	solver   milp.Solver // nil: without integer programs
}

// A growthFamily is a series of problems of growing size.
type growthFamily struct {
	name, title, axis string
	sizes             []int
	counts            func(size int) []int // instances per sub-graph
	halo              int
}

// growthLimit is the time for one solve if nothing else is asked for: all of it is then
// over in moments.
const growthLimit = time.Second

// greedyRuns is the number of runs of a greedy method on a problem; the shortest time counts.
const greedyRuns = 9

func doubling(from, to int) []int {
	var sizes []int
	for n := from; n <= to; n *= 2 {
		sizes = append(sizes, n)
	}
	return sizes
}

func growthFamilies() []growthFamily {
	return []growthFamily{
		{name: "batch", title: "Batch: sub-graphs of n, n/2, n/4 and n/8 instances, without halo",
			axis: "Instances of the first sub-graph", sizes: doubling(8, 512),
			counts: func(n int) []int { return []int{n, n / 2, n / 4, n / 8} }},
		{name: "tree", title: "Tree: sub-graphs of n, n/2, …, 1 instances", axis: "Instances of the first sub-graph",
			sizes: doubling(8, 512),
			counts: func(n int) []int {
				var counts []int
				for ; n > 0; n /= 2 {
					counts = append(counts, n)
				}
				return counts
			}},
		{name: "halo", title: "Halo: four sub-graphs of n instances, each reading one more on either side",
			axis: "Instances per sub-graph", sizes: doubling(2, 512), halo: 1,
			counts: func(n int) []int { return []int{n, n, n, n} }},
		{name: "chain", title: "Chain: sub-graphs of 16, 8, 4 instances in thirds, and one of 1", axis: "Sub-graphs",
			sizes: doubling(4, 32),
			counts: func(k int) []int {
				var counts []int
				for i := range k - 1 {
					counts = append(counts, 16>>min(2, 3*i/(k-1)))
				}
				return append(counts, 1)
			}},
	}
}

// problem has sizes that alternate from sub-graph to sub-graph, and two bytes more
// than the largest instance needs.
func (f growthFamily) problem(size int) *ordering.Problem {
	counts := f.counts(size)
	p := &ordering.Problem{Name: fmt.Sprintf("%s-%d", f.name, size), StoreCostPerByte: 1, LoadCostPerByte: 1}
	for k, n := range counts {
		p.Subgraphs = append(p.Subgraphs, ordering.Subgraph{Name: fmt.Sprint("stage", k+1), Instances: n,
			OutputBytes: int64(3 + k%2), WorkspaceBytes: int64(4 - k%4)})
		if k == 0 {
			continue
		}
		from := counts[k-1]
		a := ordering.Arc{From: k - 1, To: k}
		for q := range n {
			a.Reads = append(a.Reads, [2]int{max(0, q*from/n-f.halo), min(from, ((q+1)*from+n-1)/n+f.halo)})
		}
		p.Arcs = append(p.Arcs, a)
	}
	p.CapacityBytes = ordering.NewGraph(p).LargestNeed() + 2
	return p
}

func fullGrowth() growth { return growth{families: growthFamilies(), limit: growthLimit} }

func (e growth) experiment() harness.Experiment {
	return harness.Experiment{Name: "growth", Exact: true,
		Description: "time to order instances against their number, by method (measured, so different each time it is computed)",
		Paper:       "none; asks how far exact orders reach", Plan: e.plan,
		With: func(opt harness.Options) (*harness.Plan, error) {
			e := e
			e.solver = opt.Solver
			if opt.SolveLimit > 0 {
				e.limit = opt.SolveLimit
			}
			return e.plan()
		}}
}

const (
	countingILP = "counting-ilp"
	stateSearch = "search"
)

func growthMethods() []string {
	var names []string
	for _, m := range ordering.Methods() {
		names = append(names, m.Name)
	}
	return names
}

// isProver reports whether a method has a bound of its own.
func isProver(method string) bool {
	return slices.Contains([]string{countingILP, stateSearch}, method)
}

// growthPoint is one solve.
type growthPoint struct {
	Size      int     `json:"size"`
	Instances int     `json:"instances"`
	Seconds   float64 `json:"wall_time_s"`
	Status    string  `json:"status"`
	Cost      float64 `json:"cost"`
	Bound     float64 `json:"bound"`
}

func (e growth) plan() (*harness.Plan, error) {
	p := &harness.Plan{}
	for _, f := range e.families {
		for _, m := range growthMethods() {
			p.Cells = append(p.Cells, harness.Cell{
				Key: f.name + "-" + m, Label: f.name + " " + m,
				Inputs: map[string]any{
					"family": f.name, "sizes": f.sizes, "method": m, "limit": e.limit.String(),
					"solver": e.solver != nil,
				},
				Run: func(ctx context.Context) (any, error) { return e.series(ctx, f, m) },
			})
		}
	}
	p.Report = harness.Of(func(all [][]growthPoint) (*harness.Report, error) {
		x := e.experiment()
		rep, err := x.WriteRows("", func(b *harness.Document) { e.report(all, b) }, nil)
		if err != nil {
			return nil, err
		}
		type solved struct {
			Family string `json:"family"`
			Method string `json:"method"`
			growthPoint
		}
		list := []solved{}
		for i, series := range all {
			family, method := e.families[i/len(growthMethods())].name, growthMethods()[i%len(growthMethods())]
			for _, q := range series {
				list = append(list, solved{family, method, q})
			}
		}
		rep.Replace(harness.File{Name: "growth.csv", Data: harness.CSV(list, harness.Fields(
			"family size instances method wall_time_s status cost bound",
			harness.Field[solved]{Name: "wall_time_s", Of: func(s solved) any {
				return strconv.FormatFloat(s.Seconds, 'g', 4, 64)
			}}))}, harness.JSONFile("growth.json", list))
		return rep, nil
	})
	return p, nil
}

// series solves a family's problems by one method, smallest first. One that can prove
// stops at the first size that it does not.
func (e growth) series(ctx context.Context, f growthFamily, method string) ([]growthPoint, error) {
	points := []growthPoint{}
	if e.solver == nil && method == countingILP {
		return points, nil
	}
	for _, size := range f.sizes {
		p := f.problem(size)
		g := ordering.NewGraph(p)
		start, err := ordering.BestRule(g, ordering.Traffic)
		if err != nil {
			return nil, err
		}
		runs := 1
		if !isProver(method) {
			runs = greedyRuns
		}
		var q growthPoint
		for k := range runs {
			began := time.Now()
			r, err := e.solve(ctx, p, method, start)
			took := time.Since(began).Seconds()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			if k == 0 || took < q.Seconds {
				q = growthPoint{size, len(g.Refs), took, r.Status.String(), r.Cost, r.Bound}
			}
		}
		points = append(points, q)
		if isProver(method) && q.Status != milp.Optimal.String() {
			break
		}
	}
	return points, nil
}

// solve orders a problem; exact methods begin from a start.
func (e growth) solve(ctx context.Context, p *ordering.Problem, method string, start []int) (*ordering.Result, error) {
	return ordering.Solve(ctx, p, ordering.Traffic, method,
		ordering.Options{TimeLimit: e.limit, Start: start, Solver: e.solver})
}

func (e growth) report(all [][]growthPoint, b *harness.Document) {
	methods := growthMethods()
	reach := harness.Table{Name: "proven", Title: fmt.Sprintf("Sizes that are proven within %v each", e.limit),
		Columns: harness.Columns("<Problems", "<Method", "Largest proven", "Its instances", "Its time (s)",
			"First not proven", "Its gap (%)")}
	times := harness.Table{Name: "times", Title: "Time to order (s)",
		Columns: harness.Columns("<Problems", "Size", "Instances")}
	for _, m := range methods {
		times.AddColumns(m)
	}
	var panels []plots.Curves
	for k, f := range e.families {
		panel := plots.Curves{Title: f.title, XLabel: f.axis, YLabel: "Time (ms)", LogX: true, LogY: true,
			Line: 1e3 * e.limit.Seconds()}
		for _, size := range f.sizes {
			panel.X, panel.Ticks = append(panel.X, float64(size)), append(panel.Ticks, strconv.Itoa(size))
		}
		rows := make([][]string, len(f.sizes))
		for i, size := range f.sizes {
			rows[i] = []string{f.name, harness.Count(int64(size)),
				harness.Count(int64(len(ordering.NewGraph(f.problem(size)).Refs)))}
		}
		for j, m := range methods {
			series := plots.Series{Name: m, Values: make([]float64, len(f.sizes))}
			points := all[k*len(methods)+j]
			largest, first := growthPoint{}, growthPoint{}
			for i := range f.sizes {
				cell := "–"
				if i < len(points) {
					q := points[i]
					series.Values[i] = 1e3 * q.Seconds
					cell = strconv.FormatFloat(q.Seconds, 'g', 2, 64)
					if q.Status == milp.Optimal.String() {
						largest = q
					} else if first.Size == 0 {
						first = q
						if isProver(m) {
							cell += " *"
						}
					}
				}
				rows[i] = append(rows[i], cell)
			}
			panel.Series = append(panel.Series, series)
			if !isProver(m) || len(points) == 0 {
				continue
			}
			row := []string{f.name, m, "none", "–", "–", "none", "–"}
			if largest.Size > 0 {
				row[2], row[3], row[4] = harness.Count(int64(largest.Size)), harness.Count(int64(largest.Instances)),
					strconv.FormatFloat(largest.Seconds, 'g', 2, 64)
			}
			if first.Size > 0 {
				row[5] = harness.Count(int64(first.Size))
				if first.Cost > 0 {
					row[6] = harness.Fixed(100*(first.Cost-first.Bound)/first.Cost, 1)
				}
			}
			reach.Add(row)
		}
		times.Rows = append(times.Rows, rows...)
		panels = append(panels, panel)
	}
	reach.Notes = []string{
		"Exact methods begin from the best greedy order, whose time is not in theirs, and stop a series at the first size that they do not prove. The greedy ones prove nothing."}
	times.Notes = []string{
		"*: not proven; –: not tried. On the machine at hand, perhaps beside other work: one run of each exact method, the shortest of several of each greedy one."}
	b.Table(reach, times)
	for _, f := range e.families {
		b.Note("%s: %s.", f.name, strings.TrimPrefix(f.title, f.title[:strings.Index(f.title, ": ")+2]))
	}
	if e.solver == nil {
		b.Note("This build has no solver: the integer programs are left out.")
	}
	b.Curves("time", "Time to order instances against their number; the dashed line is the limit", panels...)
}

// Growth is the time to order against the number of instances.
func Growth() harness.Experiment { return fullGrowth().experiment() }
