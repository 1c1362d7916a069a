package experiments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
)

// Configuration is one of the paper's ten, A to J, with the network that stands
// for it here.
type Configuration struct {
	PublishedModel
	Network string // of the zoo
	// Doubt says why the published throughput of TVM is not believed; empty if it is.
	Doubt string
}

// standIns are the networks of the zoo for the paper's.
var standIns = map[string]string{
	"A": "resnet50", "B": "bert-128", "C": "bert-256", "D": "bert-384", "E": "bert-512",
	"F": "dlrm", "G": "mobilenetv2", "H": "vit-b16", "I": "densenet121", "J": "conformer",
}

// doubts: published throughputs that no machine of this kind would show.
var doubts = map[string]string{
	"D": "36 sentences/s are nine times slower than BERT-512 with more work; TVM would have to run BERT-384 at 1.3 TMAC/s and BERT-512 at 15.7",
	"H": "40 images/s mean 0.7 TMAC/s, a seventh of what the same TVM shows on BERT-128 with the same kinds of layers",
}

// Configurations lists A to J.
func Configurations() []Configuration {
	var list []Configuration
	for _, m := range PublishedModels {
		list = append(list, Configuration{m, standIns[m.Label], doubts[m.Label]})
	}
	return list
}

// paperChunk is the batches per cluster of the paper's Table 2 for a variant. Whatever
// does not split works like TVM.
func (c Configuration) paperChunk(v scheduler.Recipe) int64 {
	if v.Groups == scheduler.Algorithm2 {
		return c.GraphTurboBatchesPerCluster
	}
	return c.TVMBatchesPerCluster
}

// grid is an experiment on rows of configurations.
type grid struct {
	name, description, paper string
	hardware                 string
	variants                 []string
	policies                 []ChunkPolicy
	report                   func(rows gridRows, b *gridReport) error
}

// gridRows finds a row.
type gridRows map[string]Row

func gridKey(network string, batch int64, variant string, p ChunkPolicy) string {
	return fmt.Sprintf("%s %d %s %s", network, batch, variant, p)
}

func (g gridRows) at(c Configuration, variant string, p ChunkPolicy) Row {
	return g[gridKey(c.Network, c.BatchSize, variant, p)]
}

// gridReport collects the output of a grid experiment.
type gridReport struct {
	md, text bytes.Buffer
	files    []file
	// lines are the published numbers beside ours, for the report over all
	// experiments.
	lines []Line
}

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

func (b *gridReport) line(l Line) { b.lines = append(b.lines, l) }

func (b *gridReport) table(t table) error {
	b.md.WriteString(t.markdown())
	return t.writeText(&b.text)
}

func (b *gridReport) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	fmt.Fprintf(&b.text, "%s\n", s)
	fmt.Fprintf(&b.md, "%s\n\n", escapeMarkdown(s))
}

// figure adds a figure in both formats.
func (b *gridReport) figure(name, title string, f *plots.Figure, err error) error {
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
	b.files = append(b.files, file{name + ".png", png}, file{name + ".svg", svg})
	fmt.Fprintf(&b.md, "![%s](%s.png)\n\n", title, name)
	return nil
}

func (g grid) experiment() Experiment {
	return Experiment{Name: g.name, Description: g.description, Paper: g.paper, plan: g.plan}
}

func (g grid) plan() (*plan, error) {
	spec, err := hardware.Load(g.hardware)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	for _, c := range Configurations() {
		src, err := openNetwork(c.Network)
		if err != nil {
			return nil, err
		}
		for _, name := range g.variants {
			v, err := scheduler.Lookup(name)
			if err != nil {
				return nil, err
			}
			for _, policy := range g.policies {
				chunk := int64(0)
				if policy == PaperChunks {
					chunk = c.paperChunk(v)
				}
				cell, err := rowCell(src, spec, c.BatchSize, chunk, v, policy, c.Unit)
				if err != nil {
					return nil, err
				}
				p.cells = append(p.cells, cell)
			}
		}
	}
	p.report = func(results []json.RawMessage) (*report, error) {
		rows, err := decodeRows(results)
		if err != nil {
			return nil, err
		}
		m := gridRows{}
		for _, r := range rows {
			m[gridKey(r.Model, r.Batch, r.Variant, r.ChunkPolicy)] = r
		}
		return g.write(func(b *gridReport) error { return g.report(m, b) }, rows)
	}
	return p, nil
}

// write makes the files that all these experiments have.
func (g grid) write(fill func(*gridReport) error, rows []Row) (*report, error) {
	b := &gridReport{}
	fmt.Fprintf(&b.md, "# %s: %s\n\nReproduces: %s. Accelerator: %s. Program: dsasched %s.\n\n", g.name, g.description, g.paper, g.hardware, programVersion())
	if err := fill(b); err != nil {
		return nil, err
	}
	for i := range b.lines {
		b.lines[i].Experiment = g.name
		b.lines[i].Ours, b.lines[i].Published = round(b.lines[i].Ours), round(b.lines[i].Published)
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
	}{g.name, g.paper, g.hardware, b.lines, rows}); err != nil {
		return nil, err
	}
	files := []file{{g.name + ".json", data.Bytes()}, {g.name + ".md", b.md.Bytes()}, {g.name + ".csv", rowsCSV(rows)}}
	return &report{text: fmt.Sprintf("%s: %s\n\n%s", g.name, g.description, b.text.String()), files: append(files, b.files...)}, nil
}

// rowsCSV are the rows with what most readers want.
func rowsCSV(rows []Row) []byte {
	out := [][]string{{"model", "hardware", "batch", "variant", "chunk_policy", "batches_per_cluster", "throughput_per_s", "throughput_unit", "latency_s",
		"kernels", "ddr_tensor_writes", "llb_tensor_writes", "l1_tensor_writes", "mme_utilization", "vme_utilization"}}
	for _, r := range rows {
		out = append(out, []string{r.Model, r.Hardware, count(r.Batch), r.Variant, string(r.ChunkPolicy), count(r.BatchesPerCluster),
			exact(r.ThroughputPerSecond), r.Unit, exact(r.LatencySeconds), count(r.Kernels), count(r.Writes.DDR), count(r.Writes.LLB), count(r.Writes.L1),
			exact(r.MMEUtilization), exact(r.VMEUtilization)})
	}
	return csvBytes(out)
}

func arithmetic(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func geometric(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += math.Log(x)
	}
	return math.Exp(s / float64(len(v)))
}

// means are the arithmetic and the geometric mean over the configurations, over all
// and over those that are not doubted.
func means(of func(Configuration) float64) (all, plausible struct{ Arithmetic, Geometric float64 }) {
	var a, p []float64
	for _, c := range Configurations() {
		v := of(c)
		a = append(a, v)
		if c.Doubt == "" {
			p = append(p, v)
		}
	}
	all.Arithmetic, all.Geometric = arithmetic(a), geometric(a)
	plausible.Arithmetic, plausible.Geometric = arithmetic(p), geometric(p)
	return all, plausible
}

// factors are the larger over the smaller of each pair.
func factors(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = max(a[i]/b[i], b[i]/a[i])
	}
	return list
}

// spearman is the rank correlation of two lists; ties share their mean rank.
func spearman(a, b []float64) float64 {
	ranks := func(v []float64) []float64 {
		order := make([]int, len(v))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(v[i], v[j]) })
		r := make([]float64, len(v))
		for i := 0; i < len(order); {
			j := i
			for j < len(order) && v[order[j]] == v[order[i]] {
				j++
			}
			for k := i; k < j; k++ {
				r[order[k]] = float64(i+j-1) / 2
			}
			i = j
		}
		return r
	}
	x, y := ranks(a), ranks(b)
	mx, my := arithmetic(x), arithmetic(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

// labels are the configurations as figures name them.
func labels(extra ...string) []string {
	var list []string
	for _, c := range Configurations() {
		list = append(list, c.Label+"\n"+strings.TrimSuffix(c.Network, "121"))
	}
	return append(list, extra...)
}

func pick(of func(Configuration) float64, extra ...float64) []float64 {
	var list []float64
	for _, c := range Configurations() {
		list = append(list, of(c))
	}
	return append(list, extra...)
}
