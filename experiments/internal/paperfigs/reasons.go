package paperfigs

import (
	"fmt"
	"math"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"gonum.org/v1/gonum/stat"
)

// Causes of misses, each of which has a line in the report.
const (
	causeRates   = "TVM's published rates contradict each other: C, E and J would need more than the DDR's bandwidth, and B, C and E take 31, 19 and 12 ms for equally many tokens"
	causeH       = "H's network and resolution are not published; at 224 pixels TVM would do an eighth of its MACs/s on BERT-128"
	causeJ       = "J's graph is not published; its 1054 results of TVM are far more than here"
	causePar     = "TVM's kernels wait for their weights, since the text gives loads ahead of a layer to GraphTurbo alone (§4.4)"
	causePlace   = "footprints, split factors and spills depend on graphs that are not published"
	causeBatch   = "TVM's LLB rule allows too large a batch on F and too small a one on I; smaller batches are faster on G and H"
	causeLLB     = "variant 1's results in the LLB cost little beside exposed weight loads, so that the L1 gains little over the LLB"
	causeStage   = "neither the example of Fig. 3 nor what TVM ran on it is published"
	causeExtents = "Fig. 5 gives no extents; with those assumed here, split factors at 8 images prevent merges that the patterns allow"
	causeFlat    = "utilisation saturates at batch 64"
)

// causesOf has the causes of misses by configuration.
var causesOf = map[string]string{"H": causeH, "J": causeJ}

// What the simulated rows themselves say about a published number that ours misses. Each
// reason is computed; where there is none to give, it is empty.

// reasonTVM is of the throughput of a kernel per layer: what the published rate would ask of the chip.
func reasonTVM(r harness.Row, publishedPerSecond float64, spec *hardware.Spec) string {
	if harness.Within20(publishedPerSecond)(r.ThroughputPerSecond) {
		return ""
	}
	ddr := spec.DDR.BandwidthBytesPerSecond
	if need := float64(r.MovedBytes.DDR) / float64(r.Batch) * publishedPerSecond; need > ddr {
		return fmt.Sprintf("the published rate would need %s GB/s of the DDR's %s",
			harness.Significant(need/1e9), harness.Significant(ddr/1e9))
	}
	kernels := float64(r.KernelsDynamic) / float64(spec.Clusters)
	if r.ThroughputPerSecond < publishedPerSecond || kernels == 0 {
		return ""
	}
	each := func(perSecond float64) float64 { return float64(r.Batch) / perSecond / kernels * 1e6 }
	return fmt.Sprintf("%s µs for each kernel of a cluster as published, %s here, of which %s are the launch",
		harness.Significant(each(publishedPerSecond)), harness.Significant(each(r.ThroughputPerSecond)),
		harness.Significant(1e6*spec.LaunchSeconds))
}

// reasonGain is of the mean gain of a variant over another: the mean of what any execution of its programs could gain
// at most, if the published gain is beyond it, and else between which configurations the gain varies.
func reasonGain(rows gridRows, to, from string, published float64) string {
	var most []float64
	low, high := math.Inf(1), 0.0
	var least, greatest literature.Configuration
	for _, c := range literature.Configurations() {
		x, y := rows.at(c, from, harness.PaperChunks), rows.at(c, to, harness.PaperChunks)
		if y.LowerBoundSeconds > 0 {
			most = append(most, x.LatencySeconds/y.LowerBoundSeconds)
		}
		gain := y.ThroughputPerSecond / x.ThroughputPerSecond
		if gain < low {
			low, least = gain, c
		}
		if gain > high {
			high, greatest = gain, c
		}
	}
	s := fmt.Sprintf("from %.2f (%s) to %.2f (%s)", low, least.Label, high, greatest.Label)
	if len(most) == len(literature.Configurations()) && stat.Mean(most, nil) < published {
		s += fmt.Sprintf("; the lower bounds of the programs of %s allow %.2f at most", to, stat.Mean(most, nil))
	}
	return s
}

// singleOperators counts what this package's networks have as one operator and exported
// graphs as several: softmax and normalisation over an axis.
func singleOperators(network string) (int, error) {
	src := harness.OpenNetwork(network)
	g, err := src.Graph(1)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, op := range g.Ops {
		if op.Kind == "Softmax" || op.Kind == "LayerNorm" {
			n++
		}
	}
	return n, nil
}

// reasonWrites is of a cell of Table 3. Ours and published are of the method, tvm is what a
// kernel per layer writes, in ours and published.
func reasonWrites(level string, ours, published, tvm, publishedTVM harness.Levels, single int) string {
	sum := func(l harness.Levels) int64 { return l.DDR + l.LLB + l.L1 }
	of := func(l harness.Levels) int64 {
		for _, w := range harness.WriteLevels {
			if w.Name == level {
				return w.Of(l)
			}
		}
		panic("experiments: no level " + level)
	}
	if harness.Within20(float64(of(published)))(float64(of(ours))) {
		return ""
	}
	if ours == tvm {
		if missing := sum(published) - sum(ours); missing > 0 && single > 1 {
			return fmt.Sprintf("%d fewer results; %d softmaxes and normalisations are single operators here", missing, single)
		}
		return ""
	}
	if of(published) == 0 && of(ours) == 1 && level == "DDR" {
		return "the network's output, which the paper counts for other networks"
	}
	if sum(tvm) == 0 || sum(publishedTVM) == 0 {
		return ""
	}
	per, theirs := float64(sum(ours))/float64(sum(tvm)), float64(sum(published))/float64(sum(publishedTVM))
	s := fmt.Sprintf("%s writes for each result of TVM, published %s", harness.Fixed(per, 2), harness.Fixed(theirs, 2))
	switch {
	case !harness.Within20(theirs)(per):
	case harness.Within20(float64(sum(publishedTVM)))(float64(sum(tvm))):
		s += ": as many, in other levels"
	default:
		s += fmt.Sprintf(": as many, but TVM has %d results here and %d there", sum(tvm), sum(publishedTVM))
	}
	return s
}

// reasonBatches is of the best batches per cluster: what the paper's choice costs here.
func reasonBatches(best, paper harness.Row) string {
	if best.BatchesPerCluster == paper.BatchesPerCluster || paper.ThroughputPerSecond == 0 {
		return ""
	}
	each := func(r harness.Row) string {
		return harness.Significant(float64(r.MovedBytes.DDR) / float64(r.Batch) / 1e6)
	}
	s := fmt.Sprintf("DDR traffic is %s MB for each element with the paper's batch, %s with ours", each(paper), each(best))
	if paper.Writes != best.Writes {
		s += fmt.Sprintf("; tensor writes DDR/LLB/L1 %s, with ours %s", paper.Writes, best.Writes)
	}
	return s
}
