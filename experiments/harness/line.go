package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/plots"
)

// Line is a published number beside ours.
type Line struct {
	Experiment string  `json:"experiment"`
	What       string  `json:"what"`
	Unit       string  `json:"unit"`
	Published  float64 `json:"published"`
	Ours       float64 `json:"ours"`
	// Calibration tells that the number was seen when constants were chosen.
	Calibration bool   `json:"calibration,omitempty"`
	Remark      string `json:"remark,omitempty"`
}

// Ratio is ours over the published number.
func (l Line) Ratio() float64 { return l.Ours / l.Published }

// Verdict is what a reader wants to know first. Within 20 % is what the column of errors
// shows: ours less the published number, over the published one.
func (l Line) Verdict() string {
	switch r := l.Ratio(); {
	case l.Published == 0 && l.Ours == 0, math.Abs(r-1) <= 0.2:
		return "reproduced within 20 %"
	case l.Unit == "x" && l.Ours > 1 == (l.Published > 1):
		return "direction only"
	case l.Published > 0 && r >= 0.5 && r <= 2:
		return "within a factor of two"
	}
	return "not reproduced"
}

// Verdicts in the order of the summary.
var Verdicts = []string{"reproduced within 20 %", "within a factor of two", "direction only", "not reproduced"}

// Within20 is the verdict of the report's best class.
func Within20(published float64) func(float64) bool {
	return func(v float64) bool { return Line{Unit: "x", Published: published, Ours: v}.Verdict() == Verdicts[0] }
}

// gridReport collects the output of a grid experiment.
type Comparison struct {
	md, Text bytes.Buffer
	files    []File
	// Lines are the published numbers beside ours, for the report over all
	// experiments.
	Lines []Line
}

func (b *Comparison) Line(l Line) { b.Lines = append(b.Lines, l) }

func (b *Comparison) Table(t Table) error {
	b.md.WriteString(t.Markdown())
	return t.WriteText(&b.Text)
}

func (b *Comparison) Note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	fmt.Fprintf(&b.Text, "%s\n", s)
	fmt.Fprintf(&b.md, "%s\n\n", EscapeMarkdown(s))
}

// Figure adds a figure in both formats.
func (b *Comparison) Figure(name, title string, f *plots.Figure, err error) error {
	if err != nil {
		return err
	}
	png, err := f.PNG()
	if err != nil {
		return fmt.Errorf("%s.png: %w", name, err)
	}
	svg, err := f.SVG()
	if err != nil {
		return fmt.Errorf("%s.svg: %w", name, err)
	}
	b.files = append(b.files, File{name + ".png", png}, File{name + ".svg", svg})
	fmt.Fprintf(&b.md, "![%s](%s.png)\n\n", title, name)
	return nil
}

// write makes the files that all these experiments have.
func (e Experiment) WriteRows(hardware string, fill func(*Comparison) error, rows []Row) (*Report, error) {
	b := &Comparison{}
	fmt.Fprintf(&b.md, "# %s: %s\n\nReproduces: %s. Accelerator: %s. Program: dsasched %s.\n\n", e.Name, e.Description, e.Paper, hardware, ProgramVersion())
	if err := fill(b); err != nil {
		return nil, err
	}
	for i := range b.Lines {
		b.Lines[i].Experiment = e.Name
		b.Lines[i].Ours, b.Lines[i].Published = Round(b.Lines[i].Ours), Round(b.Lines[i].Published)
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(struct {
		Experiment string `json:"experiment"`
		Paper      string `json:"paper"`
		Hardware   string `json:"hardware"`
		Lines      []Line `json:"published"`
		Rows       []Row  `json:"rows"`
	}{e.Name, e.Paper, hardware, b.Lines, rows}); err != nil {
		return nil, err
	}
	files := []File{{e.Name + ".json", data.Bytes()}, {e.Name + ".md", b.md.Bytes()}, {e.Name + ".csv", RowsCSV(rows)}}
	return &Report{Text: fmt.Sprintf("%s: %s\n\n%s", e.Name, e.Description, b.Text.String()), Files: append(files, b.files...)}, nil
}

// RowsCSV are the rows with what most readers want.
func RowsCSV(rows []Row) []byte {
	out := [][]string{{"model", "hardware", "batch", "variant", "chunk_policy", "batches_per_cluster", "throughput_per_s", "throughput_unit", "latency_s",
		"kernels", "ddr_tensor_writes", "llb_tensor_writes", "l1_tensor_writes", "mme_utilization", "vme_utilization"}}
	for _, r := range rows {
		out = append(out, []string{r.Model, r.Hardware, Count(r.Batch), r.Variant, string(r.ChunkPolicy), Count(r.BatchesPerCluster),
			Exact(r.ThroughputPerSecond), r.Unit, Exact(r.LatencySeconds), Count(r.Kernels), Count(r.Writes.DDR), Count(r.Writes.LLB), Count(r.Writes.L1),
			Exact(r.MMEUtilization), Exact(r.VMEUtilization)})
	}
	return CSVBytes(out)
}
