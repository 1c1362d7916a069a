package experiments

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/plots"
)

// fig14 is the paper's overall comparison.
func fig14() grid {
	return grid{name: "fig14", description: "throughput of TVM, AStitch and GraphTurbo on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), Fig. 14, and the throughputs of TVM on its slides", hardware: "stcp920",
		variants: []string{"tvm", "astitch", "cross-layer"}, policies: []ChunkPolicy{PaperChunks, Tuned}, report: reportFig14}
}

func reportFig14(rows gridRows, b *gridReport) error {
	t := table{title: "Throughput, and speedup over TVM", label: "tab:fig14",
		columns: []column{{name: "", text: true}, {name: "Network", text: true}, {name: "Batch"}, {name: "Unit", text: true},
			{group: "TVM", name: "published"}, {group: "TVM", name: "paper's\nbatches"}, {group: "TVM", name: "ratio"}, {group: "TVM", name: "best\nbatches"},
			{group: "AStitch", name: "paper's\nbatches"}, {group: "GraphTurbo", name: "paper's\nbatches"}, {group: "GraphTurbo", name: "best\nbatches"},
			{group: "Over TVM (×)", name: "paper's\nbatches"}, {group: "Over TVM (×)", name: "best\nbatches"}, {group: "Over AStitch (×)", name: "paper's\nbatches"}}}
	ratio := func(to, from string) func(ChunkPolicy) func(Configuration) float64 {
		return func(p ChunkPolicy) func(Configuration) float64 {
			return func(c Configuration) float64 {
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
	for _, c := range Configurations() {
		tp, tt := rows.at(c, "tvm", PaperChunks).ThroughputPerSecond, rows.at(c, "tvm", Tuned).ThroughputPerSecond
		gp, gt := rows.at(c, "cross-layer", PaperChunks).ThroughputPerSecond, rows.at(c, "cross-layer", Tuned).ThroughputPerSecond
		name := c.Network
		if c.Doubt != "" {
			name += " *"
		}
		t.rows = append(t.rows, []string{c.Label, name, count(c.BatchSize), c.Unit, significant(c.TVMThroughputPerSecond), significant(tp),
			fixed(tp/c.TVMThroughputPerSecond, 2), significant(tt), significant(rows.at(c, "astitch", PaperChunks).ThroughputPerSecond),
			significant(gp), significant(gt), fixed(speedup(PaperChunks)(c), 2), fixed(speedup(Tuned)(c), 2), fixed(overAStitch(PaperChunks)(c), 2)})
		remark := c.Doubt
		if remark == "" {
			remark = reasonTVM(rows.at(c, "tvm", PaperChunks), c.TVMThroughputPerSecond, spec)
		}
		b.line(Line{What: fmt.Sprintf("%s %s: TVM's throughput", c.Label, c.Network), Unit: c.Unit, Published: c.TVMThroughputPerSecond, Ours: tp,
			Calibration: c.calibration(), Remark: remark})
		ours, published = append(ours, tp), append(published, c.TVMThroughputPerSecond)
		if c.calibration() {
			calibration = append(calibration, c.Label)
		}
		if c.Doubt != "" {
			t.notes = append(t.notes, fmt.Sprintf("* %s: the published figure is doubted: %s.", c.Label, c.Doubt))
		}
	}
	t.notes = append(t.notes, fmt.Sprintf("TVM's throughputs of %s are of the calibration set, all others of the evaluation set.", strings.Join(calibration, " and ")))
	for _, m := range []struct {
		label string
		Measurement
	}{{"A", measuredResNet}, {"B", measuredBERT}} {
		c := configuration(m.label)
		b.line(Line{What: fmt.Sprintf("%s %s: measured with the vendor's code, %s, batch %d", c.Label, c.Network, m.Precision, m.Batch), Unit: c.Unit,
			Published: m.ThroughputPerSecond, Ours: rows.at(c, "cross-layer", PaperChunks).ThroughputPerSecond, Calibration: true,
			Remark: m.Source + "; ours is GraphTurbo"})
	}
	t.notes = append(t.notes, "The paper's mean speedup over the vendor's own code, 1.04, has nothing beside it: that code is not public and is not simulated.")
	if err := b.table(t); err != nil {
		return err
	}
	agree, lines := rankTable(rows)
	if err := b.table(agree); err != nil {
		return err
	}
	for _, l := range lines {
		b.line(l)
	}
	needs, notes := implied(rows, spec)
	if err := b.table(needs); err != nil {
		return err
	}
	for _, n := range notes {
		b.note("%s", n)
	}
	var pa float64
	for _, p := range []ChunkPolicy{PaperChunks, Tuned} {
		all, plausible := means(speedup(p))
		b.note("Mean speedup over TVM, %s: arithmetic %.2f, geometric %.2f; without D and H %.2f and %.2f. Published: %.2f.",
			policyWords(p), all.Arithmetic, all.Geometric, plausible.Arithmetic, plausible.Geometric, meanSpeedup.Value)
		if p == PaperChunks {
			pa = all.Arithmetic
			remark := reasonGain(rows, "cross-layer", "tvm", meanSpeedup.Value)
			b.line(Line{What: "mean speedup of GraphTurbo over TVM, A-J, arithmetic", Unit: "x", Published: meanSpeedup.Value, Ours: all.Arithmetic, Remark: remark})
			b.line(Line{What: "mean speedup of GraphTurbo over TVM, without D and H", Unit: "x", Published: meanSpeedup.Value, Ours: plausible.Arithmetic, Remark: "see the mean over all"})
		}
	}
	all, plausible := means(overAStitch(PaperChunks))
	b.note("Mean speedup over AStitch, %s: arithmetic %.2f, geometric %.2f; without D and H %.2f and %.2f. Published: %.2f. %s", policyWords(PaperChunks),
		all.Arithmetic, all.Geometric, plausible.Arithmetic, plausible.Geometric, meanOverAStitch.Value,
		"That this is near says little: AStitch gains less over TVM here than the published means imply, since softmax and layer normalisation are single operators in these graphs.")
	b.line(Line{What: "mean speedup of GraphTurbo over AStitch, A-J, arithmetic", Unit: "x", Published: meanOverAStitch.Value, Ours: all.Arithmetic,
		Remark: "both speedups over TVM behind it are below the published ones"})
	gains, _ := means(astitch(PaperChunks))
	b.line(Line{What: "mean speedup of AStitch over TVM (quotient of the two published means)", Unit: "x", Published: meanSpeedup.Value / meanOverAStitch.Value, Ours: gains.Arithmetic,
		Remark: reasonGain(rows, "astitch", "tvm", meanSpeedup.Value/meanOverAStitch.Value) + "; softmax and layer normalisation are single operators here, so that there is less to stitch"})
	f, err := plots.GroupedBars(plots.Groups{
		Title: "Speedup over TVM", YLabel: "Speedup (×)", Categories: labels("mean\nA–J"), Line: 1,
		Series: []plots.Series{{Name: "AStitch, paper's batches", Values: pick(astitch(PaperChunks), gains.Arithmetic)},
			{Name: "GraphTurbo, paper's batches", Values: pick(speedup(PaperChunks), pa)},
			{Name: "GraphTurbo, best batches", Values: pick(speedup(Tuned), func() float64 { a, _ := means(speedup(Tuned)); return a.Arithmetic }())}},
		Marks: []plots.GroupMark{{Category: len(Configurations()), Series: 1, Value: meanSpeedup.Value},
			{Category: len(Configurations()), Series: 0, Value: meanSpeedup.Value / meanOverAStitch.Value}},
	})
	if err := b.figure("speedup", "Speedup over TVM", f, err); err != nil {
		return err
	}
	f, err = plots.GroupedBars(plots.Groups{
		Title: "TVM's throughput, the paper's batches per cluster", YLabel: "Throughput (1/s)", Categories: labels(), Log: true,
		Series: []plots.Series{{Name: "simulated", Values: ours}},
		Marks: func() (m []plots.GroupMark) {
			for i, v := range published {
				m = append(m, plots.GroupMark{Category: i, Value: v})
			}
			return m
		}(),
	})
	return b.figure("tvm", "TVM's throughput", f, err)
}
