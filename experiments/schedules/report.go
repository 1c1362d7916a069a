package schedules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/plots"
)

// Change says how a row computed anew compares with the frozen one, by the time of its exact schedule, or of greedy's.
func Change(frozen, fresh Row) string {
	d := cmp.Or(cmp.Compare(fresh.Exact, frozen.Exact), cmp.Compare(fresh.Greedy, frozen.Greedy))
	switch {
	case frozen == fresh:
		return "same"
	case d == 0 || fresh.Batch != frozen.Batch || fresh.Exact == 0 || frozen.Exact == 0:
		return "other"
	}
	return map[int]string{-1: "better", 1: "worse"}[d]
}

// part are the rows of a machine and a kind of network; "": of all.
func part(rows []Row, machine, kind string) (list []*Row) {
	for i := range rows {
		if r := &rows[i]; (machine == "" || r.Machine == machine) && (kind == "" || r.Kind == kind) {
			list = append(list, r)
		}
	}
	return list
}

// distinct lists what rows have of a field, in their order.
func distinct(rows []Row, of func(*Row) string) (list []string) {
	for i := range rows {
		if v := of(&rows[i]); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

func machines(rows []Row) []string { return distinct(rows, func(r *Row) string { return r.Machine }) }
func kinds(rows []Row) []string    { return distinct(rows, func(r *Row) string { return r.Kind }) }

// count is how many rows are so.
func count(list []*Row, ok func(*Row) bool) (n int) {
	for _, r := range list {
		if ok(r) {
			n++
		}
	}
	return n
}

func within(percent float64) func(*Row) bool {
	return func(r *Row) bool { return r.above() <= percent }
}

// gains are how many times as fast as greedy other schedules are, in the geometric mean, and the largest with its row;
// nil: there is none.
func gains(list []*Row, other func(*Row) int64) (mean, most float64, at *Row) {
	mean, logs, n := math.NaN(), 0.0, 0.0
	for _, r := range list {
		if g := 1 + r.gain(other(r))/100; !math.IsNaN(g) {
			logs, n = logs+math.Log(g), n+1
			if mean = math.Exp(logs / n); g > most {
				most, at = g, r
			}
		}
	}
	return mean, most, at
}

func exact(r *Row) int64 { return r.Exact }
func tiled(r *Row) int64 { return r.Tiled }

// Sentences conclude from the table.
func Sentences(rows []Row) []string {
	all, verdicts := part(rows, "", ""), map[string]int{}
	for _, r := range all {
		verdicts[strings.Fields(r.Verdict())[0]]++
	}
	by := func(names []string, of func(string) []*Row) string {
		var list []string
		for _, n := range names {
			if mean, most, at := gains(of(n), exact); at != nil {
				list = append(list, fmt.Sprintf("%s %.2f (%.2f)", n, mean, most))
			}
		}
		return strings.Join(list, ", ")
	}
	mean, most, at := gains(all, exact)
	if at == nil {
		return nil
	}
	return []string{
		fmt.Sprintf("Of %d networks on %d machines, %d cells, greedy is proven within 5 %% of every schedule of equal shares "+
			"in %d and within 10 %% in %d more. In %d of the others exact decisions gain 1 %% or more. In %d only this "+
			"project's recipes gain that, with other kernels, fusion or division (tiled). %d are open, and %d have no "+
			"greedy schedule within the limits.", len(rows)/len(machines(rows)), len(machines(rows)), len(rows),
			count(all, within(5)), verdicts["within"]-count(all, within(5)), verdicts["exact"], verdicts["tiled"],
			verdicts["open"], verdicts["not"]),
		fmt.Sprintf("Exact decisions gain %.2f in the geometric mean of the %d cells with an exact schedule, and at most "+
			"%.2f (%s on %s); by machine %s; by kind of network %s.", mean,
			count(all, func(r *Row) bool { return r.Exact > 0 }), most, at.Network, at.Machine,
			by(machines(rows), func(m string) []*Row { return part(rows, m, "") }),
			by(kinds(rows), func(k string) []*Row { return part(rows, "", k) })),
		matters(rows),
	}
}

// matters says what the cells share in which exact decisions gain most.
func matters(rows []Row) string {
	list := slices.DeleteFunc(part(rows, "", ""), func(r *Row) bool { return r.Exact == 0 })
	slices.SortStableFunc(list, func(a, b *Row) int { return cmp.Compare(b.gain(b.Exact), a.gain(a.Exact)) })
	top := list[:min(20, len(list))]
	shares := func(names []string, of func(*Row) string) string {
		n := map[string]int{}
		for _, r := range top {
			n[of(r)]++
		}
		slices.SortStableFunc(names, func(a, b string) int { return n[b] - n[a] })
		names = slices.DeleteFunc(names, func(name string) bool { return n[name] == 0 })
		return strings.Join(harness.Each(names, func(name string) string { return fmt.Sprint(name, " ", n[name]) }), ", ")
	}
	l1 := func(r *Row) string {
		return fmt.Sprintf("%s (L1 %d KiB)", r.Machine, int64(harness.Accelerator(r.Machine).L1.SizeBytes)>>10)
	}
	return fmt.Sprintf("It matters where: of the %d largest gains, %.2f and more, by machine %s; by kind %s; in %d of them "+
		"every decision exact beats each one alone.", len(top), 1+top[len(top)-1].gain(top[len(top)-1].Exact)/100,
		shares(distinct(rows, l1), l1), shares(kinds(rows), func(r *Row) string { return r.Kind }),
		count(top, func(r *Row) bool { return r.By == "exact-all" }))
}

// Report has the sentences, the table and the figure.
func Report(rows []Row) (*harness.Report, error) {
	d := harness.NewDocument(harness.Experiment{Name: "schedules", Description: "is greedy enough?",
		Paper: "none; 40 networks on six machines"}, machines(rows)...)
	t := harness.Table{Name: "schedules", Title: "Greedy and exact decisions by machine and kind of network",
		Columns: harness.Columns("<Machine", "<Networks", "Cells", "Greedy within|5 %|10 %", "Exact gains|mean|most",
			"<by", "Tiled gains|mean|most"),
		Notes: []string{fmt.Sprintf("Within: cells in which greedy is proven within so much of all schedules of equal shares. "+
			"Gains: how many times as fast as greedy, in the geometric mean and at most. Exact decisions are tried at greedy's "+
			"chunk, up to %d commands of greedy's program, and simulate about %d commands each; greedy is tried up to %d. "+
			"tiled may divide the network between clusters, which that bound is not of.", exactly, measured, posed)}}
	figure := []plots.Groups{
		{Title: "What exact decisions gain over greedy ones", YLabel: "Gain (%)", Log: true, Line: 1},
		{Title: "How far greedy is above the bound, at most", YLabel: "Above the bound (%)", Log: true, Line: 10}}
	values := []func(*Row) float64{func(r *Row) float64 { return r.gain(r.Exact) }, (*Row).above}
	for i := range figure {
		g := &figure[i]
		g.Categories = machines(rows)
		for _, kind := range kinds(rows) {
			s, spread := plots.Series{Name: kind}, [][]float64{}
			for _, machine := range g.Categories {
				var points []float64
				for _, r := range part(rows, machine, kind) {
					if v := values[i](r); !math.IsNaN(v) {
						points = append(points, max(0.1, v))
					}
				}
				s.Values, spread = append(s.Values, median(points)), append(spread, points)
			}
			g.Series, g.Spread = append(g.Series, s), append(g.Spread, spread)
		}
	}
	number := func(x float64) string {
		if math.IsNaN(x) || x == 0 {
			return "–"
		}
		return harness.Fixed(x, 2)
	}
	for _, machine := range machines(rows) {
		for _, kind := range append(kinds(rows), "") {
			list := part(rows, machine, kind)
			mean, most, at := gains(list, exact)
			by := "–"
			if at != nil && most > 1 {
				by = at.Network
			}
			own, largest, _ := gains(list, tiled)
			t.Add(machine, cmp.Or(kind, "all"), count(list, within(math.MaxFloat64)), count(list, within(5)),
				count(list, within(10)), number(mean), number(most), by, number(own), number(largest))
		}
	}
	for _, s := range Sentences(rows) {
		d.Note("%s", s)
	}
	d.Table(t)
	d.Bars("schedules", "Is greedy enough?", figure...)
	return d.Report(struct{}{})
}

// median is NaN of nothing.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
