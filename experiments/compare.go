package experiments

import (
	"fmt"
	"slices"
	"strconv"
)

// comparison is a number of ours beside a published one.
type comparison struct {
	Model     string      `json:"model"`
	Batch     int64       `json:"batch"`
	Policy    ChunkPolicy `json:"chunk_policy"` // of ours
	Quantity  string      `json:"quantity"`
	Unit      string      `json:"unit"` // "x" of a ratio, "1" of a share
	Ours      float64     `json:"ours"`
	Published float64     `json:"published"`
	// Ratio is ours over the published one; absent where that is 0.
	Ratio  float64 `json:"ratio,omitempty"`
	Source string  `json:"source"`
	Remark string  `json:"remark,omitempty"`
}

// compare puts the published figures beside ours, for each network and policy.
func (a ablation) compare(rows []Row) []comparison {
	var list []comparison
	for _, n := range a.networks {
		for _, g := range groupRows(rows) {
			if g[0].Model == n.model && g[0].Batch == n.batch {
				list = append(list, n.compare(g)...)
			}
		}
	}
	return list
}

const (
	remarkMean     = "The mean is over the paper's ten configurations, ours is of one network."
	remarkSteps    = remarkMean + " The gains of the variants 3 and 4 are over the previous variant in the paper's text and over variant 1 on its slides."
	remarkLatency  = "TVM's published latency and throughput mean 9.7 sentences in flight, which does not fit a batch of 32."
	remarkQuotient = "The quotient of the two published throughputs."
	remarkCARRV    = "Measured with the vendor's software, second hand: matrix unit busy 78 % of in-core cycles, cores 95 % of the total."
	remarkByteMLPf = "Measured with the vendor's software at batch 16; the latency in the same file covers 2 in flight on 4 clusters."
)

// compare takes the rows of one network and policy.
func (n ablationNetwork) compare(g []Row) []comparison {
	var list []comparison
	add := func(quantity, unit string, ours, published float64, source, remark string) {
		c := comparison{Model: n.model, Batch: n.batch, Policy: g[0].ChunkPolicy, Quantity: quantity, Unit: unit,
			Ours: round(ours), Published: round(published), Source: source, Remark: remark}
		if published != 0 {
			c.Ratio = round(ours / published)
		}
		list = append(list, c)
	}
	figure := func(quantity string, ours float64, f PublishedFigure, remark string) {
		add(quantity, f.Unit, ours, f.Value, f.Source, remark)
	}
	row := func(name string) *Row {
		for i := range g {
			if g[i].Variant == name {
				return &g[i]
			}
		}
		return nil
	}
	tvm, last := row("tvm"), row("cross-layer")

	if n.label != "" && tvm != nil {
		m := publishedModel(n.label)
		add("TVM: throughput", m.Unit, tvm.ThroughputPerSecond, m.TVMThroughputPerSecond, "slides", "")
	}
	if n.label == "B" && tvm != nil {
		figure("TVM: latency", 1e3*tvm.LatencySeconds, bertTVMLatency, remarkLatency)
	}
	if n.label == "B" && last != nil {
		figure("GraphTurbo: throughput", last.ThroughputPerSecond, bertThroughput, "")
		figure("GraphTurbo: latency", 1e3*last.LatencySeconds, bertLatency, "")
		figure("vendor's code: throughput", last.ThroughputPerSecond, bertCraftedThroughput, "")
		figure("vendor's code: latency", 1e3*last.LatencySeconds, bertCraftedLatency, "")
		add("measured, FP16: throughput", measuredBERT.Unit, last.ThroughputPerSecond, measuredBERT.ThroughputPerSecond, "CARRV 2021", remarkCARRV)
		add("measured, FP16: MME busy", "1", last.MMEBusyShare, 0.78*0.95, "CARRV 2021", remarkCARRV)
	}
	if n.label == "A" && last != nil {
		add(fmt.Sprintf("measured, FP16, batch %d: throughput", measuredResNet.Batch), measuredResNet.Unit,
			last.ThroughputPerSecond, measuredResNet.ThroughputPerSecond, "ByteMLPerf", remarkByteMLPf)
	}
	if tvm != nil && last != nil {
		speedup := last.ThroughputPerSecond / tvm.ThroughputPerSecond
		if n.label == "B" {
			add("GraphTurbo over TVM", "x", speedup, bertThroughput.Value/bertTVMThroughput.Value, "Table 1", remarkQuotient)
		}
		figure("GraphTurbo over TVM, mean of A-J", speedup, meanSpeedup, remarkMean)
	}
	for _, s := range []struct {
		from, to string
		mean     PublishedFigure
	}{{"llb", "l1", meanL1}, {"l1", "ordering", meanOrder}, {"ordering", "cross-layer", meanCross}} {
		if from, to := row(s.from), row(s.to); from != nil && to != nil {
			figure(fmt.Sprintf("%s over %s, mean of A-J", s.to, s.from), to.ThroughputPerSecond/from.ThroughputPerSecond, s.mean, remarkSteps)
		}
	}
	if n.label != "" {
		w := publishedWrites(n.label)
		for _, v := range []struct {
			name      string
			row       *Row
			published Levels
		}{{"TVM", tvm, w.TVM}, {"GraphTurbo", last, w.GraphTurbo}} {
			if v.row == nil {
				continue
			}
			ours := v.row.Writes
			add(v.name+": tensor writes to DDR", "tensors", float64(ours.DDR), float64(v.published.DDR), "Table 3", "")
			add(v.name+": tensor writes to LLB", "tensors", float64(ours.LLB), float64(v.published.LLB), "Table 3", "")
			add(v.name+": tensor writes to L1", "tensors", float64(ours.L1), float64(v.published.L1), "Table 3", "")
		}
	}
	return list
}

func comparisonCSV(list []comparison) []byte {
	rows := [][]string{{"model", "batch", "chunk_policy", "quantity", "unit", "ours", "published", "ratio", "source", "remark"}}
	for _, c := range list {
		ratio := ""
		if c.Published != 0 {
			ratio = exact(c.Ratio)
		}
		rows = append(rows, []string{c.Model, count(c.Batch), string(c.Policy), c.Quantity, c.Unit,
			exact(c.Ours), exact(c.Published), ratio, c.Source, c.Remark})
	}
	return csvBytes(rows)
}

// comparisonTable has a row for each quantity of each network, with both policies
// in it.
func comparisonTable(list []comparison) table {
	t := table{
		title: "Published figures beside ours (ratio: ours over published)",
		label: "tab:ablation-published",
		columns: []column{
			{name: "Network", text: true}, {name: "Quantity", text: true},
			{group: "Ours with", name: "best\nbatches"}, {group: "Ours with", name: "paper's\nbatches"}, {name: "Published"},
			{name: "Unit", text: true}, {group: "Ratio with", name: "best\nbatches"}, {group: "Ratio with", name: "paper's\nbatches"},
			{name: "Source", text: true},
		},
	}
	type key struct{ model, quantity string }
	at := map[key]int{}
	for _, c := range list {
		k := key{c.Model, c.Quantity}
		i, ok := at[k]
		if !ok {
			i = len(t.rows)
			at[k] = i
			unit := c.Unit
			switch unit {
			case "x":
				unit = "×"
			case "1":
				unit = "–"
			}
			t.rows = append(t.rows, []string{c.Model, c.Quantity, "", "", given(c), unit, "", "", c.Source})
		}
		number := significant
		if c.Unit == "tensors" {
			number = func(x float64) string { return fixed(x, 0) }
		}
		shift := 0
		if c.Policy == PaperChunks {
			shift = 1
		}
		t.rows[i][2+shift] = number(c.Ours)
		if c.Published != 0 {
			t.rows[i][6+shift] = fixed(c.Ratio, 2)
		}
		if c.Remark != "" {
			if n := c.Source + ": " + c.Remark; !slices.Contains(t.notes, n) {
				t.notes = append(t.notes, n)
			}
		}
	}
	return t
}

// given writes a published number with the digits it was given with.
func given(c comparison) string {
	switch {
	case c.Unit == "x":
		return fixed(c.Published, 2)
	case c.Unit == "1":
		return fixed(c.Published, 3)
	case c.Published >= 1000:
		return fixed(c.Published, 0)
	}
	return strconv.FormatFloat(c.Published, 'f', -1, 64)
}
