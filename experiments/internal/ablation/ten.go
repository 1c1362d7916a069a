package ablation

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"gonum.org/v1/gonum/stat"
)

// paperNames lists the names in the paper's Fig. 15 of the recipes of [recipes.Table].
var paperNames = []string{"TVM", "variant 1 (LLB)", "variant 2 (L1)", "variant 3 (instance order)",
	"variant 4 (across layers)"}

// tenCells are the table's recipes on the ten configurations, at the paper's batches per cluster.
func (a ablation) tenCells(spec *hardware.Spec) (list []harness.Cell) {
	for _, c := range a.ten {
		for _, v := range recipes.Table() {
			list = append(list, literature.Cell(spec, c.Network, c.BatchSize, v.Name, c.PaperChunk(v), harness.PaperChunks,
				c.Unit))
		}
	}
	return list
}

// shares returns the fractions of their peaks that matrix unit, vector unit and DDR reach.
func shares(r harness.Row, spec *hardware.Spec) [3]float64 {
	return [3]float64{r.MMEUtilization, r.VMEUtilization,
		float64(r.MovedBytes.DDR) / r.LatencySeconds / spec.DDR.BandwidthBytesPerSecond}
}

// tenTable has throughput and utilisation of the ten configurations by variant.
func (a ablation) tenTable(rows []harness.Row, spec *hardware.Spec) []harness.Table {
	t := harness.Table{Name: "ten", Title: "The ten configurations by variant, the paper's batches per cluster",
		Columns: harness.Columns("<", "<Network", "<Variant", "Throughput\n(1/s)", "Over TVM\n(×)",
			"Of the peak (%)|MME|VME|DDR")}
	for i, r := range rows {
		c := a.ten[i/len(paperNames)]
		first := rows[i-i%len(paperNames)]
		u := shares(r, spec)
		t.Add(c.Label, c.Network, paperNames[i%len(paperNames)], r.ThroughputPerSecond,
			harness.Fixed(r.ThroughputPerSecond/first.ThroughputPerSecond, 2), harness.Percent(u[0]),
			harness.Percent(u[1]), harness.Percent(u[2]))
	}
	if len(rows) == 0 {
		return nil
	}
	return []harness.Table{t}
}

// tenFigure draws the same; where TVM's throughput is published, it stands beside ours.
func (a ablation) tenFigure(d *harness.Document, rows []harness.Row, spec *hardware.Spec) {
	panel := func(title, label string, of func(harness.Row) float64) plots.Groups {
		g := plots.Groups{Title: title, YLabel: label, Categories: literature.Labels()}
		for k, name := range paperNames {
			s := plots.Series{Name: name}
			for i := k; i < len(rows); i += len(paperNames) {
				s.Values = append(s.Values, of(rows[i]))
			}
			g.Series = append(g.Series, s)
		}
		return g
	}
	panels := []plots.Groups{panel("Throughput, the paper's batches per cluster (published: TVM's)", "Throughput (1/s)",
		func(r harness.Row) float64 { return r.ThroughputPerSecond })}
	panels[0].Log = true
	for i, c := range a.ten {
		panels[0].Marks = append(panels[0].Marks, plots.GroupMark{Category: i, Value: c.TVMThroughputPerSecond})
	}
	for k, name := range []string{"matrix units (MME)", "vector units (VME)", "DDR bandwidth"} {
		panels = append(panels, panel("Utilisation: "+name, "Of the peak (%)",
			func(r harness.Row) float64 { return 100 * shares(r, spec)[k] }))
	}
	sentence := fmt.Sprintf("Over TVM, in the mean of %d configurations:", len(a.ten))
	for k, name := range paperNames[1:] {
		var over, busy []float64
		for i := k + 1; i < len(rows); i += len(paperNames) {
			over = append(over, rows[i].ThroughputPerSecond/rows[i-k-1].ThroughputPerSecond)
			busy = append(busy, rows[i].MMEUtilization)
		}
		sentence += fmt.Sprintf(" %s %.2f times as fast, matrix units at %s %% of their peak;", name, stat.Mean(over, nil),
			harness.Percent(stat.Mean(busy, nil)))
	}
	d.Lead("ten", "What each idea is worth", strings.TrimSuffix(sentence, ";")+".")
	d.Bars("ten", fmt.Sprintf("Throughput and utilisation of %d configurations by variant", len(a.ten)), panels...)
}
