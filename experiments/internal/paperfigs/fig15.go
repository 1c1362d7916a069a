package paperfigs

import (
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
)

// fig15 is the performance breakdown on all configurations.
func fig15() grid {
	return grid{name: "fig15", description: "what each idea is worth on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), §5.3 and Fig. 15", hardware: "stcp920",
		variants: []string{"tvm", "llb", "l1", "ordering", "cross-layer"},
		policies: []harness.ChunkPolicy{harness.PaperChunks}, configurations: literature.Configurations, report: reportFig15}
}

func reportFig15(rows gridRows, b *harness.Document) {
	over := func(v, base string) func(literature.Configuration) float64 {
		return func(c literature.Configuration) float64 {
			return rows.at(c, v, harness.PaperChunks).ThroughputPerSecond /
				rows.at(c, base, harness.PaperChunks).ThroughputPerSecond
		}
	}
	t := harness.Table{Name: "gains", Title: "Gain of each variant, the paper's batches per cluster",
		Columns: harness.Columns("<", "<Network", "variant 1\n(llb)\nover TVM",
			"Over the variant before (×)|2 (l1)|3 (ordering)|4 (cross-layer)", "Over variant 1 (×)|2|3|4")}
	for _, c := range literature.Configurations() {
		line := []string{c.Label, c.Network, harness.Fixed(over("llb", "tvm")(c), 2)}
		for _, s := range literature.Breakdown {
			line = append(line, harness.Fixed(over(s.Variant, s.Before)(c), 2))
		}
		for _, s := range literature.Breakdown {
			line = append(line, harness.Fixed(over(s.Variant, "llb")(c), 2))
		}
		t.Add(line)
	}
	b.Table(t)
	m := harness.Table{Name: "means", Title: "Means beside the paper's",
		Columns: harness.Columns("<Variant", "<Over", "Arithmetic", "Geometric", "Published", "Ratio")}
	product := 1.0
	for _, reading := range []string{"notes", "slides", "either"} {
		for i, s := range literature.Breakdown {
			base := s.Before
			switch {
			case reading == "slides":
				base = "llb"
			case reading == "either":
				base = "tvm"
			}
			if i == 0 && reading == "slides" || i > 0 && reading == "either" {
				continue // variant 2 is over variant 1 in both, or over TVM, from "data moved from DDR to L1"
			}
			all, geometric := literature.Means(over(s.Variant, base))
			m.Add(s.Variant, base+" ("+reading+")", harness.Fixed(all, 2), harness.Fixed(geometric, 2),
				harness.Fixed(s.Published.Value, 2), harness.Fixed(all/s.Published.Value, 2))
			place := 0
			if s.Variant == "l1" && base == "llb" {
				place = 4
			}
			b.Line(harness.Line{What: fmt.Sprintf("mean gain of %s over %s (as the %s read it)", s.Variant, base, reading),
				Unit: "x", Published: s.Published.Value, Ours: all,
				Given:  reading != "notes", // a number has one line that counts
				Cause:  causeLLB,
				Remark: reasonGain(rows, s.Variant, base, s.Published.Value), Headline: place})
			if reading == "notes" {
				product *= s.Published.Value
			}
		}
	}
	b.Table(m)
	b.Note(
		"The text does not say what %.2f, %.2f and %.2f are gains over: the variant before (notes) or variant 1 (slides). The product in the notes' reading, %.1f, exceeds the speedup over TVM, %.2f; in the slides' reading variant 4 would be slower than 3, and 3 slower than 2.",
		literature.MeanL1.Value, literature.MeanOrder.Value, literature.MeanCross.Value, product,
		literature.MeanSpeedup.Value)
	steps := [][3]string{{"TVM", "tvm"}, {"variant 1 (LLB)", "llb", "tvm"}, {"variant 2 (L1)", "l1", "llb"},
		{"variant 3 (instance order)", "ordering", "l1"}, {"variant 4 (across layers)", "cross-layer", "ordering"}}
	speedups := plots.Groups{Title: "Speedup over TVM, the paper's batches per cluster", YLabel: "Speedup (×)",
		Categories: literature.Labels("mean\nA–J"), Line: 1, Log: true}
	gains := plots.Groups{Title: "Gain over the variant before (published: by the notes' reading)", YLabel: "Gain (×)",
		Categories: literature.Labels("mean\nA–J"), Line: 1, Log: true}
	for i, s := range steps {
		all, _ := literature.Means(over(s[1], "tvm"))
		speedups.Series = append(speedups.Series, plots.Series{Name: s[0], Values: literature.Pick(over(s[1], "tvm"), all)})
		gain := plots.Series{Name: s[0], Values: make([]float64, len(gains.Categories))} // TVM has none
		if i > 0 {
			all, _ := literature.Means(over(s[1], s[2]))
			gain.Values = literature.Pick(over(s[1], s[2]), all)
		}
		if s[1] == "l1" { // the other reading of 3.67
			speedups.Marks = append(speedups.Marks, plots.GroupMark{Category: len(literature.Configurations()), Series: i,
				Value: literature.MeanL1.Value})
		}
		if i > 1 {
			gains.Marks = append(gains.Marks, plots.GroupMark{Category: len(literature.Configurations()), Series: i,
				Value: literature.Breakdown[i-2].Published.Value})
		}
		gains.Series = append(gains.Series, gain)
	}
	b.Bars("breakdown", "Speedup over TVM, and gain over the variant before", speedups, gains)
}

// Fig15 is the performance breakdown on all configurations.
func Fig15() harness.Experiment { return fig15().experiment() }
