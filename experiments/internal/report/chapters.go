package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/plots/page"
)

// Chapter is a part of the report with its experiments. A name that ends in "-" stands for all that begin so.
type Chapter struct {
	Name, Title string
	System      string // whose published numbers it has, "": of no single one
	Experiments []string
}

// Chapters are those of the page, in their order. Experiments that are in none come last.
var Chapters = []Chapter{
	{"Optimality", "Optimality: how far greedy decisions are from the best", "",
		[]string{"optimality"}},
	{"GraphTurbo", "GraphTurbo: tables and figures of the paper", "GraphTurbo", []string{"fig3", "fig5", "fig8", "fig10",
		"fig12", "fig13",
		"ablation", "table1", "batch-select", "fig14", "fig15", "table3", "fig16", "fig17", "readings",
		"table4", "table5", "timeline"}},
	{"Ansor", "Ansor: loops inside kernels", "Ansor", []string{"ansor-"}},
	{"Mofang", "Mofang: layers side by side, and pipelines of devices", "Mofang", []string{"mofang-"}},
	{"AStitch", "AStitch: kernels of a GPU stitched together", "AStitch", []string{"astitch-"}},
	{"Machines", "Machines: other vendors, measured times, other tools", "",
		[]string{"systems", "gains", "measured"}},
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

// tally counts the facts of a chapter: each published number and statement once, but for what predicts nothing.
type tally struct {
	facts, holds int
	wrong        []string  // facts with a wrong sign
	factors      []float64 // of misses that have one
	causes       []string
	missed       map[string][]string // facts, by cause
}

func (p part) tally() tally {
	t := tally{missed: map[string][]string{}}
	for _, e := range p.of {
		for _, l := range e.lines {
			if !l.counted() {
				continue
			}
			if t.facts++; l.verdict == harness.Holds {
				t.holds++
				continue
			}
			if l.verdict == harness.WrongSign {
				t.wrong = append(t.wrong, l.what)
			}
			if l.numbers != nil && l.numbers.Factor() > 0 {
				t.factors = append(t.factors, l.numbers.Factor())
			}
			cause := cmp.Or(l.cause, noCause)
			if t.missed[cause] == nil {
				t.causes = append(t.causes, cause)
			}
			t.missed[cause] = append(t.missed[cause], fmt.Sprintf("%s (%s for %s)", l.what, l.ours, l.published))
		}
	}
	slices.SortStableFunc(t.causes, func(a, b string) int {
		switch noCause { // it comes last
		case a:
			return 1
		case b:
			return -1
		}
		return len(t.missed[b]) - len(t.missed[a])
	})
	return t
}

const noCause = "no cause is known"

// median is the median factor of the misses that have one.
func (t tally) median() string {
	if len(t.factors) == 0 {
		return "–"
	}
	list := slices.Sorted(slices.Values(t.factors))
	return harness.Fixed((list[(len(list)-1)/2]+list[len(list)/2])/2, 2)
}

// sentence is the headline of a paper.
func (t tally) sentence() string {
	s := fmt.Sprintf("%d of %d published facts hold.", t.holds, t.facts)
	if len(t.factors) > 0 {
		s += fmt.Sprintf(" The median miss is off by a factor of %s.", t.median())
	}
	switch len(t.wrong) {
	case 0:
		return s + " No sign is wrong."
	case 1:
		return s + " One sign is wrong: " + t.wrong[0] + "."
	}
	return s + fmt.Sprintf(" %d signs are wrong: %s.", len(t.wrong), strings.Join(t.wrong, "; "))
}

// clusters has a row for each cause of misses.
func (t tally) clusters(title string) harness.Table {
	table := harness.Table{Title: title, Columns: harness.Columns("<Cause", "Facts", "<Which (ours for published)")}
	for _, c := range t.causes {
		table.Add(c, len(t.missed[c]), strings.Join(t.missed[c], "; "))
	}
	return table
}

// conclusion is a chapter's headline, then what its leading figures say.
func (p part) conclusion() string {
	var sentences []string
	if t := p.tally(); t.facts > 0 {
		sentences = append(sentences, t.sentence())
		for _, c := range t.causes {
			sentences = append(sentences, fmt.Sprintf("%d missed: %s.", len(t.missed[c]), c))
		}
	}
	for _, e := range p.of {
		for _, l := range e.leads {
			sentences = append(sentences, l.Sentences...)
		}
	}
	return strings.Join(sentences, " ")
}

// byChapter sums up the chapters, one by one: facts of several papers have no sum.
func byChapter(list []part) page.Table {
	t := page.Table{Columns: []string{"Chapter", "facts", "hold", "wrong sign", "median factor of misses"}, Numbers: true}
	for _, p := range list {
		if x := p.tally(); x.facts > 0 {
			t.Rows = append(t.Rows, []string{p.Title, harness.Count(int64(x.facts)), harness.Count(int64(x.holds)),
				harness.Count(int64(len(x.wrong))), x.median()})
		}
	}
	return t
}

// title names the paper whose methods are implemented, with its headline, or the first that there are facts of.
func title(list []part) string {
	for _, p := range list {
		if t := p.tally(); t.facts > 0 && p.System != "" {
			return fmt.Sprintf("%s: %d of %d published facts hold", p.System, t.holds, t.facts)
		}
	}
	return "Experiments: results"
}
