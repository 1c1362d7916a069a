package ablation

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
)

// figures are the throughput and the utilisation by variant.
func (a ablation) figures(d *harness.Document, rows []harness.Row) {
	var throughput, utilization []plots.Groups
	for _, n := range a.networks {
		if t, u := n.panels(rows); len(t.Categories) > 0 {
			throughput, utilization = append(throughput, t), append(utilization, u)
		}
	}
	d.Bars("throughput", "Throughput by variant", throughput...)
	if len(a.ten) == 0 {
		d.Lead("throughput", "What each idea is worth", steps(rows))
	}
	d.Bars("utilization", "Utilisation of MME and VME by variant", utilization...)
}

// panels show the rows with the paper's batches per cluster, as the published throughputs have them, and where the best
// would be; and how much of their peaks the units reach.
func (n ablationNetwork) panels(rows []harness.Row) (throughput, utilization plots.Groups) {
	best := map[string]float64{}
	category := map[string]int{}
	var list []harness.Row
	for _, r := range rows {
		switch {
		case r.Model != n.model || r.Batch != n.batch:
		case r.ChunkPolicy == harness.Tuned:
			best[r.Variant] = r.ThroughputPerSecond
		case r.ChunkPolicy == harness.PaperChunks:
			category[r.Variant] = len(list)
			list = append(list, r)
		}
	}
	title := fmt.Sprintf("%s, batch %d", literature.NetworkTitle(n.model), n.batch)
	throughput = plots.Groups{Title: title, YLabel: "Throughput (" + n.unit + ")", Numbers: true,
		Series: []plots.Series{{Name: "with the paper's batches per cluster"}, {Name: "with the best ones"}}}
	utilization = plots.Groups{Title: title, YLabel: "Utilisation (% of peak)", Numbers: true,
		Series: []plots.Series{{Name: "matrix unit (MME)"}, {Name: "vector unit (VME)"}}}
	add := func(g *plots.Groups, first, second float64) {
		g.Series[0].Values, g.Series[1].Values = append(g.Series[0].Values, first), append(g.Series[1].Values, second)
	}
	if len(list) > 0 {
		throughput.Title += fmt.Sprintf(" (×: over %s)", list[0].Variant)
	}
	for _, r := range list {
		name := r.Variant + "\n" + inThePaper[r.Variant]
		gain := fmt.Sprintf("\n%s×", harness.Significant(r.ThroughputPerSecond/list[0].ThroughputPerSecond))
		throughput.Categories = append(throughput.Categories, name+gain)
		utilization.Categories = append(utilization.Categories, name)
		add(&throughput, r.ThroughputPerSecond, best[r.Variant])
		add(&utilization, 100*r.MMEUtilization, 100*r.VMEUtilization)
	}
	mark := func(variant string, value float64, kind plots.MarkKind) {
		if i, ok := category[variant]; ok {
			throughput.Marks = append(throughput.Marks, plots.GroupMark{Category: i, Value: value, Kind: kind})
			throughput.Categories[i] += fmt.Sprintf("\n%s %.0f", [...]string{"published", "measured"}[kind], value)
		}
	}
	if n.label != "" {
		mark("tvm", literature.ConfigurationOf(n.label).TVMThroughputPerSecond, plots.Published)
	}
	switch n.label {
	case "A":
		mark("cross-layer", literature.MeasuredResNet.ThroughputPerSecond, plots.Measured)
	case "B":
		mark("cross-layer", literature.BertThroughput.Value, plots.Published)
		mark("cross-layer", literature.MeasuredBERT.ThroughputPerSecond, plots.Measured)
	}
	for i, c := range throughput.Categories {
		throughput.Categories[i] += strings.Repeat("\n ", 4-strings.Count(c, "\n")) // for one height
	}
	return throughput, utilization
}

// inThePaper are the names of the table's recipes in the paper.
var inThePaper = map[string]string{"tvm": "TVM", "llb": "variant 1", "l1": "variant 2", "ordering": "variant 3",
	"cross-layer": "variant 4"}

// steps says by network how much faster the last variant is than the first, with the best
// batches per cluster of each, and which step does most.
func steps(rows []harness.Row) string {
	var parts []string
	for _, g := range harness.GroupRows(rows) {
		if g[0].ChunkPolicy != harness.Tuned {
			continue
		}
		best := 1
		gain := func(i int) float64 { return g[i].ThroughputPerSecond / g[i-1].ThroughputPerSecond }
		for i := 2; i < len(g); i++ {
			if gain(i) > gain(best) {
				best = i
			}
		}
		last := g[len(g)-1]
		parts = append(parts, fmt.Sprintf("on %s %s is %.1f times as fast as %s, of which %s brings most (%.1f times)",
			literature.NetworkTitle(g[0].Model), last.Variant,
			last.ThroughputPerSecond/g[0].ThroughputPerSecond, g[0].Variant, g[best].Variant, gain(best)))
	}
	s := strings.Join(parts, "; ")
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
