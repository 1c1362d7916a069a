package experiments

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

// claim is what the paper says of something and what came out here.
type claim struct {
	Quantity string `json:"quantity"`
	Paper    string `json:"paper"`
	Ours     string `json:"ours"`
	Verdict  string `json:"verdict"`
	Why      string `json:"why,omitempty"`
	// Line tells that it stands among the published numbers, too.
	Line bool `json:"line,omitempty"`
}

// agreement says in words whether what should be so came out.
func agreement(same bool) string {
	if same {
		return "as in the paper"
	}
	return "differs"
}

// document collects a report part by part: for the terminal and as Markdown.
type document struct {
	experiment Experiment
	text       bytes.Buffer
	md         strings.Builder
	pictures   strings.Builder // the end of md
	files      []file
	claims     []claim
	lines      []Line
	notes      []string
}

func newDocument(e Experiment) *document { return &document{experiment: e} }

func (d *document) table(t table) error {
	d.md.WriteString(t.markdown())
	return t.writeText(&d.text)
}

// listing is text whose lines stay as they are.
func (d *document) listing(title, lines string) {
	fmt.Fprintf(&d.text, "%s\n%s\n", title, lines)
	fmt.Fprintf(&d.md, "## %s\n\n```\n%s```\n\n", escapeMarkdown(title), lines)
}

func (d *document) claim(quantity, paper, ours, verdict string) {
	d.claims = append(d.claims, claim{Quantity: quantity, Paper: paper, Ours: ours, Verdict: verdict})
}

// why says why the last claim differs.
func (d *document) why(format string, args ...any) {
	last := &d.claims[len(d.claims)-1]
	last.Why = fmt.Sprintf(format, args...)
	if last.Line {
		d.lines[len(d.lines)-1].Remark = last.Why
	}
}

// number is a claim of a number, which also goes to the report over all experiments.
func (d *document) number(quantity, unit string, published, ours float64) {
	l := Line{Experiment: d.experiment.Name, What: quantity, Unit: unit, Published: round(published), Ours: round(ours)}
	d.lines = append(d.lines, l)
	sign := ""
	if unit == "x" {
		sign = "×"
	}
	d.claims = append(d.claims, claim{Quantity: quantity, Paper: plainNumber(l.Published) + sign, Ours: plainNumber(l.Ours) + sign, Verdict: l.Verdict(), Line: true})
}

// plainNumber writes whole numbers as they are and others as people read them.
func plainNumber(x float64) string {
	if x == float64(int64(x)) {
		return count(int64(x))
	}
	return significant(x)
}

func (d *document) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// figure adds a drawing, or returns the error of drawing it.
func (d *document) figure(name, title string, f *plots.Figure, err error) error {
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
	d.files = append(d.files, file{name + ".png", png}, file{name + ".svg", svg})
	fmt.Fprintf(&d.pictures, "![%s](%s.png)\n\n", escapeMarkdown(title), name)
	return nil
}

// report closes the document. data is what the JSON file holds beside the claims.
func (d *document) report(data any) (*report, error) {
	e := d.experiment
	t := table{title: "The paper's claims beside ours", columns: []column{
		{name: "Quantity", text: true}, {name: "Paper", text: true}, {name: "Ours", text: true}, {name: "Verdict", text: true}}}
	for i, c := range d.claims {
		verdict := c.Verdict
		if c.Why != "" {
			verdict += fmt.Sprintf(" (%d)", i+1)
			t.notes = append(t.notes, fmt.Sprintf("(%d) %s: %s.", i+1, c.Quantity, c.Why))
		}
		t.rows = append(t.rows, []string{c.Quantity, c.Paper, c.Ours, verdict})
	}
	if len(t.rows) > 0 {
		if err := d.table(t); err != nil {
			return nil, err
		}
	}
	if len(d.notes) > 0 {
		fmt.Fprintln(&d.text, "Notes")
		d.md.WriteString("## Notes\n\n")
		for _, n := range d.notes {
			fmt.Fprintf(&d.text, "- %s\n", n)
			fmt.Fprintf(&d.md, "- %s\n", escapeMarkdown(n))
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
		Claims      []claim  `json:"claims"`
		Lines       []Line   `json:"published,omitempty"`
		Notes       []string `json:"notes"`
		Data        any      `json:"data"`
	}{e.Name, e.Description, e.Paper, programVersion(), d.claims, d.lines, d.notes, data})
	if err != nil {
		return nil, err
	}
	md := fmt.Sprintf("# %s: %s\n\nReproduces: %s. Program: dsasched %s.\n\n%s", e.Name, escapeMarkdown(e.Description), e.Paper, programVersion(), d.md.String())
	if d.pictures.Len() > 0 {
		md += "## Figures\n\n" + d.pictures.String()
	}
	return &report{text: d.text.String(), files: append([]file{
		{e.Name + ".json", b.Bytes()}, {e.Name + ".md", []byte(strings.TrimRight(md, "\n") + "\n")}}, d.files...)}, nil
}

// scheduled is a schedule that a figure explains.
type scheduled struct {
	hardware string
	model    string
	// perCluster batch elements on each cluster, all at a time.
	perCluster int64
	variant    scheduler.Recipe
	options    scheduler.Options
	// raw takes the network as it is in the zoo, batch normalisations and all.
	raw bool
}

// open finds the network, the accelerator and the options.
func (s scheduled) open() (network.Network, *hardware.Spec, scheduler.Options, error) {
	opt := s.options
	opt.Chunk = s.perCluster
	spec, err := hardware.Load(s.hardware)
	if err != nil {
		return network.Network{}, nil, opt, err
	}
	src, err := openNetwork(s.model)
	if s.raw {
		src.Graph = func(batch int64) (*model.Graph, error) { return network.Raw(s.model, batch, network.Options{}) }
	}
	return src, spec, opt, err
}

// cell explains the schedule in a cell of its own: explain makes the result.
func (s scheduled) cell(key string, explain func(*scheduler.Result) (any, error)) (cell, error) {
	src, spec, opt, err := s.open()
	if err != nil {
		return cell{}, err
	}
	specHash, err := hashOf(spec)
	if err != nil {
		return cell{}, err
	}
	return cell{
		key:   key,
		label: fmt.Sprintf("%s %s", src.Name, s.variant.Name),
		inputs: struct {
			Model        string            `json:"model"`
			Raw          bool              `json:"raw"`
			DType        string            `json:"dtype"`
			Hardware     string            `json:"hardware"`
			HardwareHash string            `json:"hardware_sha256"`
			PerCluster   int64             `json:"batches_per_cluster"`
			Variant      scheduler.Recipe  `json:"variant"`
			Options      scheduler.Options `json:"options"`
		}{src.Name, s.raw, model.F16.String(), spec.Name, specHash, s.perCluster, s.variant, opt},
		run: func(ctx context.Context) (any, error) {
			r, err := scheduler.Run(ctx, src, spec, s.perCluster*int64(spec.Clusters), s.variant, opt)
			if err != nil {
				return nil, err
			}
			return explain(r)
		},
	}, nil
}
