package paperfigs

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/grain"
	"gonum.org/v1/gonum/stat"
)

// grains asks at which grain the paper's graphs were: what TVM's results are at each, and
// what the systems are worth.
func grains() grid {
	return grid{name: "grain",
		description: "networks in the operators of the framework: TVM's results, and what stitching and GraphTurbo gain there",
		paper:       "GraphTurbo (OSDI 2023), Table 3 and Fig. 14", hardware: "stcp920",
		variants: []string{"tvm", "tvm-fuse", "astitch", "astitch-fuse", "cross-layer"},
		policies: []harness.ChunkPolicy{harness.PaperChunks},
		configurations: func() []literature.Configuration {
			var list []literature.Configuration
			for _, c := range literature.Configurations() {
				for _, g := range grain.Grains() {
					list = append(list, atGrain(c, g))
				}
			}
			return list
		},
		leaves: func(c literature.Configuration, variant string) bool {
			given := !strings.Contains(c.Network, "@")
			if variant == "cross-layer" {
				return strings.HasSuffix(c.Network, "@"+string(grain.Primitive))
			}
			return given == strings.HasSuffix(variant, "-fuse") // TVM's pass on what frameworks give it
		},
		report: reportGrain}
}

func atGrain(c literature.Configuration, g grain.Grain) literature.Configuration {
	if g != grain.Given {
		c.Network += "@" + string(g)
	}
	return c
}

// counted says where TVM's results come from that are not ours, as far as it is known
// what the framework's graph has.
var counted = map[string]string{
	"A": "53 convolutions, two pools, product and softmax; MLPerf's graph also gives the ArgMax out",
	"B": "20 a layer: 8 products, 4 moves around the heads, scale and mask, softmax, 3 of each normalisation; and 4 of the embeddings",
	"C": "as B", "E": "as B",
	"D": "as B, 24 layers, 484; 21 a layer and 11 would be 515: the reshape behind the softmax counted, and embeddings with one-hot types, mask and answers",
	"F": "26 look-ups, their 26 sums, 8 products, 4 of the interaction; what the other 12 are is not known",
	"G": "52 convolutions, pool, product and softmax; one is not explained",
	"I": "120 convolutions, five pools, product and softmax, and the normalisations and concatenations between; 4 are not explained",
	"H": "19 a layer; 16 would be 211: queries, keys and values as one product, and the scale on the queries, as common implementations have them",
	"J": "39 a layer here, 62 there (17 x 62 = 1054): Keras has a reshape between each product of three dimensions and its bias, 12 a layer; 11 are not explained",
}

func reportGrain(rows gridRows, b *harness.Document) {
	of := func(c literature.Configuration, g grain.Grain, variant string) harness.Row {
		return rows.at(atGrain(c, g), variant, harness.PaperChunks)
	}
	t := harness.Table{Name: "results", Title: "Results of TVM in a cluster's program",
		Columns: harness.Columns("<", "<Network", "Table 3", "Operators|given|framework|primitive",
			"framework /\nTable 3"),
		Notes: []string{
			"Given: kernels of layers, as variant tvm has them. Framework, primitive: those of TVM's pass FuseOps on normalisations, activations and bags in parts, and on softmaxes too."}}
	speed := harness.Table{Name: "speed",
		Title: "Throughput at the grain of the framework, the paper's batches per cluster",
		Columns: harness.Columns("<", "<Network", "TVM|published|given|framework",
			"AStitch over TVM (×)|given|framework|primitive", "GraphTurbo|given|framework",
			"GraphTurbo over\nTVM, framework (×)")}
	gains, over := map[grain.Grain][]float64{}, []float64{}
	var published, given, framework []float64
	for _, c := range literature.Configurations() {
		theirs := literature.WritesOf(c.Label).TVM.DDR
		results := func(g grain.Grain, variant string) int64 { return of(c, g, variant).Writes.DDR }
		ours := results(grain.Framework, "tvm-fuse")
		t.Add(c.Label, c.Network, theirs, results(grain.Given, "tvm"), ours, results(grain.Primitive, "tvm-fuse"),
			harness.Fixed(float64(ours)/float64(theirs), 2))
		b.Line(harness.Line{What: fmt.Sprintf("%s %s: results of TVM, operators of the framework", c.Label, c.Network),
			Unit:      "tensors",
			Published: float64(theirs), Ours: float64(ours), Remark: counted[c.Label],
			Given: true}) // another reading of what table3 compares
		rate := func(g grain.Grain, variant string) float64 { return of(c, g, variant).ThroughputPerSecond }
		line := []string{c.Label, c.Network, harness.Significant(c.TVMThroughputPerSecond),
			harness.Significant(rate(grain.Given, "tvm")), harness.Significant(rate(grain.Framework, "tvm-fuse"))}
		for _, g := range grain.Grains() {
			suffix := "-fuse"
			if g == grain.Given {
				suffix = ""
			}
			gain := rate(g, "astitch"+suffix) / rate(g, "tvm"+suffix)
			gains[g] = append(gains[g], gain)
			line = append(line, harness.Fixed(gain, 2))
		}
		gain := rate(grain.Framework, "cross-layer") / rate(grain.Framework, "tvm-fuse")
		over = append(over, gain)
		speed.Add(line, rate(grain.Given, "cross-layer"), rate(grain.Framework, "cross-layer"), harness.Fixed(gain, 2))
		published = append(published, c.TVMThroughputPerSecond)
		given, framework = append(given, rate(grain.Given, "tvm")), append(framework, rate(grain.Framework, "tvm-fuse"))
	}
	b.Table(t, speed)
	off := func(ours []float64) string {
		return harness.Fixed(stat.GeometricMean(harness.Factors(ours, published), nil), 2)
	}
	b.Note(
		"TVM's ten throughputs are off by a factor of %s in the geometric mean as given, of %s in the framework's operators.",
		off(given), off(framework))
	b.Note(
		"AStitch over TVM, arithmetic means: %.2f as given, %.2f in the framework's operators, %.2f in primitive ones; the published means imply %.2f. GraphTurbo over TVM in the framework's operators: %.2f.",
		stat.Mean(gains[grain.Given], nil), stat.Mean(gains[grain.Framework], nil), stat.Mean(gains[grain.Primitive], nil),
		publishedAStitch, stat.Mean(over, nil))
}

// Grain compares networks at several grains.
func Grain() harness.Experiment { return grains().experiment() }
