package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/plots/page"
)

// Chapter is a part of the report with its experiments. A name that ends in "-" stands for
// all that begin so.
type Chapter struct {
	Name, Title string
	System      string // whose published numbers it has, "": of no single one
	Experiments []string
}

// Chapters are those of the page, in their order. Experiments that are in none come last.
var Chapters = []Chapter{
	{"Optimality", "Optimality: how far greedy decisions are from the best", "",
		[]string{"optimality", "best", "regret", "kinds"}},
	{"GraphTurbo", "GraphTurbo: tables and figures of the paper", "GraphTurbo", []string{"fig3", "fig5", "fig8", "fig10",
		"fig12", "fig13",
		"ablation", "table1", "batch-select", "fig14", "fig15", "table3", "grain", "fig16", "fig17", "readings", "lb64",
		"table4", "table5", "timeline"}},
	{"Ansor", "Ansor: loops inside kernels", "Ansor", []string{"ansor-"}},
	{"Mofang", "Mofang: layers side by side, and pipelines of devices", "Mofang", []string{"mofang-"}},
	{"AStitch", "AStitch: kernels of a GPU stitched together", "AStitch", []string{"astitch-"}},
	{"Machines", "Machines: other constants, other vendors, measured times, other tools", "",
		[]string{"sweep", "sensitivity", "portability", "systems", "measured", "peers", "tensor"}},
	{"Serving", "Serving: requests to a decoder, and tokens to experts", "", []string{"serving", "experts"}},
	{"Today", "Kernels and networks of today", "", []string{"kernels", "networks-now"}},
}

// Has says whether an experiment belongs to the chapter.
func (c Chapter) Has(name string) bool {
	return slices.ContainsFunc(c.Experiments, func(e string) bool {
		return e == name || strings.HasSuffix(e, "-") && strings.HasPrefix(name, e)
	})
}

// chapters are those of which there are results.
func (c *collection) chapters() []part {
	var list []part
	rest := part{Chapter: Chapter{Name: "Others", Title: "Other experiments"}}
	for _, ch := range Chapters {
		p := part{Chapter: ch}
		for i := range c.experiments {
			if ch.Has(c.experiments[i].name) {
				p.of = append(p.of, &c.experiments[i])
			}
		}
		if p.of != nil {
			list = append(list, p)
		}
	}
	for i := range c.experiments {
		if !slices.ContainsFunc(Chapters, func(ch Chapter) bool { return ch.Has(c.experiments[i].name) }) {
			rest.of = append(rest.of, &c.experiments[i])
		}
	}
	if rest.of != nil {
		list = append(list, rest)
	}
	return list
}

// part is a chapter with results.
type part struct {
	Chapter
	of []*collected
}

// counts says how many of the part's lines have each verdict; all is of those that are
// predicted and judged.
func (p part) counts() (of map[string]int, all int) {
	of = map[string]int{}
	known := append(slices.Clone(harness.Verdicts), verdictAgrees, verdictDiffers)
	for _, e := range p.of {
		for _, l := range e.lines {
			if l.predicted() && slices.Contains(known, l.verdict) {
				of[l.verdict]++
				all++
			}
		}
	}
	return of, all
}

// reproduced counts the lines that come out as published.
func (p part) reproduced() (good, all int) {
	of, all := p.counts()
	return of[harness.Verdicts[0]] + of[verdictAgrees], all
}

// conclusion is the verdicts of a chapter in a sentence, then what its leading figures say.
func (p part) conclusion() string {
	var sentences []string
	if of, all := p.counts(); all > 0 {
		var parts []string
		for _, v := range append(slices.Clone(harness.Verdicts), verdictAgrees, verdictDiffers) {
			if of[v] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", of[v], v))
			}
		}
		sentences = append(sentences, fmt.Sprintf("Of %d published numbers and statements: %s.", all, strings.Join(parts,
			", ")))
	}
	for _, e := range p.of {
		for _, l := range e.leads {
			sentences = append(sentences, l.Sentence)
		}
	}
	return strings.Join(sentences, " ")
}

// byChapter sums up the chapters.
func byChapter(list []part) page.Table {
	t := page.Table{Columns: append([]string{"Chapter"}, harness.Verdicts...), Numbers: true}
	t.Columns = append(t.Columns, verdictAgrees, verdictDiffers, "all")
	for _, p := range list {
		of, all := p.counts()
		if all == 0 {
			continue
		}
		row := []string{p.Title}
		for _, v := range t.Columns[1 : len(t.Columns)-1] {
			row = append(row, harness.Count(int64(of[v])))
		}
		t.Rows = append(t.Rows, append(row, harness.Count(int64(all))))
	}
	return t
}

// title says whose numbers the page holds, and how many predictions hold; it says reproduced
// if more than half of them do.
func title(list []part) string {
	var systems []string
	good, all := 0, 0
	for _, p := range list {
		g, a := p.reproduced()
		good, all = good+g, all+a
		if p.System != "" {
			systems = append(systems, p.System)
		}
	}
	name := "Experiments"
	if n := len(systems); n > 0 {
		name = systems[n-1]
		if n > 1 {
			name = strings.Join(systems[:n-1], ", ") + " and " + name
		}
	}
	if all == 0 {
		return name + ": results"
	}
	if 2*good > all {
		return fmt.Sprintf("%s: reproduced, %d of %d predictions", name, good, all)
	}
	return fmt.Sprintf("%s: %d of %d predictions hold", name, good, all)
}
