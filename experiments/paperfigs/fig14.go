package paperfigs

import (
	"fmt"
	"math"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/plots"
)

// fig14 is the paper's overall comparison.
func fig14() grid {
	return grid{name: "fig14", description: "throughput of TVM, AStitch and GraphTurbo on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), Fig. 14, and the throughputs of TVM on its slides", hardware: "stcp920",
		variants: []string{"tvm", "astitch", "cross-layer"}, policies: []harness.ChunkPolicy{harness.PaperChunks, harness.Tuned}, report: reportFig14}
}

func reportFig14(rows gridRows, b *harness.Document) error {
	t := harness.Table{Name: "throughput", Title: "Throughput, and speedup over TVM",
		Columns: []harness.Column{{Name: "", Text: true}, {Name: "Network", Text: true}, {Name: "Batch", Screen: true}, {Name: "Unit", Text: true, Screen: true},
			{Group: "TVM", Name: "published"}, {Group: "TVM", Name: "paper's\nbatches"}, {Group: "TVM", Name: "ratio"}, {Group: "TVM", Name: "best\nbatches"},
			{Group: "AStitch", Name: "paper's\nbatches"}, {Group: "GraphTurbo", Name: "paper's\nbatches"}, {Group: "GraphTurbo", Name: "best\nbatches"},
			{Group: "Over TVM (×)", Name: "paper's\nbatches"}, {Group: "Over TVM (×)", Name: "best\nbatches"}, {Name: "Over\nAStitch\n(×)"}}}
	ratio := func(to, from string) func(harness.ChunkPolicy) func(literature.Configuration) float64 {
		return func(p harness.ChunkPolicy) func(literature.Configuration) float64 {
			return func(c literature.Configuration) float64 {
				return rows.at(c, to, p).ThroughputPerSecond / rows.at(c, from, p).ThroughputPerSecond
			}
		}
	}
	speedup, overAStitch, astitch := ratio("cross-layer", "tvm"), ratio("cross-layer", "astitch"), ratio("astitch", "tvm")
	var ours, published []float64
	var calibration []string
	spec, err := hardware.Load(fig14().hardware)
	if err != nil {
		return err
	}
	for _, c := range literature.Configurations() {
		tp, tt := rows.at(c, "tvm", harness.PaperChunks).ThroughputPerSecond, rows.at(c, "tvm", harness.Tuned).ThroughputPerSecond
		gp, gt := rows.at(c, "cross-layer", harness.PaperChunks).ThroughputPerSecond, rows.at(c, "cross-layer", harness.Tuned).ThroughputPerSecond
		name := c.Network
		if c.Doubt != "" {
			name += " *"
		}
		t.Rows = append(t.Rows, []string{c.Label, name, harness.Count(c.BatchSize), c.Unit, harness.Significant(c.TVMThroughputPerSecond), harness.Significant(tp),
			harness.Fixed(tp/c.TVMThroughputPerSecond, 2), harness.Significant(tt), harness.Significant(rows.at(c, "astitch", harness.PaperChunks).ThroughputPerSecond),
			harness.Significant(gp), harness.Significant(gt), harness.Fixed(speedup(harness.PaperChunks)(c), 2), harness.Fixed(speedup(harness.Tuned)(c), 2), harness.Fixed(overAStitch(harness.PaperChunks)(c), 2)})
		remark := c.Doubt
		if remark == "" {
			remark = reasonTVM(rows.at(c, "tvm", harness.PaperChunks), c.TVMThroughputPerSecond, spec)
		}
		b.Line(harness.Line{What: fmt.Sprintf("%s %s: TVM's throughput", c.Label, c.Network), Unit: c.Unit, Published: c.TVMThroughputPerSecond, Ours: tp,
			Calibration: c.Calibration(), Remark: remark})
		ours, published = append(ours, tp), append(published, c.TVMThroughputPerSecond)
		if c.Calibration() {
			calibration = append(calibration, c.Label)
		}
		if c.Doubt != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("* %s: the published figure is doubted: %s.", c.Label, c.Doubt))
		}
	}
	t.Notes = append(t.Notes, fmt.Sprintf("TVM's throughputs of %s are of the calibration set, all others of the evaluation set.", strings.Join(calibration, " and ")))
	for _, m := range []struct {
		label string
		literature.Measurement
	}{{"A", literature.MeasuredResNet}, {"B", literature.MeasuredBERT}} {
		c := literature.ConfigurationOf(m.label)
		b.Line(harness.Line{What: fmt.Sprintf("%s %s: measured with the vendor's code, %s, batch %d", c.Label, c.Network, m.Precision, m.Batch), Unit: c.Unit,
			Published: m.ThroughputPerSecond, Ours: rows.at(c, "cross-layer", harness.PaperChunks).ThroughputPerSecond, Calibration: true,
			Remark: m.Source + "; ours is GraphTurbo"})
	}
	t.Notes = append(t.Notes, "The paper's mean speedup over the vendor's own code, 1.04, has nothing beside it: that code is not public and is not simulated.")
	if err := b.Table(t); err != nil {
		return err
	}
	agree, lines := rankTable(rows)
	if err := b.Table(agree); err != nil {
		return err
	}
	for _, l := range lines {
		b.Line(l)
	}
	needs, notes := implied(rows, spec)
	if err := b.Table(needs); err != nil {
		return err
	}
	for _, n := range notes {
		b.Note("%s", n)
	}
	var pa float64
	for _, p := range []harness.ChunkPolicy{harness.PaperChunks, harness.Tuned} {
		all, plausible := literature.Means(speedup(p))
		b.Note("Mean speedup over TVM, %s: arithmetic %.2f, geometric %.2f; without D and H %.2f and %.2f. Published: %.2f.",
			harness.PolicyWords(p), all.Arithmetic, all.Geometric, plausible.Arithmetic, plausible.Geometric, literature.MeanSpeedup.Value)
		if p == harness.PaperChunks {
			pa = all.Arithmetic
			remark := reasonGain(rows, "cross-layer", "tvm", literature.MeanSpeedup.Value)
			b.Line(harness.Line{What: "mean speedup of GraphTurbo over TVM, A-J, arithmetic", Unit: "x", Published: literature.MeanSpeedup.Value, Ours: all.Arithmetic, Remark: remark, Headline: 1})
			b.Line(harness.Line{What: "mean speedup of GraphTurbo over TVM, without D and H", Unit: "x", Published: literature.MeanSpeedup.Value, Ours: plausible.Arithmetic, Remark: "see the mean over all"})
		}
	}
	all, plausible := literature.Means(overAStitch(harness.PaperChunks))
	gains, _ := literature.Means(astitch(harness.PaperChunks))
	implied := literature.MeanSpeedup.Value / literature.MeanOverAStitch.Value
	b.Note("Mean speedup over AStitch, %s: arithmetic %.2f, geometric %.2f; without D and H %.2f and %.2f. Published: %.2f. %s", harness.PolicyWords(harness.PaperChunks),
		all.Arithmetic, all.Geometric, plausible.Arithmetic, plausible.Geometric, literature.MeanOverAStitch.Value, bothSpeedups(pa, all.Arithmetic, gains.Arithmetic))
	b.Line(harness.Line{What: "mean speedup of GraphTurbo over AStitch, A-J, arithmetic", Unit: "x", Published: literature.MeanOverAStitch.Value, Ours: all.Arithmetic, Headline: 2,
		Remark: bothSpeedups(pa, all.Arithmetic, gains.Arithmetic)})
	remark, err := stitched(rows, implied)
	if err != nil {
		return err
	}
	b.Line(harness.Line{What: "mean speedup of AStitch over TVM (quotient of the two published means)", Unit: "x", Published: implied, Ours: gains.Arithmetic, Remark: remark})
	f, err := plots.GroupedBars(plots.Groups{
		Title: "Speedup over TVM", YLabel: "Speedup (×)", Categories: literature.Labels("mean\nA–J"), Line: 1,
		Series: []plots.Series{{Name: "AStitch, paper's batches", Values: literature.Pick(astitch(harness.PaperChunks), gains.Arithmetic)},
			{Name: "GraphTurbo, paper's batches", Values: literature.Pick(speedup(harness.PaperChunks), pa)},
			{Name: "GraphTurbo, best batches", Values: literature.Pick(speedup(harness.Tuned), func() float64 { a, _ := literature.Means(speedup(harness.Tuned)); return a.Arithmetic }())}},
		Marks: []plots.GroupMark{{Category: len(literature.Configurations()), Series: 1, Value: literature.MeanSpeedup.Value},
			{Category: len(literature.Configurations()), Series: 0, Value: literature.MeanSpeedup.Value / literature.MeanOverAStitch.Value}},
	})
	faster := 0
	low, high := math.Inf(1), 0.0
	var least, most literature.Configuration
	for _, c := range literature.Configurations() {
		x := speedup(harness.PaperChunks)(c)
		if x > 1 {
			faster++
		}
		if x < low {
			low, least = x, c
		}
		if x > high {
			high, most = x, c
		}
	}
	b.Lead("speedup", "Speedups", fmt.Sprintf("GraphTurbo is faster than a kernel per layer on %d of %d configurations, by %.1f (%s) to %.1f times (%s), in the mean by %.1f; the paper has %.2f.",
		faster, len(literature.Configurations()), low, least.Network, high, most.Network, pa, literature.MeanSpeedup.Value))
	if err := b.Figure("speedup", "Speedup over TVM", f, err); err != nil {
		return err
	}
	f, err = plots.GroupedBars(plots.Groups{
		Title: "TVM's throughput, the paper's batches per cluster", YLabel: "Throughput (1/s)", Categories: literature.Labels(), Log: true,
		Series: []plots.Series{{Name: "simulated", Values: ours}},
		Marks: func() (m []plots.GroupMark) {
			for i, v := range published {
				m = append(m, plots.GroupMark{Category: i, Value: v})
			}
			return m
		}(),
	})
	return b.Figure("tvm", "TVM's throughput", f, err)
}

// Fig14 is the overall comparison.
func Fig14() harness.Experiment { return fig14().experiment() }

// bothSpeedups says what the mean speedup over AStitch is worth: it is near the published
// one for no good reason if both speedups over TVM that it comes from are off alike.
func bothSpeedups(overTVM, overAStitch, astitch float64) string {
	implied := literature.MeanSpeedup.Value / literature.MeanOverAStitch.Value
	s := fmt.Sprintf("Over TVM GraphTurbo gains %s of the published mean and AStitch %s of the published means' quotient.",
		harness.Percent(overTVM/literature.MeanSpeedup.Value)+" %", harness.Percent(astitch/implied)+" %")
	near := harness.Within20(literature.MeanOverAStitch.Value)(overAStitch)
	if near && !harness.Within20(literature.MeanSpeedup.Value)(overTVM) && !harness.Within20(implied)(astitch) {
		s += " That the speedup over AStitch is near says little: both are off."
	}
	return s
}

// stitched is the remark on AStitch's gain: between which configurations it varies, and how
// many softmaxes and normalisations are single operators, which leave less to stitch.
func stitched(rows gridRows, published float64) (string, error) {
	single := 0
	for _, c := range literature.Configurations() {
		n, err := singleOperators(c.Network)
		if err != nil {
			return "", err
		}
		single += n
	}
	s := reasonGain(rows, "astitch", "tvm", published)
	if single > len(literature.Configurations()) { // more than a softmax at the end of each
		s += fmt.Sprintf("; %d softmaxes and normalisations are single operators in these graphs, which leaves nothing to stitch in them", single)
	}
	return s, nil
}
