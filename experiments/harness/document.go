package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// Claim is a statement of a paper beside the result here.
type Claim struct {
	Quantity string `json:"quantity"`
	Paper    string `json:"paper"`
	Ours     string `json:"ours"`
	Verdict  string `json:"verdict"`
	Why      string `json:"why,omitempty"`
	Cause    string `json:"cause,omitempty"` // see [Line]
	// Line: it is also listed among the published numbers.
	Line bool `json:"line,omitempty"`
}

// Agreement says in words whether what should be so came out.
func Agreement(same bool) string {
	if same {
		return Holds
	}
	return Misses
}

// Document collects a report part by part: for the terminal, as Markdown, as tables in LaTeX and CSV, and as figures.
type Document struct {
	experiment Experiment
	text       bytes.Buffer
	md, tex    strings.Builder
	pictures   strings.Builder // the end of md
	files      []File
	names      map[string]bool // of tables
	claims     []Claim
	// Lines are the published numbers beside ours, for the report over all experiments.
	Lines []Line
	leads []Lead
	// Notes are remarks, which stand below the tables.
	Notes []string
	err   error // the first of a table or figure, for Report
}

// NewDocument begins the report of an experiment on these accelerators.
func NewDocument(e Experiment, accelerators ...string) *Document {
	d := &Document{experiment: e, names: map[string]bool{}}
	fmt.Fprintf(&d.text, "%s: %s\n\n", e.Name, e.Description)
	fmt.Fprintf(&d.md, "# %s: %s\n\nReproduces: %s.", e.Name, EscapeMarkdown(e.Description), e.Paper)
	if len(accelerators) > 0 {
		fmt.Fprintf(&d.md, " Accelerator: %s.", strings.Join(accelerators, ", "))
	}
	fmt.Fprintf(&d.md, " Program: dsasched %s.\n\n", programVersion())
	return d
}

// Table adds tables in all forms. [Document.Report] returns the first error.
func (d *Document) Table(tables ...Table) {
	for _, t := range tables {
		if !plainName.MatchString(t.Name) || d.names[t.Name] {
			panic(fmt.Sprintf("harness: table %q of %s has the name %q, want one of its own", t.Title, d.experiment.Name,
				t.Name))
		}
		d.names[t.Name] = true
		d.tex.WriteString("\n" + t.LaTeX(d.experiment.Name+"-"+t.Name))
		d.md.WriteString(t.Markdown())
		d.File("table-"+t.Name+".csv", t.CSV())
		d.Fail(t.WriteText(&d.text))
	}
}

// Fail makes [Document.Report] return the error, unless there was one before.
func (d *Document) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Listing is text whose lines stay as they are.
func (d *Document) Listing(title, lines string) {
	fmt.Fprintf(&d.text, "%s\n%s\n", title, lines)
	fmt.Fprintf(&d.md, "## %s\n\n```\n%s```\n\n", EscapeMarkdown(title), lines)
}

// List adds paragraphs under a heading, as a list.
func (d *Document) List(title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(&d.text, title)
	fmt.Fprintf(&d.md, "## %s\n\n", EscapeMarkdown(title))
	for _, n := range items {
		fmt.Fprintf(&d.text, "- %s\n", n)
		fmt.Fprintf(&d.md, "- %s\n", EscapeMarkdown(n))
	}
	d.text.WriteByte('\n')
	d.md.WriteByte('\n')
}

// Claim adds what the paper says of something beside what came out here.
func (d *Document) Claim(quantity, paper, ours, verdict string) {
	d.claims = append(d.claims, Claim{Quantity: quantity, Paper: paper, Ours: ours, Verdict: verdict})
}

// Why says why the last claim differs.
func (d *Document) Why(format string, args ...any) {
	last := &d.claims[len(d.claims)-1]
	last.Why = fmt.Sprintf(format, args...)
	if last.Line {
		d.Lines[len(d.Lines)-1].Remark = last.Why
	}
}

// Cause names what a miss of the last claim comes from.
func (d *Document) Cause(name string) {
	last := &d.claims[len(d.claims)-1]
	if last.Cause = name; last.Line {
		d.Lines[len(d.Lines)-1].Cause = name
	}
}

// Given says that the last claim counts for nothing, as [Line.Given] has it.
func (d *Document) Given() {
	last := &d.claims[len(d.claims)-1]
	if last.Verdict = NotCounted; last.Line {
		d.Lines[len(d.Lines)-1].Given = true
	}
}

// Line adds a published number beside ours.
func (d *Document) Line(l Line) {
	l.Experiment, l.Published, l.Ours = d.experiment.Name, Round(l.Published), Round(l.Ours)
	d.Lines = append(d.Lines, l)
}

// Number is a claim of a number, which is a line, too.
func (d *Document) Number(quantity, unit string, published, ours float64) {
	d.Line(Line{What: quantity, Unit: unit, Published: published, Ours: ours})
	l := d.Lines[len(d.Lines)-1]
	sign := ""
	if unit == "x" {
		sign = "×"
	}
	d.claims = append(d.claims, Claim{Quantity: quantity, Paper: PlainNumber(l.Published) + sign,
		Ours: PlainNumber(l.Ours) + sign, Verdict: l.Verdict(), Line: true})
}

// PlainNumber writes whole numbers as they are and others as people read them.
func PlainNumber(x float64) string {
	if x == float64(int64(x)) {
		return Count(int64(x))
	}
	return Significant(x)
}

// Note adds a remark, which stands below the tables.
func (d *Document) Note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// File adds a file to the experiment's folder.
func (d *Document) File(name string, data []byte) { d.files = append(d.files, File{name, data}) }

// Figure adds a drawing in all formats. [Document.Report] returns the first error, that of drawing it included.
func (d *Document) Figure(name, title string, f *plots.Figure, err error) {
	if err != nil {
		d.Fail(fmt.Errorf("%s: %w", name, err))
		return
	}
	for _, x := range []struct {
		ending string
		draw   func() ([]byte, error)
	}{{"png", f.PNG}, {"svg", f.SVG}, {"pdf", f.PDF}} {
		data, err := x.draw()
		if err != nil {
			d.Fail(fmt.Errorf("%s.%s: %w", name, x.ending, err))
		}
		d.File(name+"."+x.ending, data)
	}
	fmt.Fprintf(&d.pictures, "![%s](%s.png)\n\n", EscapeMarkdown(title), name)
}

// Bars adds a figure of [plots.GroupedBars].
func (d *Document) Bars(name, title string, panels ...plots.Groups) {
	f, err := plots.GroupedBars(panels...)
	d.Figure(name, title, f, err)
}

// Curves adds a figure of [plots.Lines].
func (d *Document) Curves(name, title string, panels ...plots.Curves) {
	f, err := plots.Lines(panels...)
	d.Figure(name, title, f, err)
}

// LeadFile is the name of the file that has what an experiment says at the head of the
// report over all experiments, if it says something there.
const LeadFile = "lead.json"

// Lead is a figure at the head of the report over all experiments.
type Lead struct {
	Figure    string   `json:"figure"` // its file's name without the ending
	Title     string   `json:"title"`
	Sentences []string `json:"sentences"`
}

// Lead puts a figure at the head of the report over all experiments, with what it shows.
func (d *Document) Lead(figure, title string, sentences ...string) {
	d.leads = append(d.leads, Lead{figure, title, sentences})
}

// Data is the part of most experiments' JSON files that is their own.
type Data struct {
	Data any `json:"data"`
}

// rowData is the same for experiments that are about rows.
type rowData struct {
	Hardware string `json:"hardware"`
	Rows     []Row  `json:"rows"`
}

// Report closes the document. data is a struct whose fields the JSON file holds beside what all have.
func (d *Document) Report(data any) (*Report, error) {
	e := d.experiment
	t := Table{Title: "The paper's claims beside ours", Name: "claims", Columns: []Column{
		{Name: "Quantity", Text: true}, {Name: "Paper", Text: true}, {Name: "Ours", Text: true},
		{Name: "Verdict", Text: true}}}
	for i, c := range d.claims {
		verdict := c.Verdict
		if c.Why != "" {
			verdict += fmt.Sprintf(" (%d)", i+1)
			t.Notes = append(t.Notes, fmt.Sprintf("(%d) %s: %s.", i+1, c.Quantity, c.Why))
		}
		t.Rows = append(t.Rows, []string{c.Quantity, c.Paper, c.Ours, verdict})
	}
	if len(t.Rows) > 0 {
		d.Table(t)
	}
	if d.err != nil {
		return nil, d.err
	}
	d.List("Notes", d.Notes)
	content, err := objects(struct {
		Experiment  string   `json:"experiment"`
		Description string   `json:"description"`
		Paper       string   `json:"paper"`
		Program     string   `json:"program_version"`
		Claims      []Claim  `json:"claims,omitempty"`
		Lines       []Line   `json:"published,omitempty"`
		Notes       []string `json:"notes"`
	}{e.Name, e.Description, e.Paper, programVersion(), d.claims, d.Lines, d.Notes}, data)
	if err != nil {
		return nil, err
	}
	if d.pictures.Len() > 0 {
		d.md.WriteString("## Figures\n\n" + d.pictures.String())
	}
	files := []File{{e.Name + ".json", content}, {e.Name + ".md", []byte(strings.TrimRight(d.md.String(), "\n") + "\n")}}
	if len(d.leads) > 0 {
		lead, err := json.MarshalIndent(d.leads, "", "  ")
		if err != nil {
			return nil, err
		}
		files = append(files, File{LeadFile, append(lead, '\n')})
	}
	if d.tex.Len() > 0 {
		files = append(files, File{e.Name + ".tex", []byte("% Needs \\usepackage{booktabs,graphicx}.\n" + d.tex.String())})
	}
	return &Report{Text: d.text.String(), Files: append(files, d.files...)}, nil
}

// objects writes the fields of two structs as one JSON object.
func objects(a, b any) ([]byte, error) {
	var parts [2]bytes.Buffer
	for i, v := range []any{a, b} {
		enc := json.NewEncoder(&parts[i])
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			return nil, fmt.Errorf("the results can't be written as JSON: %w", err)
		}
	}
	head, tail := bytes.TrimSuffix(parts[0].Bytes(), []byte("\n}\n")), parts[1].Bytes()
	if !bytes.HasPrefix(tail, []byte("{\n")) {
		return append(head, "\n}\n"...), nil // nothing in b
	}
	return slices.Concat(head, []byte(","), tail[1:]), nil
}

// Scheduled is a schedule that a figure explains.
type Scheduled struct {
	Hardware string
	Model    string
	// PerCluster batch elements on each cluster, all at a time.
	PerCluster int64
	Variant    scheduler.Recipe
	Options    scheduler.Options
	// Raw takes the network as it is in the zoo, batch normalisations and all.
	Raw bool
}

// Cell explains the schedule in a cell of its own: explain makes the result.
func (s Scheduled) Cell(key string, explain func(context.Context, *scheduler.Result) (any, error)) Cell {
	opt := s.Options
	opt.Chunk = s.PerCluster
	spec, specHash := Machine(s.Hardware)
	src := OpenNetwork(s.Model)
	if s.Raw {
		src.Graph = func(batch int64) (*model.Graph, error) { return network.Raw(s.Model, batch, network.Options{}) }
	}
	return Cell{
		Key:   key,
		Label: fmt.Sprintf("%s %s", src.Name, s.Variant.Name),
		Inputs: map[string]any{
			"model": src.Name, "raw": s.Raw, "dtype": model.F16.String(), "hardware": spec.Name,
			"hardware_sha256": specHash, "batches_per_cluster": s.PerCluster, "variant": s.Variant,
			"options": opt,
		},
		Run: func(ctx context.Context) (any, error) {
			r, err := scheduler.Run(ctx, src, spec, s.PerCluster*int64(spec.Clusters), s.Variant, opt)
			if err != nil {
				return nil, err
			}
			return explain(ctx, r)
		},
	}
}
