package paperfigs

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"gonum.org/v1/gonum/stat"
)

// withinFactor of a published throughput is the aim.
const withinFactor = 1.5

// rankTable compares TVM's published throughputs with ours by sets of configurations.
func rankTable(rows gridRows) harness.Table {
	t := harness.Table{Name: "agreement", Title: "TVM's throughputs against the published ones, by set",
		Columns: harness.Columns("<Set", "Figures", "Geometric mean\nof the error (×)",
			"Within ×"+harness.Fixed(withinFactor, 1), "Rank correlation"),
		Notes: []string{"Error: the larger of ours and published over the smaller."}}
	for _, set := range []struct {
		name string
		in   func(literature.Configuration) bool
	}{
		{"all", func(literature.Configuration) bool { return true }},
		{"all " + literature.Without(), func(c literature.Configuration) bool { return c.Doubt == "" }},
		{"calibration (" + strings.Join(strings.Split(literature.Calibrated, ""), ", ") + ")",
			func(c literature.Configuration) bool { return c.Calibration() }},
		{"evaluation (all others)", func(c literature.Configuration) bool { return !c.Calibration() }},
		{"evaluation " + literature.Without(),
			func(c literature.Configuration) bool { return !c.Calibration() && c.Doubt == "" }},
	} {
		var ours, published []float64
		within := 0
		for _, c := range literature.Configurations() {
			if set.in(c) {
				ours = append(ours, rows.at(c, "tvm", harness.PaperChunks).ThroughputPerSecond)
				published = append(published, c.TVMThroughputPerSecond)
			}
		}
		for _, f := range harness.Factors(ours, published) {
			if f <= withinFactor {
				within++
			}
		}
		rank := "–"
		if len(ours) > 2 {
			rank = harness.Fixed(harness.Spearman(ours, published), 2)
		}
		t.Add(set.name, len(ours), harness.Fixed(stat.GeometricMean(harness.Factors(ours, published), nil), 2),
			fmt.Sprintf("%d of %d", within, len(ours)), rank)
	}
	return t
}

// implied derives the conditions of the published throughputs of TVM: what a
// kernel per layer moves and computes, at that throughput, of what the chip can.
func implied(rows gridRows, spec *hardware.Spec) (harness.Table, []string) {
	ddr := spec.DDR.BandwidthBytesPerSecond
	t := harness.Table{Name: "implied", Title: "What TVM's published throughputs would need",
		Columns: harness.Columns("<", "<Network", "<Set", "Published\n(1/s)",
			"DDR traffic of a kernel\nper layer (MB each)", "DDR bandwidth at the\npublished rate (GB/s)",
			"of the chip's", "MME utilisation at\nthe published rate"),
		Notes: []string{
			fmt.Sprintf(
				"The chip's DDR has %s GB/s, of which activations reach %s (fitted). Above 100 %%, no kernel per layer with results in the DDR reaches the published rate.",
				harness.Significant(ddr/1e9), harness.Percent(spec.DDRActivationEfficiency)+" %")}}
	var beyond, below []string
	for _, c := range literature.Configurations() {
		r := rows.at(c, "tvm", harness.PaperChunks)
		each := float64(r.MovedBytes.DDR) / float64(r.Batch)
		need := each * c.TVMThroughputPerSecond
		mme := r.MMEUtilization * c.TVMThroughputPerSecond / r.ThroughputPerSecond
		set := "evaluation"
		if c.Calibration() {
			set = "calibration"
		}
		t.Add(c.Label, c.Network, set, c.TVMThroughputPerSecond, each/1e6, need/1e9,
			harness.Percent(need/ddr)+" %", harness.Percent(mme)+" %")
		switch {
		case need > ddr:
			beyond = append(beyond, fmt.Sprintf("%s (%s times the bandwidth there is)", c.Label, harness.Fixed(need/ddr, 1)))
		case c.Doubt != "":
			below = append(below,
				fmt.Sprintf(
					"%s: at %s/s it would keep the DDR busy for %s %% and the MMEs for %s %% of the time; to fill the DDR each element would have to move %s MB, %s times what a kernel per layer moves",
					c.Label, harness.Significant(c.TVMThroughputPerSecond), harness.Percent(need/ddr), harness.Percent(mme),
					harness.Significant(ddr/c.TVMThroughputPerSecond/1e6), harness.Fixed(ddr/need, 0)))
		}
	}
	var notes []string
	if len(beyond) > 0 {
		notes = append(notes, "Too fast for a kernel per layer, whatever is fitted: "+strings.Join(beyond,
			", ")+". To be true, results would have to stay on the chip, against Table 3, or the DDR be that much faster.")
	}
	for _, s := range below {
		notes = append(notes, "Too slow, "+s+".")
	}
	b, d := literature.WritesOf("B"), literature.WritesOf("D")
	rate := literature.ConfigurationOf("D").TVMThroughputPerSecond
	does := func(layers, hidden int64) string {
		return harness.Fixed(float64(encoderMACs(layers, 384, hidden))*rate/1e12, 1)
	}
	notes = append(notes,
		fmt.Sprintf(
			"D is taken for BERT-large: Table 3 counts %d results of TVM for it and %d for B, C and E alike, as twice the layers would have. At the published %s/s it does %s TMAC/s; BERT-base, in brackets, would do %s.",
			d.TVM.DDR, b.TVM.DDR, harness.Significant(rate), does(24, 1024), does(12, 768)))
	return t, notes
}

// encoderMACs are the multiply-accumulates of a transformer's encoder: per layer and token
// 4 + 8 products with hidden x hidden, and two with the sequence.
func encoderMACs(layers, tokens, hidden int64) int64 {
	return layers * (12*tokens*hidden*hidden + 2*tokens*tokens*hidden)
}
