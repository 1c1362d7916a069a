package ablation

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
)

// comparison is a number of ours beside a published one.
type comparison struct {
	Model     string              `json:"model"`
	Batch     int64               `json:"batch"`
	Policy    harness.ChunkPolicy `json:"chunk_policy"` // of ours
	Quantity  string              `json:"quantity"`
	Unit      string              `json:"unit"` // "x" of a ratio, "1" of a share
	Ours      float64             `json:"ours"`
	Published float64             `json:"published"`
	// Ratio is ours over the published one; absent where that is 0.
	Ratio  float64 `json:"ratio,omitempty"`
	Source string  `json:"source"`
	Remark string  `json:"remark,omitempty"`
}

// compare puts the published figures beside ours, for each network and policy.
func (a ablation) compare(rows []harness.Row) []comparison {
	var list []comparison
	for _, n := range a.networks {
		for _, g := range harness.GroupRows(rows) {
			if g[0].Model == n.model && g[0].Batch == n.batch {
				list = append(list, n.compare(g)...)
			}
		}
	}
	return list
}

const (
	remarkMean  = "The mean is over the paper's ten configurations, ours is of one network."
	remarkSteps = remarkMean +
		" The gains of the variants 3 and 4 are over the previous variant in the paper's text and over variant 1 on its slides."
	remarkQuotient = "The quotient of the two published throughputs."
	remarkCARRV    = "Measured with the vendor's software, second hand: matrix unit busy 78 % of in-core cycles, cores 95 % of the total."
	remarkByteMLPf = "Measured with the vendor's software at batch 16; the latency in the same file covers 2 in flight on 4 clusters."
)

// compare takes the rows of one network and policy.
func (n ablationNetwork) compare(g []harness.Row) []comparison {
	var list []comparison
	add := func(quantity, unit string, ours, published float64, source, remark string) {
		c := comparison{Model: n.model, Batch: n.batch, Policy: g[0].ChunkPolicy, Quantity: quantity, Unit: unit,
			Ours: harness.Round(ours), Published: harness.Round(published), Source: source, Remark: remark}
		if published != 0 {
			c.Ratio = harness.Round(ours / published)
		}
		list = append(list, c)
	}
	figure := func(quantity string, ours float64, f literature.Figure, remark string) {
		add(quantity, f.Unit, ours, f.Value, f.Source, remark)
	}
	row := func(name string) *harness.Row {
		for i := range g {
			if g[i].Variant == name {
				return &g[i]
			}
		}
		return nil
	}
	tvm, last := row("tvm"), row("cross-layer")

	if n.label != "" && tvm != nil {
		m := literature.ConfigurationOf(n.label)
		add("TVM: throughput", m.Unit, tvm.ThroughputPerSecond, m.TVMThroughputPerSecond, "slides", "")
	}
	if n.label == "B" && tvm != nil {
		figure("TVM: latency", 1e3*tvm.LatencySeconds, literature.BertTVMLatency, literature.RemarkLatency)
	}
	if n.label == "B" && last != nil {
		figure("GraphTurbo: throughput", last.ThroughputPerSecond, literature.BertThroughput, "")
		figure("GraphTurbo: latency", 1e3*last.LatencySeconds, literature.BertLatency, "")
		figure("vendor's code: throughput", last.ThroughputPerSecond, literature.BertCraftedThroughput, "")
		figure("vendor's code: latency", 1e3*last.LatencySeconds, literature.BertCraftedLatency, "")
		add("measured, FP16: throughput", literature.MeasuredBERT.Unit, last.ThroughputPerSecond,
			literature.MeasuredBERT.ThroughputPerSecond, "CARRV 2021", remarkCARRV)
		add("measured, FP16: MME busy", "1", last.MMEBusyShare, 0.78*0.95, "CARRV 2021", remarkCARRV)
	}
	if n.label == "A" && last != nil {
		add(fmt.Sprintf("measured, FP16, batch %d: throughput", literature.MeasuredResNet.Batch),
			literature.MeasuredResNet.Unit,
			last.ThroughputPerSecond, literature.MeasuredResNet.ThroughputPerSecond, "ByteMLPerf", remarkByteMLPf)
	}
	if tvm != nil && last != nil {
		speedup := last.ThroughputPerSecond / tvm.ThroughputPerSecond
		if n.label == "B" {
			add("GraphTurbo over TVM", "x", speedup, literature.BertThroughput.Value/literature.BertTVMThroughput.Value,
				"Table 1", remarkQuotient)
		}
		figure("GraphTurbo over TVM, mean of A-J", speedup, literature.MeanSpeedup, remarkMean)
	}
	for _, s := range []struct {
		from, to string
		mean     literature.Figure
	}{{"llb", "l1", literature.MeanL1}, {"l1", "ordering", literature.MeanOrder},
		{"ordering", "cross-layer", literature.MeanCross}} {
		if from, to := row(s.from), row(s.to); from != nil && to != nil {
			figure(fmt.Sprintf("%s over %s, mean of A-J", s.to, s.from), to.ThroughputPerSecond/from.ThroughputPerSecond,
				s.mean, remarkSteps)
		}
	}
	if n.label != "" {
		w := literature.WritesOf(n.label)
		for _, v := range []struct {
			name      string
			row       *harness.Row
			published harness.Levels
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
	return harness.CSV(list,
		harness.Fields[comparison]("model batch chunk_policy quantity unit ours published ratio source remark"))
}

// comparisonTable has a row for each quantity of each network, with both policies
// in it.
func comparisonTable(list []comparison) harness.Table {
	t := harness.Table{
		Name: "published", Title: "Published figures beside ours (ratio: ours over published)",
		Columns: harness.Columns("<Network", "<Quantity", "Ours with|best\nbatches|paper's\nbatches", "Published",
			"<Unit", "Ratio with|best\nbatches|paper's\nbatches", "<Source"),
	}
	type key struct{ model, quantity string }
	at := map[key]int{}
	for _, c := range list {
		k := key{c.Model, c.Quantity}
		i, ok := at[k]
		if !ok {
			i = len(t.Rows)
			at[k] = i
			unit := c.Unit
			switch unit {
			case "x":
				unit = "×"
			case "1":
				unit = "–"
			}
			t.Add(c.Model, c.Quantity, "", "", given(c), unit, "", "", c.Source)
		}
		number := harness.Significant
		if c.Unit == "tensors" {
			number = func(x float64) string { return harness.Fixed(x, 0) }
		}
		shift := 0
		if c.Policy == harness.PaperChunks {
			shift = 1
		}
		t.Rows[i][2+shift] = number(c.Ours)
		if c.Published != 0 {
			t.Rows[i][6+shift] = harness.Fixed(c.Ratio, 2)
		}
		if c.Remark != "" {
			if n := c.Source + ": " + c.Remark; !slices.Contains(t.Notes, n) {
				t.Notes = append(t.Notes, n)
			}
		}
	}
	return t
}

// given writes a published number with the digits it was given with.
func given(c comparison) string {
	switch {
	case c.Unit == "x":
		return harness.Fixed(c.Published, 2)
	case c.Unit == "1":
		return harness.Fixed(c.Published, 3)
	case c.Published >= 1000:
		return harness.Fixed(c.Published, 0)
	}
	return strconv.FormatFloat(c.Published, 'f', -1, 64)
}
