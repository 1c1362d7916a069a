package ablation

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/plots"
)

// figures are the throughput and the utilisation by variant.
func (a ablation) figures(d *harness.Document, rows []harness.Row) {
	var networks []plots.Network
	for _, n := range a.networks {
		if p := n.panel(rows); len(p.Variants) > 0 {
			networks = append(networks, p)
		}
	}
	f, err := plots.Throughput(networks)
	d.Figure("throughput", "Throughput by variant", f, err)
	if len(a.ten) == 0 {
		d.Lead("throughput", "What each idea is worth", steps(rows))
	}
	f, err = plots.Utilization(networks)
	d.Figure("utilization", "Utilisation of MME and VME by variant", f, err)
}

// panel shows the rows with the paper's batches per cluster, as the published throughputs have them, and where the best
// would be.
func (n ablationNetwork) panel(rows []harness.Row) plots.Network {
	title := literature.NetworkTitle(n.model)
	p := plots.Network{Title: fmt.Sprintf("%s, batch %d", title, n.batch), Unit: n.unit}
	best := map[string]float64{}
	variants := map[string]bool{}
	for _, r := range rows {
		if r.Model == n.model && r.Batch == n.batch && r.ChunkPolicy == harness.Tuned {
			best[r.Variant] = r.ThroughputPerSecond
		}
	}
	for _, r := range rows {
		if r.Model == n.model && r.Batch == n.batch && r.ChunkPolicy == harness.PaperChunks {
			variants[r.Variant] = true
			p.Variants = append(p.Variants, plots.Variant{
				Name: r.Variant, Title: inThePaper[r.Variant], ThroughputPerSecond: r.ThroughputPerSecond,
				BestPerSecond: best[r.Variant], MMEUtilization: r.MMEUtilization, VMEUtilization: r.VMEUtilization,
			})
		}
	}
	add := func(variant string, throughput float64, kind plots.MarkKind) {
		if variants[variant] {
			p.Marks = append(p.Marks, plots.Mark{Variant: variant, ThroughputPerSecond: throughput, Kind: kind})
		}
	}
	if n.label != "" {
		add("tvm", literature.ModelOf(n.label).TVMThroughputPerSecond, plots.Published)
	}
	switch n.label {
	case "A":
		add("cross-layer", literature.MeasuredResNet.ThroughputPerSecond, plots.Measured)
	case "B":
		add("cross-layer", literature.BertThroughput.Value, plots.Published)
		add("cross-layer", literature.MeasuredBERT.ThroughputPerSecond, plots.Measured)
	}
	return p
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
