package paperfigs

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
)

// byBatch is an experiment on one network at several batch sizes, tuned.
type byBatch struct {
	grid
	network, unit string
	batches       []int64
	report        func(at func(variant string, batch int64) harness.Row, b *harness.Document)
}

func (e byBatch) experiment() harness.Experiment {
	return harness.Experiment{Name: e.name, Description: e.description, Paper: e.paper, Plan: e.plan}
}

func (e byBatch) plan() (*harness.Plan, error) {
	spec := harness.Accelerator(e.hardware)
	p := &harness.Plan{}
	for _, batch := range e.batches {
		for _, name := range e.variants {
			cell := literature.Cell(spec, e.network, batch, name, 0, e.policies[0], e.unit) // the best, as 5.1 tunes
			if name == "tvm" {
				var err error
				if cell, err = literature.TVM(spec, e.network, batch, e.policies[0], e.unit); err != nil {
					return nil, err
				}
			}
			p.Cells = append(p.Cells, cell)
		}
	}
	p.Report = harness.Of(func(rows []harness.Row) (*harness.Report, error) {
		at := func(variant string, batch int64) harness.Row {
			return rows[slices.IndexFunc(rows, func(r harness.Row) bool { return r.Variant == variant && r.Batch == batch })]
		}
		return e.experiment().WriteRows(e.hardware, func(b *harness.Document) { e.report(at, b) }, rows)
	})
	return p, nil
}

func (e byBatch) series(name string, of func(batch int64) float64) plots.Series {
	s := plots.Series{Name: name}
	for _, b := range e.batches {
		s.Values = append(s.Values, of(b))
	}
	return s
}

// table1 is BERT-128 by batch size.
func table1() byBatch {
	e := byBatch{grid: grid{name: "table1", description: "BERT-128 by batch size: throughput and latency",
		paper: "GraphTurbo (OSDI 2023), Table 1", hardware: "stcp920", variants: []string{"tvm", "cross-layer"},
		policies: []harness.ChunkPolicy{harness.TunedInARow}},
		network: "bert-128", unit: "sentences/s", batches: []int64{8, 16, 32, 64, 128, 256}}
	e.report = func(at func(string, int64) harness.Row, b *harness.Document) {
		t := harness.Table{Name: "batches", Title: "BERT-128 on " + e.hardware + ", TVM's batches per cluster by the LLB, GraphTurbo's best",
			Columns: harness.Columns("Batch", "Throughput (sentences/s)|TVM|GraphTurbo",
				"In a row (sentences/s)|TVM|GraphTurbo", "Latency (ms)|TVM|GraphTurbo", "Speedup\n(×)",
				"Batches per cluster|TVM|GraphTurbo", "Writes of GraphTurbo\nDDR/LLB/L1"),
			Notes: []string{
				"Throughput, latency and speedup: a single batch from a cold start. In a row: batches one behind the other."}}
		for _, n := range e.batches {
			x, y := at("tvm", n), at("cross-layer", n)
			t.Add(n, x.ThroughputPerSecond, y.ThroughputPerSecond, x.SteadyThroughputPerSecond,
				y.SteadyThroughputPerSecond, harness.Fixed(1e3*x.LatencySeconds, 2), harness.Fixed(1e3*y.LatencySeconds, 2),
				harness.Fixed(y.ThroughputPerSecond/x.ThroughputPerSecond, 2), x.BatchesPerCluster, y.BatchesPerCluster,
				y.Writes.String())
		}
		b.Table(t)
		x, y := at("tvm", 32), at("cross-layer", 32)
		for _, l := range []struct {
			f     literature.Figure
			ours  float64
			note  string
			place int // among the headlines
		}{
			{literature.BertTVMThroughput, x.ThroughputPerSecond, "", 0},
			{literature.BertTVMLatency, 1e3 * x.LatencySeconds, literature.RemarkLatency, 0},
			{literature.BertThroughput, y.ThroughputPerSecond, "", 5},
			{literature.BertLatency, 1e3 * y.LatencySeconds, "that of a batch at a time; the published pair means " +
				harness.Fixed(literature.BertThroughput.Value*literature.BertLatency.Value*1e-3, 1) + " sentences in flight", 6},
			{literature.BertCraftedThroughput, y.ThroughputPerSecond, vendors, 0},
			{literature.BertCraftedLatency, 1e3 * y.LatencySeconds, vendors, 0},
		} {
			b.Line(harness.Line{What: l.f.What, Unit: l.f.Unit, Published: l.f.Value, Ours: l.ours,
				Calibration: l.f == literature.BertThroughput || l.f == literature.BertLatency,
				// TVM's throughput has its line in fig14; its latency contradicts it.
				Given:  l.note == vendors || l.f == literature.BertTVMThroughput || l.f == literature.BertTVMLatency,
				Remark: l.note, Headline: l.place})
		}
		b.Note(
			"GraphTurbo's throughput at batch 32 is in the calibration set, and its latency follows from it; TVM's are not.")
		b.Note(
			"TVM's published throughput and latency contradict each other: %s sentences/s times %s ms are %s sentences in flight, and the batch has 32. One batch at a time would take %s ms at that throughput, or run at %s sentences/s with that latency.",
			harness.Significant(literature.BertTVMThroughput.Value), harness.Fixed(literature.BertTVMLatency.Value, 2),
			harness.Fixed(literature.BertTVMThroughput.Value*literature.BertTVMLatency.Value*1e-3, 1),
			harness.Fixed(32e3/literature.BertTVMThroughput.Value, 1), harness.Significant(32e3/literature.BertTVMLatency.Value))
		for _, n := range []int64{8, 16} {
			b.Number(fmt.Sprintf("GraphTurbo over TVM at batch %d: on a par", n), "x", 1,
				at("cross-layer", n).ThroughputPerSecond/at("tvm", n).ThroughputPerSecond)
			b.Cause(causePar)
			b.Why("TVM has its results in the LLB here, as the text says, and waits for the weights of each kernel (experiment readings, \"TVM: LLB, loads ahead, weights kept\")")
		}
		small, turbo := at("tvm", 8), at("cross-layer", 8)
		b.Note(
			"At batch 8 TVM passes %s MB through the DDR and GraphTurbo %s; launches are %s %% of TVM's time and %s %% of GraphTurbo's, waiting for moves %s %% and %s %%. TVM uses %s MiB of the LLB.",
			harness.Significant(float64(small.MovedBytes.DDR)/1e6), harness.Significant(float64(turbo.MovedBytes.DDR)/1e6),
			harness.Percent(small.Time.LaunchSeconds/small.LatencySeconds),
			harness.Percent(turbo.Time.LaunchSeconds/turbo.LatencySeconds),
			harness.Percent(small.Time.MoveSeconds/small.LatencySeconds),
			harness.Percent(turbo.Time.MoveSeconds/turbo.LatencySeconds),
			harness.Fixed(float64(small.PeakLLBBytes)/(1<<20), 1))
		b.Bars("throughput", "Throughput by batch size",
			plots.Groups{Title: "BERT-128", YLabel: "Throughput (sentences/s)", XLabel: "Batch size",
				Categories: harness.Each(e.batches, harness.Count),
				Series: []plots.Series{e.series("TVM", func(n int64) float64 { return at("tvm", n).ThroughputPerSecond }),
					e.series("GraphTurbo", func(n int64) float64 { return at("cross-layer", n).ThroughputPerSecond })},
				Marks: []plots.GroupMark{{Category: 2, Series: 0, Value: literature.BertTVMThroughput.Value},
					{Category: 2, Series: 1, Value: literature.BertThroughput.Value}}})
	}
	return e
}

// fig16 is the utilisation by batch size.
func fig16() byBatch {
	e := byBatch{grid: grid{name: "fig16",
		description: "utilisation of the matrix and vector units by batch size, ResNet-50",
		paper:       "GraphTurbo (OSDI 2023), Fig. 16", hardware: "stcp920", variants: []string{"tvm", "cross-layer"},
		policies: []harness.ChunkPolicy{harness.Tuned}},
		network: "resnet50", unit: "images/s", batches: []int64{4, 8, 16, 32, 64, 128}}
	e.report = func(at func(string, int64) harness.Row, b *harness.Document) {
		t := harness.Table{Name: "utilization", Title: "Utilisation (% of the chip's peak), TVM's batches per cluster by the LLB, GraphTurbo's best",
			Columns: harness.Columns("Batch", "MME|TVM|GraphTurbo", "VME|TVM|GraphTurbo", "MME busy|TVM|GraphTurbo"),
			Notes: []string{
				"Utilisation: useful operations over the units' peak. Busy: share of the time in which they work."}}
		for _, n := range e.batches {
			x, y := at("tvm", n), at("cross-layer", n)
			t.Add(n, harness.Percent(x.MMEUtilization), harness.Percent(y.MMEUtilization),
				harness.Percent(x.VMEUtilization), harness.Percent(y.VMEUtilization), harness.Percent(x.MMEBusyShare),
				harness.Percent(y.MMEBusyShare))
		}
		b.Table(t)
		rises := 0
		for i, n := range e.batches[1:] {
			if at("cross-layer", n).MMEUtilization > at("cross-layer", e.batches[i]).MMEUtilization*1.01 {
				rises++
			}
		}
		b.Claim("GraphTurbo's utilisation rises with the batch", "steadily (a figure without numbers)",
			fmt.Sprintf("by more than 1 %% at %d of %d steps", rises, len(e.batches)-1),
			harness.Agreement(rises == len(e.batches)-1))
		b.Cause(causeFlat)
		b.Why("from batch 64 on the chunk of each cluster stays the same, and units wait for the LLB alike")
		for _, n := range []int64{32, 64, 128} { // where the rise ends
			r := at("cross-layer", n)
			b.Note("Batch %d: GraphTurbo computes for %s %% of the time, waits for moves for %s %% and for launches for %s %%.", n,
				harness.Percent(r.Time.ComputeSeconds/r.LatencySeconds),
				harness.Percent(r.Time.MoveSeconds/r.LatencySeconds),
				harness.Percent(r.Time.LaunchSeconds/r.LatencySeconds))
		}
		panel := func(title string, of func(harness.Row) float64) plots.Groups {
			return plots.Groups{Title: title, YLabel: "Utilisation (% of peak)", XLabel: "Batch size",
				Categories: harness.Each(e.batches, harness.Count),
				Series: []plots.Series{e.series("TVM", func(n int64) float64 { return 100 * of(at("tvm", n)) }),
					e.series("GraphTurbo", func(n int64) float64 { return 100 * of(at("cross-layer", n)) })}}
		}
		b.Bars("utilization", "Utilisation by batch size", panel("Matrix units (MME), ResNet-50 by batch size",
			func(r harness.Row) float64 { return r.MMEUtilization }),
			panel("Vector units (VME), ResNet-50 by batch size", func(r harness.Row) float64 { return r.VMEUtilization }))
	}
	return e
}

// Table1 is BERT-128 by batch size.
func Table1() harness.Experiment { return table1().experiment() }

// Fig16 is the utilisation by batch size.
func Fig16() harness.Experiment { return fig16().experiment() }
