package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// Claim is what the paper says of something and what came out here.
type Claim struct {
	Quantity string `json:"quantity"`
	Paper    string `json:"paper"`
	Ours     string `json:"ours"`
	Verdict  string `json:"verdict"`
	Why      string `json:"why,omitempty"`
	// Line tells that it stands among the published numbers, too.
	Line bool `json:"line,omitempty"`
}

// Agreement says in words whether what should be so came out.
func Agreement(same bool) string {
	if same {
		return "as in the paper"
	}
	return "differs"
}

// Document collects a report part by part: for the terminal and as Markdown.
type Document struct {
	experiment Experiment
	text       bytes.Buffer
	md         strings.Builder
	pictures   strings.Builder // the end of md
	Files      []File
	claims     []Claim
	lines      []Line
	notes      []string
}

func NewDocument(e Experiment) *Document { return &Document{experiment: e} }

func (d *Document) Table(t Table) error {
	d.md.WriteString(t.Markdown())
	return t.WriteText(&d.text)
}

// Listing is text whose lines stay as they are.
func (d *Document) Listing(title, lines string) {
	fmt.Fprintf(&d.text, "%s\n%s\n", title, lines)
	fmt.Fprintf(&d.md, "## %s\n\n```\n%s```\n\n", EscapeMarkdown(title), lines)
}

func (d *Document) Claim(quantity, paper, ours, verdict string) {
	d.claims = append(d.claims, Claim{Quantity: quantity, Paper: paper, Ours: ours, Verdict: verdict})
}

// Why says why the last claim differs.
func (d *Document) Why(format string, args ...any) {
	last := &d.claims[len(d.claims)-1]
	last.Why = fmt.Sprintf(format, args...)
	if last.Line {
		d.lines[len(d.lines)-1].Remark = last.Why
	}
}

// Number is a claim of a number, which also goes to the report over all experiments.
func (d *Document) Number(quantity, unit string, published, ours float64) {
	l := Line{Experiment: d.experiment.Name, What: quantity, Unit: unit, Published: Round(published), Ours: Round(ours)}
	d.lines = append(d.lines, l)
	sign := ""
	if unit == "x" {
		sign = "×"
	}
	d.claims = append(d.claims, Claim{Quantity: quantity, Paper: PlainNumber(l.Published) + sign, Ours: PlainNumber(l.Ours) + sign, Verdict: l.Verdict(), Line: true})
}

// PlainNumber writes whole numbers as they are and others as people read them.
func PlainNumber(x float64) string {
	if x == float64(int64(x)) {
		return Count(int64(x))
	}
	return Significant(x)
}

func (d *Document) Note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// Figure adds a drawing, or returns the error of drawing it.
func (d *Document) Figure(name, title string, f *plots.Figure, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	png, err := f.PNG()
	if err != nil {
		return fmt.Errorf("%s.png: %w", name, err)
	}
	svg, err := f.SVG()
	if err != nil {
		return fmt.Errorf("%s.svg: %w", name, err)
	}
	d.Files = append(d.Files, File{name + ".png", png}, File{name + ".svg", svg})
	fmt.Fprintf(&d.pictures, "![%s](%s.png)\n\n", EscapeMarkdown(title), name)
	return nil
}

// Report closes the document. data is what the JSON file holds beside the claims.
func (d *Document) Report(data any) (*Report, error) {
	e := d.experiment
	t := Table{Title: "The paper's claims beside ours", Columns: []Column{
		{Name: "Quantity", Text: true}, {Name: "Paper", Text: true}, {Name: "Ours", Text: true}, {Name: "Verdict", Text: true}}}
	for i, c := range d.claims {
		verdict := c.Verdict
		if c.Why != "" {
			verdict += fmt.Sprintf(" (%d)", i+1)
			t.Notes = append(t.Notes, fmt.Sprintf("(%d) %s: %s.", i+1, c.Quantity, c.Why))
		}
		t.Rows = append(t.Rows, []string{c.Quantity, c.Paper, c.Ours, verdict})
	}
	if len(t.Rows) > 0 {
		if err := d.Table(t); err != nil {
			return nil, err
		}
	}
	if len(d.notes) > 0 {
		fmt.Fprintln(&d.text, "Notes")
		d.md.WriteString("## Notes\n\n")
		for _, n := range d.notes {
			fmt.Fprintf(&d.text, "- %s\n", n)
			fmt.Fprintf(&d.md, "- %s\n", EscapeMarkdown(n))
		}
		d.text.WriteByte('\n')
		d.md.WriteByte('\n')
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Experiment  string   `json:"experiment"`
		Description string   `json:"description"`
		Paper       string   `json:"paper"`
		Program     string   `json:"program_version"`
		Claims      []Claim  `json:"claims"`
		Lines       []Line   `json:"published,omitempty"`
		Notes       []string `json:"notes"`
		Data        any      `json:"data"`
	}{e.Name, e.Description, e.Paper, ProgramVersion(), d.claims, d.lines, d.notes, data})
	if err != nil {
		return nil, err
	}
	md := fmt.Sprintf("# %s: %s\n\nReproduces: %s. Program: dsasched %s.\n\n%s", e.Name, EscapeMarkdown(e.Description), e.Paper, ProgramVersion(), d.md.String())
	if d.pictures.Len() > 0 {
		md += "## Figures\n\n" + d.pictures.String()
	}
	return &Report{Text: d.text.String(), Files: append([]File{
		{e.Name + ".json", b.Bytes()}, {e.Name + ".md", []byte(strings.TrimRight(md, "\n") + "\n")}}, d.Files...)}, nil
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

// open finds the network, the accelerator and the options.
func (s Scheduled) open() (network.Network, *hardware.Spec, scheduler.Options, error) {
	opt := s.Options
	opt.Chunk = s.PerCluster
	spec, err := hardware.Load(s.Hardware)
	if err != nil {
		return network.Network{}, nil, opt, err
	}
	src, err := OpenNetwork(s.Model)
	if s.Raw {
		src.Graph = func(batch int64) (*model.Graph, error) { return network.Raw(s.Model, batch, network.Options{}) }
	}
	return src, spec, opt, err
}

// Cell explains the schedule in a cell of its own: explain makes the result.
func (s Scheduled) Cell(key string, explain func(*scheduler.Result) (any, error)) (Cell, error) {
	src, spec, opt, err := s.open()
	if err != nil {
		return Cell{}, err
	}
	specHash, err := Hash(spec)
	if err != nil {
		return Cell{}, err
	}
	return Cell{
		Key:   key,
		Label: fmt.Sprintf("%s %s", src.Name, s.Variant.Name),
		Inputs: struct {
			Model        string            `json:"model"`
			Raw          bool              `json:"raw"`
			DType        string            `json:"dtype"`
			Hardware     string            `json:"hardware"`
			HardwareHash string            `json:"hardware_sha256"`
			PerCluster   int64             `json:"batches_per_cluster"`
			Variant      scheduler.Recipe  `json:"variant"`
			Options      scheduler.Options `json:"options"`
		}{src.Name, s.Raw, model.F16.String(), spec.Name, specHash, s.PerCluster, s.Variant, opt},
		Run: func(ctx context.Context) (any, error) {
			r, err := scheduler.Run(ctx, src, spec, s.PerCluster*int64(spec.Clusters), s.Variant, opt)
			if err != nil {
				return nil, err
			}
			return explain(r)
		},
	}, nil
}
