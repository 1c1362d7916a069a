package report

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
)

// reportPreface tells the reader how to read the comparison.
const reportPreface = "A prediction holds if it is within 20 % of the published value, or within the printed precision where that is coarser; counts of tensors below ten may differ by one, and a trend needs the right sign. Not counted: values that the accelerator's constants were fitted to (†; dsasched calibrate: TVM's throughputs of ResNet-50, MobileNet-v2 and DenseNet, and GraphTurbo's of BERT-128), inputs, definitions, zeros on both sides, other readings of a value that has a line, and systems that are not implemented. Each fact counts once; the papers are counted separately."

// writeReport gathers the published numbers beside ours from the experiments that have results in a folder, and writes
// report.md and report.html there. They depend on the results alone.
func Write(out string, names []string) error {
	c, err := gather(out, names)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(c.experiments) == 0 {
		return nil
	}
	if err := harness.WriteFile(filepath.Join(out, "report.md"), []byte(reportText(c))); err != nil {
		return err
	}
	html, err := c.page()
	if err != nil {
		return err
	}
	return harness.WriteFile(filepath.Join(out, "report.html"), html)
}

func reportText(c *collection) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Published numbers beside ours\n\n%s\n\n", reportPreface)
	c.brief(&b)
	builds, _, _ := c.origins()
	origins := harness.Table{Title: "Where the results come from", Rows: builds.Rows}
	for _, name := range builds.Columns {
		origins.AddColumns("<" + name)
	}
	b.WriteString(origins.Markdown())
	if quick := c.quick(); len(quick) > 0 {
		fmt.Fprintf(&b, "In their quick forms, which --all does in full: %s.\n\n", strings.Join(quick, ", "))
	}
	summary := c.summary()
	if len(summary.Rows) == 0 {
		b.WriteString("None of these compares with a published number line by line; see their own folders.\n")
		return b.String()
	}
	b.WriteString(summary.Markdown())
	for _, e := range c.experiments {
		t := harness.Table{Title: e.name, Columns: harness.Columns("<What", "<Unit", "Published", "Ours", "Ratio",
			"Error (%)", "<Verdict", "<Remark")}
		for _, l := range e.lines {
			t.Add(l.what, l.unit, l.published, l.ours, l.ratio, l.error, l.verdict, l.remark)
		}
		if len(t.Rows) > 0 {
			b.WriteString(t.Markdown())
		}
	}
	b.WriteString(
		"Figures, and the tables behind these lines, are in the folders of the experiments; report.html has all of them in one page.\n")
	return b.String()
}

// brief is the first page: the leading figures of the study with a sentence each, each paper's headline with a line for
// each cause of misses, the headlines, and the other leading figures.
func (c *collection) brief(b *strings.Builder) {
	c.leads(b, true)
	for _, p := range c.chapters() {
		if t := p.tally(); t.facts > 0 {
			fmt.Fprintf(b, "**%s**: %s\n\n", p.Name, harness.EscapeMarkdown(t.sentence()))
			if len(t.causes) > 0 {
				table := t.clusters("What misses: " + p.Name)
				b.WriteString(table.Markdown())
			}
		}
	}
	t := harness.Table{Title: "In brief", Columns: harness.Columns("<What", "Published", "Ours", "<Unit", "<Verdict",
		"<In words")}
	for _, l := range c.headlines() {
		t.Add(l.what, l.published, l.ours, l.unit, l.verdict, l.numbers.InWords())
	}
	if len(t.Rows) > 0 {
		b.WriteString(t.Markdown())
	}
	c.leads(b, false)
}

// leads are the leading figures of the first chapter, or of the others.
func (c *collection) leads(b *strings.Builder, first bool) {
	for _, e := range c.experiments {
		if Chapters[0].Has(e.name) != first {
			continue
		}
		for _, l := range e.leads {
			title, mark := harness.EscapeMarkdown(l.Title), ""
			if len(l.Sentences) > 1 {
				mark = "- "
			}
			fmt.Fprintf(b, "### %s (%s)\n\n", title, e.name)
			for _, s := range l.Sentences {
				fmt.Fprintf(b, "%s%s\n", mark, harness.EscapeMarkdown(s))
			}
			fmt.Fprintf(b, "\n![%s](%s/%s.png)\n\n", title, e.name, l.Figure)
		}
	}
}
