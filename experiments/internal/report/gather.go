package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/plots/page"
	"github.com/dsasched/dsasched/plots/recording"
)

// collection is the content of a folder of results, as both reports over all experiments
// show it. It depends on the files alone.
type collection struct {
	experiments []collected // in the order of the registry, then others by name
	recording   []byte      // of the viewer; nil if there is none
}

// collected is the content of one experiment.
type collected struct {
	name    string
	lines   []comparedLine
	texts   []page.Text
	figures []page.Figure
	leads   []harness.Lead
	origin  *harness.Origin // nil where it was not recorded
}

// comparedLine is a line of the table of published numbers, for people. Statements in words have no numbers.
type comparedLine struct {
	what, unit, published, ours, ratio, error string
	verdict, remark, cause                    string
	numbers                                   *harness.Line
}

// olderVerdicts maps the verdicts in results of earlier versions.
var olderVerdicts = map[string]string{"as in the paper": harness.Holds, "differs": harness.Misses}

// gather reads the folder. An experiment counts if it has a file NAME/NAME.json; that
// of another form compares with nothing.
func gather(out string, names []string) (*collection, error) {
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil, fmt.Errorf("the results can't be read: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(names, e.Name()) {
			names = append(names, e.Name())
		}
	}
	c := &collection{}
	for _, name := range names {
		dir := filepath.Join(out, name)
		data, err := safefile.Read(filepath.Join(dir, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the results can't be read: %w", err)
		}
		e := collected{name: name, lines: comparedLines(data)}
		if err := e.readFiles(dir); err != nil {
			return nil, err
		}
		c.experiments = append(c.experiments, e)
		switch data, err := safefile.Read(filepath.Join(dir, recording.File)); {
		case err == nil && !json.Valid(data):
			return nil, fmt.Errorf("%s: not valid JSON, expected what 'dsasched run %s' writes",
				filepath.Join(dir, recording.File), name)
		case err == nil:
			c.recording = data
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("the results can't be read: %w", err)
		}
	}
	return c, nil
}

// readFiles reads the texts, the experiment's own first, the figures and the origin.
func (e *collected) readFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the results can't be read: %w", err)
	}
	var others []page.Text
	for _, entry := range entries {
		ext := filepath.Ext(entry.Name())
		if !entry.Type().IsRegular() || ext != ".md" && ext != ".svg" && entry.Name() != harness.OriginFile &&
			entry.Name() != harness.LeadFile {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		data, err := safefile.Read(path)
		if err != nil {
			return fmt.Errorf("the results can't be read: %w", err)
		}
		switch {
		case entry.Name() == e.name+".md":
			e.texts = append(e.texts, page.Text{File: path, Markdown: data})
		case ext == ".md":
			others = append(others, page.Text{File: path, Markdown: data})
		case entry.Name() == harness.LeadFile:
			if err := json.Unmarshal(data, &e.leads); err != nil {
				return fmt.Errorf("%s: not what 'dsasched run' writes: %w", path, err)
			}
		case ext == ".svg":
			e.figures = append(e.figures, page.Figure{Name: strings.TrimSuffix(entry.Name(), ext), File: path, SVG: data})
		default:
			if e.origin, err = harness.ReadOrigin(path, data); err != nil {
				return err
			}
		}
	}
	for _, t := range others {
		// What the own text has in it already, such as a table, is not shown twice.
		if len(e.texts) == 0 || !bytes.Contains(e.texts[0].Markdown, bytes.TrimSpace(t.Markdown)) {
			e.texts = append(e.texts, t)
		}
	}
	return nil
}

// comparedLines finds the published numbers, and what is said in words, in the JSON of an experiment.
func comparedLines(data []byte) []comparedLine {
	var f struct {
		Lines  []harness.Line  `json:"published"`
		Claims []harness.Claim `json:"claims"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil
	}
	var list []comparedLine
	for _, l := range f.Lines {
		if l.Experiment != "" {
			list = append(list, compared(l))
		}
	}
	for _, c := range f.Claims {
		if c.Line {
			continue // it is among them
		}
		list = append(list, comparedLine{what: c.Quantity, published: c.Paper, ours: c.Ours, ratio: "–", error: "–",
			verdict: cmp.Or(olderVerdicts[c.Verdict], c.Verdict), remark: c.Why, cause: c.Cause})
	}
	return list
}

func compared(l harness.Line) comparedLine {
	c := comparedLine{what: l.What, unit: l.Unit, published: asPublished(l.Published), ours: harness.PlainNumber(l.Ours),
		ratio: "–", error: "–", verdict: l.Verdict(), remark: l.Remark, cause: l.Cause, numbers: &l}
	if !l.Predicted() {
		c.verdict = harness.NotCounted
		if l.Calibration {
			c.what += " †"
		}
	}
	if l.Unit == "x" {
		c.unit = "×"
	}
	if l.Published != 0 {
		c.ratio = harness.Fixed(l.Ratio(), 2)
		c.error = fmt.Sprintf("%+.1f", 100*(l.Ratio()-1))
	}
	return c
}

// counted says whether a line is a fact that ours holds or misses.
func (l comparedLine) counted() bool { return slices.Contains(harness.Verdicts, l.verdict) }

// headlines are the lines that open the report.
func (c *collection) headlines() []comparedLine {
	var list []comparedLine
	for _, e := range c.experiments {
		for _, l := range e.lines {
			if l.numbers != nil && l.numbers.Headline > 0 {
				list = append(list, l)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b comparedLine) int { return a.numbers.Headline - b.numbers.Headline })
	return list
}

// asPublished writes a number with the digits that publications give.
func asPublished(x float64) string {
	if x == float64(int64(x)) {
		return harness.Count(int64(x))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// quick lists the experiments of which the quick form was run.
func (c *collection) quick() []string {
	var names []string
	for _, e := range c.experiments {
		if e.origin != nil && e.origin.Quick {
			names = append(names, e.name)
		}
	}
	return names
}

// programs lists the versions that the results are of.
func (c *collection) programs() []string {
	var list []string
	for _, e := range c.experiments {
		v := "of an unrecorded version"
		if e.origin != nil {
			v = e.origin.Version
		}
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// summary counts verdicts; experiments that compare with nothing have no row.
func (c *collection) summary() harness.Table {
	t := harness.Table{Title: "Summary", Columns: harness.Columns("<Experiment")}
	columns := append(slices.Clone(harness.Verdicts), harness.NotCounted)
	for _, v := range columns {
		t.AddColumns(v)
	}
	for _, e := range c.experiments {
		if len(e.lines) == 0 {
			continue
		}
		n := map[string]int64{}
		for _, l := range e.lines {
			if !l.counted() {
				l.verdict = harness.NotCounted
			}
			n[l.verdict]++
		}
		row := []string{e.name}
		for _, v := range columns {
			row = append(row, harness.Count(n[v]))
		}
		t.Add(row)
	}
	return t
}

// Contents lists the parts of the page of a folder of results.
type Contents struct {
	Experiments []ExperimentContents `json:"experiments"`
	Viewer      bool                 `json:"viewer"` // recorded schedules can be looked at
}

// ExperimentContents lists the results of one experiment.
type ExperimentContents struct {
	Name    string   `json:"name"`
	Lines   int      `json:"count"` // published numbers and statements beside ours
	Figures []string `json:"figures"`
}

// Page makes one HTML file of a folder of results, which needs nothing beside it. It
// depends on the files in the folder alone. A folder without any results is an error.
func Page(out string, names []string) ([]byte, *Contents, error) {
	c, err := gather(out, names)
	if err != nil {
		return nil, nil, err
	}
	if len(c.experiments) == 0 {
		return nil, nil, fmt.Errorf("%s: found no results, expected folders like %s that 'dsasched run' writes", out,
			filepath.Join(out, names[0]))
	}
	html, err := c.page()
	if err != nil {
		return nil, nil, err
	}
	contents := &Contents{Viewer: c.recording != nil}
	for _, e := range c.experiments {
		x := ExperimentContents{Name: e.name, Lines: len(e.lines), Figures: []string{}}
		for _, f := range e.figures {
			x.Figures = append(x.Figures, f.Name)
		}
		contents.Experiments = append(contents.Experiments, x)
	}
	return html, contents, nil
}

func (c *collection) page() ([]byte, error) {
	var b bytes.Buffer
	if err := page.Write(&b, c.report()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (c *collection) report() *page.Report {
	parts := c.chapters()
	r := &page.Report{
		Title:     title(parts),
		ByChapter: byChapter(parts),
		Preface: []string{reportPreface, "Program: dsasched " + strings.Join(c.programs(), ", ") +
			". Ratio is ours over the published number, error its distance from 1. Filters and headings of the table sort and select."},
		Verdicts:  harness.Verdicts,
		Recording: c.recording,
	}
	if quick := c.quick(); len(quick) > 0 {
		r.Preface = append(r.Preface, "In their quick forms, which --all does in full: "+strings.Join(quick, ", ")+".")
	}
	for _, h := range c.headlines() {
		l := h.numbers
		r.Headlines = append(r.Headlines, page.Headline{Experiment: l.Experiment, What: capital(h.what), Unit: h.unit,
			Published: h.published, Ours: h.ours, Verdict: h.verdict, Words: l.InWords()})
	}
	for _, e := range c.experiments {
		for _, l := range e.leads {
			if i := slices.IndexFunc(e.figures, func(f page.Figure) bool { return f.Name == l.Figure }); i >= 0 {
				r.Leads = append(r.Leads, page.Lead{Experiment: e.name, Title: l.Title, Sentences: l.Sentences,
					Figure: e.figures[i], First: Chapters[0].Has(e.name)})
			}
		}
	}
	s := c.summary()
	r.Summary = page.Table{Rows: s.Rows, Numbers: true}
	for _, col := range s.Columns {
		r.Summary.Columns = append(r.Summary.Columns, col.Name)
	}
	for _, p := range parts {
		ch := page.Chapter{ID: "chapter-" + strings.ToLower(p.Name), Menu: p.Name, Title: p.Title, Conclusion: p.conclusion()}
		for _, e := range p.of {
			ch.Experiments = append(ch.Experiments, page.Experiment{Name: e.name, Texts: e.texts, Figures: e.figures})
		}
		r.Chapters = append(r.Chapters, ch)
	}
	for _, e := range c.experiments {
		for _, l := range e.lines {
			line := page.Line{Experiment: e.name, What: l.what, Unit: l.unit, Verdict: l.verdict, Remark: l.remark,
				Published: page.Value{Text: l.published}, Ours: page.Value{Text: l.ours}, Ratio: page.Value{Text: l.ratio},
				Error: page.Value{Text: l.error}}
			if n := l.numbers; n != nil {
				line.Published, line.Ours = page.Number(l.published, n.Published), page.Number(l.ours, n.Ours)
				if n.Published != 0 {
					line.Ratio, line.Error = page.Number(l.ratio, harness.Round(n.Ratio())),
						page.Number(l.error, harness.Round(100*(n.Ratio()-1)))
				}
			}
			r.Lines = append(r.Lines, line)
		}
	}
	r.Builds, r.Modules, r.Hardware = c.origins()
	return r
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// origins is the end of the page: a row for all experiments of one origin, the modules and the accelerators.
func (c *collection) origins() (page.Table, []page.Modules, []page.Hardware) {
	var modules []page.Modules
	t := page.Table{Columns: []string{"Experiments", "dsasched", "Commit", "Go", "Solver", "Accelerators", "Seeds"}}
	var list []page.Hardware
	for _, e := range c.experiments {
		row := []string{e.name, "not recorded", "–", "–", "–", "–", "–"}
		if o := e.origin; o != nil {
			commit := o.Revision
			switch {
			case commit == "":
				commit = "not recorded"
			case o.Modified:
				commit += ", with changes"
			}
			var linked, machines, seeds []string
			for _, m := range o.Modules {
				linked = append(linked, m.Path+" "+m.Version)
			}
			if same := slices.IndexFunc(modules, func(m page.Modules) bool { return slices.Equal(m.List, linked) }); same >= 0 {
				modules[same].Experiments += ", " + e.name
			} else if len(linked) > 0 {
				modules = append(modules, page.Modules{Experiments: e.name, List: linked})
			}
			for _, h := range o.Hardware {
				name := h.Name
				if h.YAML == "" {
					name += " (varied)"
				}
				if !slices.Contains(machines, name) {
					machines = append(machines, name)
				}
				x := page.Hardware{Name: h.Name, Hash: h.Hash, YAML: h.YAML}
				if h.YAML != "" && !slices.Contains(list, x) {
					list = append(list, x)
				}
			}
			for _, s := range o.Seeds {
				seeds = append(seeds, string(s))
			}
			or := func(words []string, none string) string {
				if len(words) == 0 {
					return none
				}
				return strings.Join(words, ", ")
			}
			solver := o.Solver
			solver = cmp.Or(solver, "none")
			row = []string{e.name, o.Version, commit, o.Go + " " + o.Platform, solver, or(machines, "none"),
				or(seeds, "no random numbers")}
		}
		// Experiments of the same origin share a row.
		same := slices.IndexFunc(t.Rows, func(r []string) bool { return slices.Equal(r[1:], row[1:]) })
		if same < 0 {
			t.Rows = append(t.Rows, row)
		} else {
			t.Rows[same][0] += ", " + e.name
		}
	}
	slices.SortFunc(list, func(a, b page.Hardware) int {
		return strings.Compare(a.Name+" "+a.Hash, b.Name+" "+b.Hash)
	})
	return t, modules, list
}
