package readings

import (
	"cmp"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"gonum.org/v1/gonum/stat"
)

// number is a published number and how ours is made; NaN: a run of it is missing.
type number struct {
	group, what, unit string
	published         float64
	ours              func(results) float64
}

// groups of numbers, in the order of the columns.
const (
	groupTVM    = "TVM's\nthroughputs"
	groupUnseen = "of these\nnot fitted"
	groupMeans  = "Fig. 14's\nmeans"
	groupGains  = "Fig. 15's\ngains"
	groupTable1 = "Table 1"
	groupOthers = "measured\nby others"
	groupStages = "Fig. 3"
	groupWrites = "Table 3"
)

// over is the ratio of two recipes' throughputs on a configuration.
func (r results) over(label, to, from string) float64 {
	x, y := r.at(label, to).ThroughputPerSecond, r.at(label, from).ThroughputPerSecond
	if x == 0 || y == 0 {
		return math.NaN()
	}
	return x / y
}

// mean is the arithmetic mean of ratios over the ten, as the paper's are.
func (r results) mean(to, from string) float64 {
	list := harness.Each(literature.Models, func(c literature.Model) float64 { return r.over(c.Label, to, from) })
	return stat.Mean(list, nil)
}

func rate(row harness.Row) float64 { return cmp.Or(row.ThroughputPerSecond, math.NaN()) }

// numbers lists them.
func numbers() []number {
	var list []number
	add := func(group, what, unit string, published float64, ours func(results) float64) {
		list = append(list, number{group, what, unit, published, ours})
	}
	figure := func(group, what string, f literature.Figure, ours func(results) float64) {
		add(group, what, f.Unit, f.Value, ours)
	}
	for _, c := range literature.Models {
		add(groupTVM, c.Label+": TVM", c.Unit, c.TVMThroughputPerSecond,
			func(r results) float64 { return rate(r.at(c.Label, "tvm")) })
	}
	figure(groupMeans, "mean over TVM", literature.MeanSpeedup,
		func(r results) float64 { return r.mean("cross-layer", "tvm") })
	figure(groupMeans, "mean over AStitch", literature.MeanOverAStitch,
		func(r results) float64 { return r.mean("cross-layer", "astitch") })
	add(groupMeans, "AStitch over TVM, from these two", "x", literature.MeanSpeedup.Value/literature.MeanOverAStitch.Value,
		func(r results) float64 {
			if r.setting.Change.MeanOfRatios {
				return r.mean("astitch", "tvm")
			}
			return r.mean("cross-layer", "tvm") / r.mean("cross-layer", "astitch")
		})
	for i, s := range literature.Breakdown {
		figure(groupGains, fmt.Sprintf("gain of variant %d", i+2), s.Published, func(r results) float64 {
			if s.Variant == "l1" && r.setting.Change.GainOverTVM {
				return r.mean(s.Variant, "tvm")
			}
			return r.mean(s.Variant, s.Before)
		})
	}
	figure(groupTable1, "BERT-128 at 32: TVM", literature.BertTVMThroughput,
		func(r results) float64 { return rate(r.at("B", "tvm")) })
	figure(groupTable1, "BERT-128 at 32: TVM's latency (ms)", literature.BertTVMLatency,
		func(r results) float64 { return 1e3 * r.at("B", "tvm").LatencySeconds })
	figure(groupTable1, "BERT-128 at 32: GraphTurbo", literature.BertThroughput,
		func(r results) float64 { return rate(r.at("B", "cross-layer")) })
	figure(groupTable1, "BERT-128 at 32: GraphTurbo's latency (ms)", literature.BertLatency,
		func(r results) float64 { return 1e3 * r.at("B", "cross-layer").LatencySeconds })
	for _, batch := range smallBatches {
		add(groupTable1, fmt.Sprintf("BERT-128 at %d: GraphTurbo over TVM", batch), "x", 1, func(r results) float64 {
			return rate(r.rows[r.setting.small("cross-layer", batch)]) / rate(r.rows[r.setting.small("tvm", batch)])
		})
	}
	add(groupOthers, "A: vendor's code (ours: GraphTurbo)", "images/s", literature.MeasuredResNet.ThroughputPerSecond,
		func(r results) float64 { return rate(r.at("A", "cross-layer")) })
	add(groupOthers, "B: vendor's code (ours: GraphTurbo)", "sentences/s", literature.MeasuredBERT.ThroughputPerSecond,
		func(r results) float64 { return rate(r.at("B", "cross-layer")) })
	for _, network := range stages {
		add(groupStages, "four stages over TVM, "+network, literature.StageSpeedup.Unit, literature.StageSpeedup.Value,
			func(r results) float64 {
				return rate(r.rows[r.setting.stage(network, "cross-layer")]) / rate(r.rows[r.setting.stage(network, "tvm")])
			})
	}
	for _, w := range literature.TensorWrites {
		for _, m := range []struct {
			name, recipe string
			published    harness.Levels
		}{{"TVM", "tvm", w.TVM}, {"GraphTurbo", "cross-layer", w.GraphTurbo}} {
			for _, l := range harness.WriteLevels {
				add(groupWrites, fmt.Sprintf("%s: %s to %s", w.Label, m.name, l.Name), "tensors", float64(l.Of(m.published)),
					func(r results) float64 {
						row := r.at(w.Label, m.recipe)
						if row.ThroughputPerSecond == 0 {
							return math.NaN()
						}
						return float64(l.Of(row.Writes))
					})
			}
		}
	}
	return list
}

// geometricError is exp(mean |ln(ours/published)|) over numbers of which both are above zero.
func geometricError(list []number, r results) float64 {
	sum, n := 0.0, 0
	for _, x := range list {
		if ours := x.ours(r); ours > 0 && x.published > 0 {
			sum += math.Abs(math.Log(ours / x.published))
			n++
		}
	}
	return math.Exp(sum / float64(n))
}

// within counts the numbers that are within 20 %, of those that are not zero in both; what is missing is not within.
func within(list []number, r results) string {
	n, of := 0, 0
	for _, x := range list {
		l := harness.Line{Unit: x.unit, What: x.what, Published: x.published, Ours: x.ours(r)}
		if l.Predicted() {
			of++
			if !math.IsNaN(l.Ours) && l.Verdict() == harness.Verdicts[0] {
				n++
			}
		}
	}
	return fmt.Sprintf("%d of %d", n, of)
}
