package experiments

import "fmt"

// writeLevels are the levels of Table 3.
var writeLevels = []struct {
	name string
	of   func(Levels) int64
}{{"DDR", func(l Levels) int64 { return l.DDR }}, {"LLB", func(l Levels) int64 { return l.LLB }}, {"L1", func(l Levels) int64 { return l.L1 }}}

// table3 counts where results are written.
func table3() grid {
	return grid{name: "table3", description: "tensor writes per level of memory on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), Table 3", hardware: "stcp920",
		variants: []string{"tvm", "cross-layer"}, policies: []ChunkPolicy{PaperChunks}, report: reportTable3}
}

func reportTable3(rows gridRows, b *gridReport) error {
	t := table{title: "Tensor writes in the program of a cluster (instances one by one, the loop over the batch once)", label: "tab:table3",
		columns: []column{{name: "", text: true}, {name: "Network", text: true}},
		notes:   []string{"Ours / published. The paper's counts are those of its own graphs, whose operators are finer in places (softmax and layer normalisation are several)."}}
	for _, l := range writeLevels {
		t.columns = append(t.columns, column{group: "TVM", name: l.name}, column{group: "GraphTurbo", name: l.name})
	}
	cells, hits, zeros := map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range Configurations() {
		w := publishedWrites(c.Label)
		single, err := singleOperators(c.Network)
		if err != nil {
			return err
		}
		tvm := rows.at(c, "tvm", PaperChunks).Writes
		line := []string{c.Label, c.Network}
		for _, l := range writeLevels {
			for _, m := range []struct {
				name, variant string
				published     Levels
			}{{"TVM", "tvm", w.TVM}, {"GraphTurbo", "cross-layer", w.GraphTurbo}} {
				ours, theirs := l.of(rows.at(c, m.variant, PaperChunks).Writes), l.of(m.published)
				line = append(line, fmt.Sprintf("%d / %d", ours, theirs))
				x := Line{What: fmt.Sprintf("%s %s, %s: writes to %s", c.Label, c.Network, m.name, l.name), Unit: "tensors",
					Published: float64(theirs), Ours: float64(ours),
					Remark: reasonWrites(l.name, rows.at(c, m.variant, PaperChunks).Writes, m.published, tvm, w.TVM, single)}
				b.line(x)
				cells[m.name]++
				switch {
				case ours == 0 && theirs == 0:
					zeros[m.name]++
				case x.Verdict() == verdicts[0]:
					hits[m.name]++
				}
			}
		}
		t.rows = append(t.rows, line)
	}
	if err := b.table(t); err != nil {
		return err
	}
	for _, m := range []string{"TVM", "GraphTurbo"} {
		b.note("%s: %d cells, 0 in both: %d; of the other %d, within 20 %%: %d.", m, cells[m], zeros[m], cells[m]-zeros[m], hits[m])
	}
	return nil
}

// batchSelect is the choice of batches per cluster.
func batchSelect() grid {
	return grid{name: "batch-select", description: "best batches per cluster, by trying them, beside the paper's choice",
		paper: "GraphTurbo (OSDI 2023), §5.1 and Table 2", hardware: "stcp920",
		variants: []string{"tvm", "cross-layer"}, policies: []ChunkPolicy{PaperChunks, Tuned}, report: reportBatchSelect}
}

func reportBatchSelect(rows gridRows, b *gridReport) error {
	t := table{title: "Batches per cluster", label: "tab:batch-select",
		columns: []column{{name: "", text: true}, {name: "Network", text: true}, {name: "Batch"},
			{group: "TVM", name: "best"}, {group: "TVM", name: "paper's"}, {group: "TVM", name: "loss with\nthe paper's (%)"},
			{group: "GraphTurbo", name: "best"}, {group: "GraphTurbo", name: "paper's"}, {group: "GraphTurbo", name: "loss with\nthe paper's (%)"}},
		notes: []string{"Best of all divisors of a cluster's share of the batch; of equally good ones the smallest."}}
	for _, c := range Configurations() {
		line := []string{c.Label, c.Network, count(c.BatchSize)}
		for _, m := range []struct {
			name, variant string
			published     int64
		}{{"TVM", "tvm", c.TVMBatchesPerCluster}, {"GraphTurbo", "cross-layer", c.GraphTurboBatchesPerCluster}} {
			best, paper := rows.at(c, m.variant, Tuned), rows.at(c, m.variant, PaperChunks)
			line = append(line, count(best.BatchesPerCluster), count(m.published), fixed(100*(1-paper.ThroughputPerSecond/best.ThroughputPerSecond), 1))
			b.line(Line{What: fmt.Sprintf("%s %s, %s: batches per cluster", c.Label, c.Network, m.name), Unit: "batches", Published: float64(m.published), Ours: float64(best.BatchesPerCluster),
				Remark: reasonBatches(best, paper)})
		}
		t.rows = append(t.rows, line)
	}
	return b.table(t)
}
