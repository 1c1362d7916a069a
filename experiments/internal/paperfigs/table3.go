package paperfigs

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
)

// table3 counts where results are written.
func table3() grid {
	return grid{name: "table3", description: "tensor writes per level of memory on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), Table 3", hardware: "stcp920",
		variants: []string{"tvm", "cross-layer"}, policies: []harness.ChunkPolicy{harness.PaperChunks},
		configurations: literature.WithBeside, report: reportTable3}
}

func reportTable3(rows gridRows, b *harness.Document) {
	t := harness.Table{Name: "writes",
		Title:   "Tensor writes in the program of a cluster (instances one by one, the loop over the batch once)",
		Columns: harness.Columns("<", "<Network"),
		Notes:   []string{"Ours / published. The paper's counts are those of its own graphs, which are not public."}}
	for _, l := range harness.WriteLevels {
		t.AddColumns("TVM|"+l.Name, "GraphTurbo|"+l.Name)
	}
	cells, hits, zeros := map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range literature.WithBeside() {
		w := literature.WritesOf(strings.Trim(c.Label, "()"))
		single, err := singleOperators(c.Network)
		if err != nil {
			b.Fail(err)
			return
		}
		tvm := rows.at(c, "tvm", harness.PaperChunks).Writes
		line := []string{c.Label, c.Network}
		for _, l := range harness.WriteLevels {
			for _, m := range []struct {
				name, variant string
				published     harness.Levels
			}{{"TVM", "tvm", w.TVM}, {"GraphTurbo", "cross-layer", w.GraphTurbo}} {
				ours, theirs := l.Of(rows.at(c, m.variant, harness.PaperChunks).Writes), l.Of(m.published)
				line = append(line, fmt.Sprintf("%d / %d", ours, theirs))
				if c.Beside {
					continue
				}
				x := harness.Line{What: fmt.Sprintf("%s %s, %s: writes to %s", c.Label, c.Network, m.name, l.Name), Unit: "tensors",
					Published: float64(theirs), Ours: float64(ours),
					Remark: reasonWrites(l.Name, rows.at(c, m.variant, harness.PaperChunks).Writes, m.published, tvm, w.TVM, single)}
				b.Line(x)
				cells[m.name]++
				switch {
				case ours == 0 && theirs == 0:
					zeros[m.name]++
				case x.Verdict() == harness.Verdicts[0]:
					hits[m.name]++
				}
			}
		}
		t.Add(line)
	}
	b.Table(t)
	for _, m := range []string{"TVM", "GraphTurbo"} {
		b.Note("%s: %d cells, 0 in both: %d; of the other %d, within 20 %%: %d.", m, cells[m], zeros[m],
			cells[m]-zeros[m], hits[m])
	}
}

// batchSelect is the choice of batches per cluster.
func batchSelect() grid {
	return grid{name: "batch-select", description: "best batches per cluster, by trying them, beside the paper's choice",
		paper: "GraphTurbo (OSDI 2023), §5.1 and Table 2", hardware: "stcp920",
		variants: []string{"tvm", "cross-layer"}, policies: []harness.ChunkPolicy{harness.PaperChunks, harness.Tuned},
		configurations: literature.Configurations, report: reportBatchSelect}
}

func reportBatchSelect(rows gridRows, b *harness.Document) {
	spec := harness.Accelerator(batchSelect().hardware)
	whole := map[string]int{} // how often the published one is all that a cluster has
	t := harness.Table{Name: "batches", Title: "Batches per cluster",
		Columns: harness.Columns("<", "<Network", "Batch", "TVM|best|paper's|loss with\nthe paper's (%)",
			"GraphTurbo|best|paper's|loss with\nthe paper's (%)"),
		Notes: []string{"Best of all divisors of a cluster's share of the batch; of equally good ones the smallest."}}
	for _, c := range literature.Configurations() {
		line := []string{c.Label, c.Network, harness.Count(c.BatchSize)}
		for _, m := range []struct {
			name, variant string
			published     int64
		}{{"TVM", "tvm", c.TVMBatchesPerCluster}, {"GraphTurbo", "cross-layer", c.GraphTurboBatchesPerCluster}} {
			best, paper := rows.at(c, m.variant, harness.Tuned), rows.at(c, m.variant, harness.PaperChunks)
			line = append(line, harness.Count(best.BatchesPerCluster), harness.Count(m.published),
				harness.Fixed(100*(1-paper.ThroughputPerSecond/best.ThroughputPerSecond), 1))
			hit := best.BatchesPerCluster == m.published
			b.Claim(fmt.Sprintf("%s %s, %s: batches per cluster", c.Label, c.Network, m.name), harness.Count(m.published),
				harness.Count(best.BatchesPerCluster), harness.Agreement(hit))
			if !hit {
				b.Why("%s", reasonBatches(best, paper))
			}
			if m.published*int64(spec.Clusters) == c.BatchSize {
				whole[m.name]++
			}
		}
		t.Add(line)
	}
	b.Note(
		"Published are a cluster's whole share of the batch %d times for GraphTurbo and %d times for TVM: a rule that always takes it would agree as often.",
		whole["GraphTurbo"], whole["TVM"])
	b.Table(t)
}

// Table3 counts tensor writes.
func Table3() harness.Experiment { return table3().experiment() }

// BatchSelect looks for the best batches per cluster.
func BatchSelect() harness.Experiment {
	e := batchSelect().experiment()
	e.Also = []string{"table2"}
	return e
}
