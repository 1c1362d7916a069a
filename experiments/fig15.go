package experiments

import (
	"fmt"

	"github.com/dsasched/dsasched/plots"
)

// fig15 is the performance breakdown on all configurations.
func fig15() grid {
	return grid{name: "fig15", description: "what each idea is worth on the ten configurations",
		paper: "GraphTurbo (OSDI 2023), §5.3 and Fig. 15", hardware: "stcp920",
		variants: []string{"tvm", "llb", "l1", "ordering", "cross-layer"}, policies: []ChunkPolicy{PaperChunks}, report: reportFig15}
}

// breakdown are the steps of the figure.
var breakdown = []struct {
	variant, before string
	published       PublishedFigure
}{{"l1", "llb", meanL1}, {"ordering", "l1", meanOrder}, {"cross-layer", "ordering", meanCross}}

func reportFig15(rows gridRows, b *gridReport) error {
	over := func(v, base string) func(Configuration) float64 {
		return func(c Configuration) float64 {
			return rows.at(c, v, PaperChunks).ThroughputPerSecond / rows.at(c, base, PaperChunks).ThroughputPerSecond
		}
	}
	t := table{title: "Gain of each variant, the paper's batches per cluster", label: "tab:fig15",
		columns: []column{{name: "", text: true}, {name: "Network", text: true}, {name: "variant 1\n(llb)\nover TVM"},
			{group: "Over the variant before (×)", name: "2 (l1)"}, {group: "Over the variant before (×)", name: "3 (ordering)"}, {group: "Over the variant before (×)", name: "4 (cross-layer)"},
			{group: "Over variant 1 (×)", name: "2"}, {group: "Over variant 1 (×)", name: "3"}, {group: "Over variant 1 (×)", name: "4"}}}
	for _, c := range Configurations() {
		line := []string{c.Label, c.Network, fixed(over("llb", "tvm")(c), 2)}
		for _, s := range breakdown {
			line = append(line, fixed(over(s.variant, s.before)(c), 2))
		}
		for _, s := range breakdown {
			line = append(line, fixed(over(s.variant, "llb")(c), 2))
		}
		t.rows = append(t.rows, line)
	}
	if err := b.table(t); err != nil {
		return err
	}
	m := table{title: "Means beside the paper's", label: "tab:fig15-means",
		columns: []column{{name: "Variant", text: true}, {name: "Over", text: true}, {name: "Arithmetic"}, {name: "Geometric"},
			{name: "Arithmetic\nwithout D, H"}, {name: "Published"}, {name: "Ratio"}}}
	product, errors := 1.0, map[string][]float64{}
	for _, reading := range []string{"notes", "slides"} {
		for i, s := range breakdown {
			base := s.before
			if reading == "slides" {
				base = "llb"
			}
			if i == 0 && reading == "slides" {
				continue // the same in both
			}
			all, plausible := means(over(s.variant, base))
			m.rows = append(m.rows, []string{s.variant, base + " (" + reading + ")", fixed(all.Arithmetic, 2), fixed(all.Geometric, 2),
				fixed(plausible.Arithmetic, 2), fixed(s.published.Value, 2), fixed(all.Arithmetic/s.published.Value, 2)})
			b.line(Line{What: fmt.Sprintf("mean gain of %s over %s (reading of the %s)", s.variant, base, reading), Unit: "x", Published: s.published.Value, Ours: all.Arithmetic,
				Remark: reasonGain(rows, s.variant, base, s.published.Value)})
			if i > 0 { // variant 2 is the same in both
				errors[reading] = append(errors[reading], max(all.Arithmetic/s.published.Value, s.published.Value/all.Arithmetic))
			}
			if reading == "notes" {
				product *= s.published.Value
			}
		}
	}
	if err := b.table(m); err != nil {
		return err
	}
	b.note("The text gives %.2f, %.2f and %.2f without saying over what: the notes read each as a gain over the variant before, the slides over variant 1. The notes' product, %.1f, exceeds the whole speedup over TVM, %.2f; in the slides' reading variant 4 would be slower than variant 3, and variant 3 slower than variant 2.",
		meanL1.Value, meanOrder.Value, meanCross.Value, product, meanSpeedup.Value)
	fits := "notes"
	if geometric(errors["slides"]) < geometric(errors["notes"]) {
		fits = "slides"
	}
	b.note("Of variants 3 and 4 the reading of the %s is the nearer: they are off by a factor of %.2f (geometric mean) in the notes' and of %.2f in the slides'. That does not speak for it, since here, too, each variant is faster than the one before in the mean. Neither fits variant 2.",
		fits, geometric(errors["notes"]), geometric(errors["slides"]))
	first := over("llb", "llb")
	// The slides' reading is of this axis.
	var marks []plots.GroupMark
	for i, s := range breakdown {
		marks = append(marks, plots.GroupMark{Category: len(Configurations()), Series: i + 1, Value: s.published.Value})
	}
	var series []plots.Series
	for _, s := range []struct{ name, variant string }{{"variant 1 (llb)", "llb"}, {"2 (l1)", "l1"}, {"3 (ordering)", "ordering"}, {"4 (cross-layer)", "cross-layer"}} {
		f := over(s.variant, "llb")
		if s.variant == "llb" {
			f = first
		}
		all, _ := means(f)
		series = append(series, plots.Series{Name: s.name, Values: pick(f, all.Arithmetic)})
	}
	f, err := plots.GroupedBars(plots.Groups{Title: "Speedup over variant 1, the paper's batches per cluster", YLabel: "Speedup (×)",
		Categories: labels("mean\nA–J"), Line: 1, Series: series, Marks: marks})
	return b.figure("breakdown", "Speedup over variant 1; the published means as the slides read them", f, err)
}
