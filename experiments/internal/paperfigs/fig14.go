package paperfigs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
	"gonum.org/v1/gonum/stat"
)

// fig14 is the paper's overall comparison.
func fig14() grid {
	return grid{name: "fig14", description: "throughput of TVM, AStitch and GraphTurbo on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), Fig. 14, and the throughputs of TVM on its slides", hardware: "stcp920",
		variants:       []string{"tvm", "astitch", "cross-layer"},
		policies:       []harness.ChunkPolicy{harness.PaperChunks, harness.Tuned, harness.PaperInARow},
		configurations: literature.WithBeside, report: reportFig14}
}

func reportFig14(rows gridRows, b *harness.Document) {
	spec, err := hardware.Load(fig14().hardware)
	if err != nil {
		b.Fail(err)
		return
	}
	throughputs, lines := throughputTable(rows, spec)
	needs, notes := implied(rows, spec)
	b.Table(throughputs, steadyTable(rows), rankTable(rows), needs)
	for _, l := range lines {
		b.Line(l)
	}
	b.Notes = append(b.Notes, notes...)
	m := overall{rows: rows}
	m.means(b)
	m.figures(b)
}

// ratio is the ratio of two variants' throughputs, by configuration.
func (g gridRows) ratio(to, from string, p harness.ChunkPolicy) func(literature.Configuration) float64 {
	return func(c literature.Configuration) float64 {
		return g.at(c, to, p).ThroughputPerSecond / g.at(c, from, p).ThroughputPerSecond
	}
}

// throughputTable has the throughputs of all configurations, TVM's beside the published ones
// and two beside what others measured.
func throughputTable(rows gridRows, spec *hardware.Spec) (harness.Table, []harness.Line) {
	t := harness.Table{Name: "throughput", Title: "Throughput of a batch from a cold start, and speedup over TVM",
		Columns: harness.Columns("<", "<Network", "Batch", "<Unit",
			"TVM|published|paper's\nbatches|ratio|best\nbatches", "AStitch|TVM's\nbatches",
			"GraphTurbo|paper's\nbatches|best\nbatches", "Over TVM (×)|paper's\nbatches|best\nbatches",
			"Over\nAStitch\n(×)")}
	var lines []harness.Line
	var calibration []string
	for _, c := range literature.WithBeside() {
		of := func(variant string, p harness.ChunkPolicy) float64 { return rows.at(c, variant, p).ThroughputPerSecond }
		tvm := of("tvm", harness.PaperChunks)
		name, remark := c.Network, reasonTVM(rows.at(c, "tvm", harness.PaperChunks), c.TVMThroughputPerSecond, spec)
		if c.Doubt != "" {
			name, remark = name+" *", c.Doubt
			t.Notes = append(t.Notes, fmt.Sprintf("* %s: the published figure is doubted: %s.", c.Label, c.Doubt))
		}
		if c.Calibration() {
			calibration = append(calibration, c.Label)
		}
		ratio := func(to, from string, p harness.ChunkPolicy) string {
			return harness.Fixed(rows.ratio(to, from, p)(c), 2)
		}
		t.Add(c.Label, name, c.BatchSize, c.Unit, c.TVMThroughputPerSecond, tvm,
			harness.Fixed(tvm/c.TVMThroughputPerSecond, 2), of("tvm", harness.Tuned), of("astitch", harness.PaperChunks),
			of("cross-layer", harness.PaperChunks), of("cross-layer", harness.Tuned),
			ratio("cross-layer", "tvm", harness.PaperChunks), ratio("cross-layer", "tvm", harness.Tuned),
			ratio("cross-layer", "astitch", harness.PaperChunks))
		if c.Beside {
			continue
		}
		lines = append(lines, harness.Line{What: fmt.Sprintf("%s %s: TVM's throughput", c.Label, c.Network), Unit: c.Unit,
			Published: c.TVMThroughputPerSecond, Ours: tvm,
			Calibration: c.Calibration(), Remark: remark, Cause: cmp.Or(causesOf[c.Label], causeRates)})
	}
	t.Notes = append(t.Notes,
		fmt.Sprintf("TVM's throughputs of %s are of the calibration set, all others of the evaluation set.",
			strings.Join(calibration, ", ")),
		"The vendor's code is not public and not simulated. The published mean speedup over it, 1.04, is compared with GraphTurbo's speedup over what others measured with it.")
	for _, m := range []struct {
		label string
		literature.Measurement
	}{{"A", literature.MeasuredResNet}, {"B", literature.MeasuredBERT}} {
		c := literature.ConfigurationOf(m.label)
		lines = append(lines, harness.Line{What: fmt.Sprintf("%s %s: measured with the vendor's code, %s, batch %d", c.Label,
			c.Network, m.Precision, m.Batch), Unit: c.Unit,
			Published: m.ThroughputPerSecond, Ours: rows.at(c, "cross-layer", harness.PaperChunks).ThroughputPerSecond,
			Remark: m.Source + "; " + vendors, Given: true})
	}
	return t, lines
}

// vendors describes the counterparts of the vendor's numbers.
const vendors = "the vendor's hand-crafted code, which is not simulated; ours is GraphTurbo"

// steadyTable has the rates of batches in a row beside those of a batch alone.
func steadyTable(rows gridRows) harness.Table {
	t := harness.Table{Name: "steady", Title: "Throughput of batches in a row, the paper's batches per cluster",
		Columns: harness.Columns("<", "<Network"),
		Notes: []string{
			"Over one batch: steady-state rate over that of a single batch from a cold start, which all other tables have. –: the program is too large."}}
	variants := fig14().variants
	for _, v := range variants {
		t.AddColumns(systems[v]+"|in a row", systems[v]+"|over one\nbatch (×)")
	}
	t.AddColumns("GraphTurbo\nover TVM (×)")
	var gains []float64
	for _, c := range literature.WithBeside() {
		line := []string{c.Label, c.Network}
		rate := map[string]float64{}
		for _, v := range variants {
			r := rows.at(c, v, harness.PaperInARow)
			if rate[v] = r.SteadyThroughputPerSecond; rate[v] == 0 {
				line = append(line, "–", "–")
				continue
			}
			line = append(line, harness.Significant(rate[v]), harness.Fixed(rate[v]/r.ThroughputPerSecond, 3))
		}
		gain := "–"
		if tvm, turbo := rate["tvm"], rate["cross-layer"]; tvm > 0 && turbo > 0 {
			gain = harness.Fixed(turbo/tvm, 2)
			if !c.Beside {
				gains = append(gains, turbo/tvm)
			}
		}
		t.Add(line, gain)
	}
	if len(gains) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Mean speedup over TVM in a row, of %d: arithmetic %.2f, geometric %.2f.",
			len(gains), stat.Mean(gains, nil), stat.GeometricMean(gains, nil)))
	}
	return t
}

// systems are for people.
var systems = map[string]string{"tvm": "TVM", "astitch": "AStitch", "cross-layer": "GraphTurbo"}

// overall compares the three methods over all configurations.
type overall struct {
	rows gridRows
	// Means with the paper's batches per cluster.
	overTVM, overAStitch, astitch float64
}

// publishedAStitch is AStitch's speedup over TVM that the two published means imply.
var publishedAStitch = literature.MeanSpeedup.Value / literature.MeanOverAStitch.Value

// means adds the mean speedups, as notes and as lines.
func (m *overall) means(b *harness.Document) {
	mean := func(over string, f func(literature.Configuration) float64, p harness.ChunkPolicy, published float64) float64 {
		arithmetic, geometric := literature.Means(f)
		b.Note("Mean speedup over %s, %s: arithmetic %.2f, geometric %.2f. Published: %.2f.", over, harness.PolicyWords(p),
			arithmetic, geometric, published)
		return arithmetic
	}
	m.overTVM = mean("TVM", m.rows.ratio("cross-layer", "tvm", harness.PaperChunks), harness.PaperChunks,
		literature.MeanSpeedup.Value)
	mean("TVM", m.rows.ratio("cross-layer", "tvm", harness.Tuned), harness.Tuned, literature.MeanSpeedup.Value)
	m.overAStitch = mean("AStitch", m.rows.ratio("cross-layer", "astitch", harness.PaperChunks), harness.PaperChunks,
		literature.MeanOverAStitch.Value)
	mean("AStitch", m.rows.ratio("cross-layer", "astitch", harness.Tuned), harness.Tuned, literature.MeanOverAStitch.Value)
	arithmetic, geometric := literature.Means(m.rows.ratio("astitch", "tvm", harness.PaperChunks))
	m.astitch = m.overTVM / m.overAStitch
	b.Note(
		"AStitch over TVM, %.2f (published %.2f), is the quotient of GraphTurbo's two mean speedups. The mean of AStitch's own speedups, which is not published, is %.2f (geometric %.2f).",
		m.astitch, publishedAStitch, arithmetic, geometric)
	b.Note("Without A, G and I, to whose TVM throughputs the constants are fitted, the arithmetic means are %.2f over TVM and %.2f over AStitch.",
		literature.Unfitted(m.rows.ratio("cross-layer", "tvm", harness.PaperChunks)),
		literature.Unfitted(m.rows.ratio("cross-layer", "astitch", harness.PaperChunks)))
	known := func(label, variant string, published float64) float64 {
		return m.rows.at(literature.ConfigurationOf(label), variant, harness.PaperChunks).ThroughputPerSecond / published
	}
	vendorA := known("A", "cross-layer", literature.MeasuredResNet.ThroughputPerSecond)
	cause := fmt.Sprintf("where rates are known, GraphTurbo is %.2f times as fast as the vendor's code (A) and %.2f times as published (B), TVM %.2f and %.2f times; the text gives neither TVM nor AStitch more than they have",
		vendorA, known("B", "cross-layer", literature.BertThroughput.Value),
		known("A", "tvm", literature.ConfigurationOf("A").TVMThroughputPerSecond),
		known("B", "tvm", literature.ConfigurationOf("B").TVMThroughputPerSecond))
	for _, l := range []harness.Line{
		{What: "mean speedup of GraphTurbo over TVM, A-J, arithmetic", Published: literature.MeanSpeedup.Value,
			Ours: m.overTVM, Headline: 1, Cause: cause,
			Remark: "TVM's throughputs of A, G and I are fitted; " +
				reasonGain(m.rows, "cross-layer", "tvm", literature.MeanSpeedup.Value)},
		{What: "mean speedup of GraphTurbo over AStitch, A-J, arithmetic", Published: literature.MeanOverAStitch.Value,
			Ours: m.overAStitch, Headline: 3, Cause: cause,
			Remark: "Table 2 has no batches per cluster of AStitch, which has TVM's here"},
		{What: "GraphTurbo over the vendor's code, mean (ours over what others measured with it, A and B)", Published: 1.04,
			Ours:   (vendorA + known("B", "cross-layer", literature.MeasuredBERT.ThroughputPerSecond)) / 2,
			Remark: "the vendor's code is not simulated"},
		{What: "mean speedup of AStitch over TVM (quotient of the two published means)", Published: publishedAStitch,
			Ours: m.astitch, Remark: "of two numbers that have lines", Given: true},
	} {
		l.Unit = "x"
		b.Line(l)
	}
}

// figures draws the speedups, and TVM's throughputs beside the published ones.
func (m *overall) figures(b *harness.Document) {
	configurations := literature.Configurations()
	speedup := m.rows.ratio("cross-layer", "tvm", harness.PaperChunks)
	tuned := m.rows.ratio("cross-layer", "tvm", harness.Tuned)
	best, _ := literature.Means(tuned)
	vendor := make([]float64, len(configurations)+1) // over the published TVM
	vendor[0] = literature.MeasuredResNet.ThroughputPerSecond / configurations[0].TVMThroughputPerSecond
	vendor[1] = literature.MeasuredBERT.ThroughputPerSecond / configurations[1].TVMThroughputPerSecond
	b.Bars("speedup", "Speedup over TVM", plots.Groups{
		Title: "Speedup over TVM", YLabel: "Speedup (×)", Categories: literature.Labels("mean\nA–J"), Line: 1,
		Series: []plots.Series{{Name: "AStitch, TVM's batches",
			Values: literature.Pick(m.rows.ratio("astitch", "tvm", harness.PaperChunks), m.astitch)},
			{Name: "GraphTurbo, paper's batches", Values: literature.Pick(speedup, m.overTVM)},
			{Name: "GraphTurbo, best batches", Values: literature.Pick(tuned, best)},
			{Name: "vendor's code, measured (A, B)", Values: vendor}},
		Marks: []plots.GroupMark{{Category: len(configurations), Series: 1, Value: literature.MeanSpeedup.Value},
			{Category: len(configurations), Series: 0, Value: publishedAStitch}},
	})
	faster, least, most := 0, configurations[0], configurations[0]
	for _, c := range configurations {
		if speedup(c) > 1 {
			faster++
		}
		if speedup(c) < speedup(least) {
			least = c
		}
		if speedup(c) > speedup(most) {
			most = c
		}
	}
	b.Lead("speedup", "Speedups",
		fmt.Sprintf(
			"GraphTurbo is faster than TVM on %d of %d configurations: %.1f (%s) to %.1f times (%s), %.1f in the mean, %.1f without the three networks whose TVM throughputs were fitted; published: %.2f.",
			faster, len(configurations), speedup(least), least.Network, speedup(most), most.Network, m.overTVM,
			literature.Unfitted(speedup), literature.MeanSpeedup.Value))
	var marks []plots.GroupMark
	for i, c := range configurations {
		marks = append(marks, plots.GroupMark{Category: i, Value: c.TVMThroughputPerSecond})
	}
	b.Bars("tvm", "TVM's throughput", plots.Groups{
		Title: "TVM's throughput, the paper's batches per cluster", YLabel: "Throughput (1/s)",
		Categories: literature.Labels(), Log: true, Marks: marks,
		Series: []plots.Series{{Name: "simulated", Values: literature.Pick(func(c literature.Configuration) float64 {
			return m.rows.at(c, "tvm", harness.PaperChunks).ThroughputPerSecond
		})}},
	})
}

// Fig14 is the overall comparison.
func Fig14() harness.Experiment { return fig14().experiment() }
