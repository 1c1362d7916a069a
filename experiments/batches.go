package experiments

import (
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// byBatch is an experiment on one network at several batch sizes, tuned.
type byBatch struct {
	grid
	network, unit string
	batches       []int64
	report        func(rows gridRows, at func(variant string, batch int64) Row, b *gridReport) error
}

func (e byBatch) experiment() Experiment {
	return Experiment{Name: e.name, Description: e.description, Paper: e.paper, plan: e.plan}
}

func (e byBatch) plan() (*plan, error) {
	spec, err := hardware.Load(e.hardware)
	if err != nil {
		return nil, err
	}
	src, err := openNetwork(e.network)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	for _, batch := range e.batches {
		for _, name := range e.variants {
			v, err := scheduler.Lookup(name)
			if err != nil {
				return nil, err
			}
			c, err := rowCell(src, spec, batch, 0, v, Tuned, e.unit)
			if err != nil {
				return nil, err
			}
			p.cells = append(p.cells, c)
		}
	}
	p.report = func(results []json.RawMessage) (*report, error) {
		rows, err := decodeRows(results)
		if err != nil {
			return nil, err
		}
		m := gridRows{}
		for _, r := range rows {
			m[gridKey(r.Model, r.Batch, r.Variant, r.ChunkPolicy)] = r
		}
		at := func(variant string, batch int64) Row { return m[gridKey(e.network, batch, variant, Tuned)] }
		return e.write(func(b *gridReport) error { return e.report(m, at, b) }, rows)
	}
	return p, nil
}

func batchNames(batches []int64) []string {
	var list []string
	for _, b := range batches {
		list = append(list, count(b))
	}
	return list
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
		paper: "GraphTurbo (OSDI 2023), Table 1", hardware: "stcp920", variants: []string{"tvm", "cross-layer"}},
		network: "bert-128", unit: "sentences/s", batches: []int64{8, 16, 32, 64, 128, 256}}
	e.report = func(_ gridRows, at func(string, int64) Row, b *gridReport) error {
		t := table{title: "BERT-128 on " + e.hardware + ", best batches per cluster", label: "tab:table1",
			columns: []column{{name: "Batch"}, {group: "Throughput (sentences/s)", name: "TVM"}, {group: "Throughput (sentences/s)", name: "GraphTurbo"},
				{group: "Latency (ms)", name: "TVM"}, {group: "Latency (ms)", name: "GraphTurbo"}, {name: "Speedup\n(×)"},
				{group: "Batches per cluster", name: "TVM"}, {group: "Batches per cluster", name: "GraphTurbo"}, {name: "Writes of GraphTurbo\nDDR/LLB/L1"}}}
		for _, n := range e.batches {
			x, y := at("tvm", n), at("cross-layer", n)
			t.rows = append(t.rows, []string{count(n), significant(x.ThroughputPerSecond), significant(y.ThroughputPerSecond),
				fixed(1e3*x.LatencySeconds, 2), fixed(1e3*y.LatencySeconds, 2), fixed(y.ThroughputPerSecond/x.ThroughputPerSecond, 2),
				count(x.BatchesPerCluster), count(y.BatchesPerCluster), y.Writes.String()})
		}
		if err := b.table(t); err != nil {
			return err
		}
		x, y := at("tvm", 32), at("cross-layer", 32)
		for _, l := range []struct {
			f    PublishedFigure
			ours float64
			note string
		}{
			{bertTVMThroughput, x.ThroughputPerSecond, tvmChosen(x)}, {bertTVMLatency, 1e3 * x.LatencySeconds, remarkLatency},
			{bertThroughput, y.ThroughputPerSecond, ""}, {bertLatency, 1e3 * y.LatencySeconds, "that of a batch at a time; the published pair means " + fixed(bertThroughput.Value*bertLatency.Value*1e-3, 1) + " sentences in flight"},
			{bertCraftedThroughput, y.ThroughputPerSecond, "the vendor's hand-crafted code; ours is GraphTurbo"},
			{bertCraftedLatency, 1e3 * y.LatencySeconds, "the vendor's hand-crafted code; ours is GraphTurbo"},
		} {
			b.line(Line{What: l.f.What, Unit: l.f.Unit, Published: l.f.Value, Ours: l.ours, Calibration: true, Remark: l.note})
		}
		b.note("All of the paper's figures here are of the calibration set (docs/deviations.md): TVM's and GraphTurbo's throughput at batch 32 were fitted to, at the paper's batches per cluster, and their latencies follow from them.")
		b.note("TVM's published latency and throughput do not fit each other: %s sentences/s for %s ms are %s sentences in flight, of a batch of 32. One batch at a time at that throughput takes %s ms; in that latency it would be %s sentences/s.",
			significant(bertTVMThroughput.Value), fixed(bertTVMLatency.Value, 2), fixed(bertTVMThroughput.Value*bertTVMLatency.Value*1e-3, 1),
			fixed(32e3/bertTVMThroughput.Value, 1), significant(32e3/bertTVMLatency.Value))
		b.note("At batch 8 and 16 the paper has TVM and GraphTurbo on a par; here GraphTurbo is %.1f and %.1f times as fast.",
			at("cross-layer", 8).ThroughputPerSecond/at("tvm", 8).ThroughputPerSecond,
			at("cross-layer", 16).ThroughputPerSecond/at("tvm", 16).ThroughputPerSecond)
		small, turbo := at("tvm", 8), at("cross-layer", 8)
		b.note("At batch 8 TVM passes %s MB through the DDR and GraphTurbo %s, nearly all of it weights, which each cluster loads for itself; launches are %s %% of TVM's time. So what parts them is the %s MB of results that a kernel per layer sends to the DDR. With these in the LLB, of whose bytes TVM here uses %s MiB, both would wait for the weights.",
			significant(float64(small.MovedBytes.DDR)/1e6), significant(float64(turbo.MovedBytes.DDR)/1e6), percent(small.Time.LaunchSeconds/small.LatencySeconds),
			significant(float64(small.MovedBytes.DDR-turbo.MovedBytes.DDR)/1e6), fixed(float64(small.PeakLLBBytes)/(1<<20), 1))
		f, err := plots.GroupedBars(plots.Groups{Title: "BERT-128", YLabel: "Throughput (sentences/s)", XLabel: "Batch size", Categories: batchNames(e.batches),
			Series: []plots.Series{e.series("TVM", func(n int64) float64 { return at("tvm", n).ThroughputPerSecond }),
				e.series("GraphTurbo", func(n int64) float64 { return at("cross-layer", n).ThroughputPerSecond })},
			Marks: []plots.GroupMark{{Category: 2, Series: 0, Value: bertTVMThroughput.Value}, {Category: 2, Series: 1, Value: bertThroughput.Value}}})
		return b.figure("throughput", "Throughput by batch size", f, err)
	}
	return e
}

// tvmChosen says what the paper's choice of batches per cluster gives, if it was tried.
func tvmChosen(tuned Row) string {
	paper := publishedModel("B").TVMBatchesPerCluster
	for _, t := range tuned.Tried {
		if t.BatchesPerCluster == paper && paper != tuned.BatchesPerCluster {
			return fmt.Sprintf("with %d per cluster, the best here; %s with the paper's %d", tuned.BatchesPerCluster, significant(t.ThroughputPerSecond), paper)
		}
	}
	return ""
}

// fig16 is the utilisation by batch size.
func fig16() byBatch {
	e := byBatch{grid: grid{name: "fig16", description: "utilisation of the matrix and vector units by batch size, ResNet-50",
		paper: "GraphTurbo (OSDI 2023), Fig. 16", hardware: "stcp920", variants: []string{"tvm", "cross-layer"}},
		network: "resnet50", unit: "images/s", batches: []int64{4, 8, 16, 32, 64, 128}}
	e.report = func(_ gridRows, at func(string, int64) Row, b *gridReport) error {
		t := table{title: "Utilisation (% of the chip's peak), best batches per cluster", label: "tab:fig16",
			columns: []column{{name: "Batch"}, {group: "MME", name: "TVM"}, {group: "MME", name: "GraphTurbo"}, {group: "VME", name: "TVM"}, {group: "VME", name: "GraphTurbo"},
				{group: "MME busy", name: "TVM"}, {group: "MME busy", name: "GraphTurbo"}},
			notes: []string{"Utilisation is useful arithmetic over what the units could do; busy is the share of time in which they do something."}}
		for _, n := range e.batches {
			x, y := at("tvm", n), at("cross-layer", n)
			t.rows = append(t.rows, []string{count(n), percent(x.MMEUtilization), percent(y.MMEUtilization), percent(x.VMEUtilization), percent(y.VMEUtilization),
				percent(x.MMEBusyShare), percent(y.MMEBusyShare)})
		}
		if err := b.table(t); err != nil {
			return err
		}
		panel := func(title string, of func(Row) float64) plots.Groups {
			return plots.Groups{Title: title, YLabel: "Utilisation (% of peak)", XLabel: "Batch size", Categories: batchNames(e.batches),
				Series: []plots.Series{e.series("TVM", func(n int64) float64 { return 100 * of(at("tvm", n)) }),
					e.series("GraphTurbo", func(n int64) float64 { return 100 * of(at("cross-layer", n)) })}}
		}
		f, err := plots.GroupedBars(panel("Matrix units (MME), ResNet-50 by batch size", func(r Row) float64 { return r.MMEUtilization }),
			panel("Vector units (VME), ResNet-50 by batch size", func(r Row) float64 { return r.VMEUtilization }))
		return b.figure("utilization", "Utilisation by batch size", f, err)
	}
	return e
}
