package stitching

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/internal/fusion"
	"github.com/dsasched/dsasched/internal/harness"
	"github.com/dsasched/dsasched/internal/kernels"
	"github.com/dsasched/dsasched/internal/simt"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"

	"gonum.org/v1/gonum/stat"
)

// paper is the paper that the experiments reproduce.
const paper = "AStitch (ASPLOS 2022)"

// published holds the paper's figures of a network: over XLA (read off a figure), kernels of
// XLA and of AStitch (a table).
type published struct {
	title, network string
	overXLA        float64
	xla, astitch   int
}

var publishedNetworks = []published{
	{"CRNN", "crnn", 1.37, 986, 297},
	{"ASR", "asr-encoder", 1.76, 496, 218},
	{"BERT", "bert-128", 1.12, 64, 26},
	{"Transformer", "transformer", 2.72, 10132, 2578},
	{"DIEN", "dien", 2.19, 2579, 811},
}

const (
	// Published in the text.
	meanOverXLA, largestOverXLA               = 1.84, 2.73
	meanOverTensorFlow, largestOverTensorFlow = 2.37, 4.06
	meanOverTensorRT                          = 2.47

	overAnsor = 42.02 / 31.75 // BERT, in ms
)

// cut is the share of kernels that stitching saves.
func (p published) cut() float64 { return 1 - float64(p.astitch)/float64(p.xla) }

// study is which networks are made into kernels by which methods.
type study struct {
	hardware string
	networks []published
	batch    int64
}

func full() study { return study{"v100-simt", publishedNetworks, 1} }

// measured is the result of a cell.
type measured struct {
	Network string         `json:"network"`
	Method  string         `json:"method"`
	Summary fusion.Summary `json:"summary"`
	Exact   *kernels.Exact `json:"exact,omitempty"`
}

// cells are networks by methods; methods go fastest.
func (s study) cells(networks []published, methods []string) ([]harness.Cell, error) {
	text, err := simt.PresetYAML(s.hardware)
	if err != nil {
		return nil, err
	}
	m, err := simt.Load(s.hardware)
	if err != nil {
		return nil, err
	}
	var cells []harness.Cell
	for _, n := range networks {
		for _, method := range methods {
			cells = append(cells, harness.Cell{
				Key:   fmt.Sprintf("%s-%s-%d-%s", s.hardware, n.network, s.batch, method),
				Label: n.network + ", " + method,
				Inputs: map[string]any{"hardware": string(text), "network": n.network, "batch": s.batch,
					"dtype": model.F32.String(), "method": method},
				Run: func(ctx context.Context) (any, error) {
					g, err := kernels.Open(n.network, s.batch, method, network.Options{DType: model.F32})
					if err != nil {
						return nil, err
					}
					r, err := kernels.Run(ctx, g, m, method)
					if err != nil {
						return nil, err
					}
					if err := ctx.Err(); err != nil {
						return nil, err // half an answer is not kept
					}
					return measured{n.network, method, r.Summary, r.Exact}, nil
				},
			})
		}
	}
	return cells, nil
}

// decode reads results into [network][method].
func decode(results []json.RawMessage, methods int) ([][]measured, error) {
	var out [][]measured
	for i, raw := range results {
		var m measured
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		if i%methods == 0 {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out, nil
}

// experiment is one with cells of networks by methods.
func (s study) experiment(name, description, where string, networks []published, methods []string,
	report func(e harness.Experiment, rows [][]measured) (*harness.Report, error)) harness.Experiment {
	e := harness.Experiment{Name: name, Description: description, Paper: paper + ", " + where}
	plain := e
	e.Plan = func() (*harness.Plan, error) {
		cells, err := s.cells(networks, methods)
		if err != nil {
			return nil, err
		}
		return &harness.Plan{Cells: cells, Report: func(results []json.RawMessage) (*harness.Report, error) {
			rows, err := decode(results, len(methods))
			if err != nil {
				return nil, err
			}
			return report(plain, rows)
		}}, nil
	}
	return e
}

// Kernels counts kernels.
func Kernels() harness.Experiment { return full().kernels() }

func (s study) kernels() harness.Experiment {
	methods := []string{"xla", "tvm", "astitch"}
	return s.experiment("astitch-kernels", "memory-intensive kernels of XLA, TVM and AStitch",
		"the tables of kernels and of CRNN's DRAM transactions", s.networks, methods,
		func(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
			d := harness.NewDocument(e, s.hardware)
			t := harness.Table{Title: "Memory-intensive kernels", Name: "kernels",
				Columns: []harness.Column{{Name: "Network", Text: true},
					{Group: "Published", Name: "XLA"}, {Group: "Published", Name: "AStitch"}, {Group: "Published", Name: "cut, %"},
					{Group: "Ours", Name: "XLA"}, {Group: "Ours", Name: "TVM"}, {Group: "Ours", Name: "AStitch"},
					{Group: "Ours", Name: "cut, %"}}}
			for i, n := range s.networks {
				x, v, a := rows[i][0].Summary, rows[i][1].Summary, rows[i][2].Summary
				cut := 1 - float64(a.MemoryKernels)/float64(x.MemoryKernels)
				t.Rows = append(t.Rows, []string{n.title, harness.Count(int64(n.xla)), harness.Count(int64(n.astitch)),
					harness.Percent(n.cut()),
					harness.Count(int64(x.MemoryKernels)), harness.Count(int64(v.MemoryKernels)),
					harness.Count(int64(a.MemoryKernels)), harness.Percent(cut)})
				d.Number("kernels that stitching saves, "+n.title, "%", 100*n.cut(), 100*cut)
				if n.network == "crnn" {
					d.Number("DRAM transactions written by XLA over AStitch, CRNN", "x", 63.8/16.3,
						float64(x.WriteTransactions)/float64(a.WriteTransactions))
					explain(d,
						"XLA computes cheap operators again instead of writing them, and what the LSTM's steps pass to the matrix products must be written by both; the published batch and precision are unknown")
					d.Number("DRAM transactions read by XLA over AStitch, CRNN", "x", 1,
						float64(x.ReadTransactions)/float64(a.ReadTransactions))
				}
			}
			if err := d.Table(t); err != nil {
				return nil, err
			}
			counts, err := exampleCounts(s.hardware)
			if err != nil {
				return nil, err
			}
			for i, c := range []struct {
				method string
				want   float64
			}{{"XLA", 4}, {"TVM", 3}, {"AStitch", 1}} {
				d.Number("kernels of the paper's example graph (Fig. 7), "+c.method, "kernels", c.want, float64(counts[i]))
				d.Given() // the graph was rebuilt with these in view
			}
			d.Note(
				"The paper's copies (memcpy and memset calls) have no counterpart here. The graph of Fig. 7 is rebuilt from its description: two row reductions, a power in front of a broadcast, additions and a multiplication.")
			return d.Report(harness.Data{Data: rows})
		})
}

// explain says why the last number differs, if it does.
func explain(d *harness.Document, why string) {
	if d.Lines[len(d.Lines)-1].Verdict() != harness.Verdicts[0] {
		d.Why("%s", why)
	}
}

// exampleCounts are the kernels of the paper's example by XLA, TVM and AStitch.
func exampleCounts(hardware string) ([3]int, error) {
	var counts [3]int
	m, err := simt.Load(hardware)
	if err != nil {
		return counts, err
	}
	b := model.NewBuilder("fig7")
	x, y := b.Input("x", model.F32, 2, 128), b.Input("y", model.F32, 2, 128)
	last := model.Attr{Axes: []int64{1}, KeepDims: true}
	r := b.Op("ReduceSum", "reduce.1", last, b.Op("Add", "add.1", model.Attr{}, x, y))
	p := b.Op("Pow", "power.1", model.Attr{}, r, b.Const("two", model.F32, nil, 1))
	r = b.Op("ReduceSum", "reduce.2", last, b.Op("Mul", "multiply.1", model.Attr{}, x, p))
	b.Output(b.Op("Add", "add.2", model.Attr{}, y, r))
	g, err := b.Build()
	if err != nil {
		return counts, err
	}
	for i, method := range []string{"xla", "tvm", "astitch"} {
		r, err := kernels.Run(context.Background(), g, m, method)
		if err != nil {
			return counts, err
		}
		counts[i] = r.Summary.MemoryKernels
	}
	return counts, nil
}

// Speedup compares times.
func Speedup() harness.Experiment { return full().speedup() }

func (s study) speedup() harness.Experiment {
	methods := []string{"xla", "tvm", "astitch", "framework"}
	return s.experiment("astitch-speedup", "AStitch over XLA, TVM and a framework", "the figures of inference",
		s.networks, methods,
		func(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
			d := harness.NewDocument(e, s.hardware)
			t := harness.Table{Title: "Time of an inference at batch 1", Name: "times",
				Columns: []harness.Column{{Name: "Network", Text: true},
					{Group: "ms", Name: "XLA"}, {Group: "ms", Name: "TVM"}, {Group: "ms", Name: "AStitch"},
					{Group: "ms", Name: "of it library"},
					{Group: "Over XLA", Name: "published"}, {Group: "Over XLA", Name: "ours"}, {Group: "Over TVM", Name: "ours"}}}
			alone := harness.Table{Title: "A kernel for each operator, as TensorFlow runs a graph", Name: "framework",
				Columns: []harness.Column{{Name: "Network", Text: true}, {Name: "ms"}, {Name: "Kernels"},
					{Name: "Launches\n(% of the time)"},
					{Name: "AStitch over it"}, {Name: "XLA over it"}},
				Notes: []string{"Without what the host does for each operator, which would make it slower."}}
			m, err := simt.Load(s.hardware)
			if err != nil {
				return nil, err
			}
			var overFramework, overTVM []float64
			var over, bars []float64 // ours and published
			var names []string
			for i, n := range s.networks {
				x, v, a, f := rows[i][0].Summary, rows[i][1].Summary, rows[i][2].Summary, rows[i][3].Summary
				overFramework, overTVM = append(overFramework, f.Seconds/a.Seconds), append(overTVM, v.Seconds/a.Seconds)
				launches := f.MemoryKernels + f.LibraryKernels
				over = append(over, x.Seconds/a.Seconds)
				bars = append(bars, n.overXLA)
				names = append(names, n.title)
				ms := func(v float64) string { return harness.Fixed(1e3*v, 2) }
				t.Rows = append(t.Rows, []string{n.title, ms(x.Seconds), ms(v.Seconds), ms(a.Seconds), ms(a.LibrarySeconds),
					harness.Fixed(n.overXLA, 2), harness.Fixed(x.Seconds/a.Seconds, 2), harness.Fixed(v.Seconds/a.Seconds, 2)})
				alone.Rows = append(alone.Rows, []string{n.title, ms(f.Seconds), harness.Count(int64(launches)),
					harness.Percent(float64(launches) * m.LaunchSeconds / f.Seconds), harness.Fixed(f.Seconds/a.Seconds, 2),
					harness.Fixed(f.Seconds/x.Seconds, 2)})
				d.Number("AStitch over XLA, "+n.title, "x", n.overXLA, x.Seconds/a.Seconds)
				if n.network == "bert-128" {
					d.Number("AStitch over Ansor, BERT (ours: over TVM's fusion)", "x", overAnsor, v.Seconds/a.Seconds)
				}
			}
			if err := d.Table(t); err != nil {
				return nil, err
			}
			if err := d.Table(alone); err != nil {
				return nil, err
			}
			d.Number("AStitch over XLA, mean", "x", meanOverXLA, stat.Mean(over, nil))
			d.Number("AStitch over XLA, largest", "x", largestOverXLA, slices.Max(over))
			d.Number("AStitch over TensorFlow, mean (ours: over a kernel per operator, without the host's time)", "x",
				meanOverTensorFlow, stat.Mean(overFramework, nil))
			d.Number("AStitch over TensorFlow, largest", "x", largestOverTensorFlow, slices.Max(overFramework))
			d.Number("AStitch over TensorRT, mean (ours: over TVM's fusion, whose rules are the nearest)", "x", meanOverTensorRT,
				stat.Mean(overTVM, nil))
			order := func(gains []float64) string {
				sorted := slices.Clone(names)
				slices.SortStableFunc(sorted, func(a, b string) int {
					return cmp.Compare(gains[slices.Index(names, b)], gains[slices.Index(names, a)])
				})
				return strings.Join(sorted, ", ")
			}
			d.Claim("Order of the gains over XLA", order(bars), order(over), harness.Agreement(order(bars) == order(over)))
			if order(bars) != order(over) {
				d.Why(
					"our networks have other sizes and fewer kernels for a step than the published counts imply, most of all Transformer and DIEN; what is left of a gain is then the launches that stitching saves over the time of library calls")
			}
			groups := plots.Groups{Title: "AStitch over XLA; marks: published", YLabel: "Speedup (×)", Categories: names,
				Series: []plots.Series{{Name: "ours", Values: over}}, Line: 1}
			for i, v := range bars {
				groups.Marks = append(groups.Marks, plots.GroupMark{Category: i, Value: v})
			}
			fig, err := plots.GroupedBars(groups)
			if err := d.Figure("speedup", "AStitch over XLA", fig, err); err != nil {
				return nil, err
			}
			d.Note(
				"What a framework's host does for each operator, TensorRT's own fusion and training are not modelled. Library calls take the same time in all methods.")
			return d.Report(harness.Data{Data: rows})
		})
}

// steps are the steps of the paper's ablation, in ms.
var steps = []struct {
	method, title string
	ms            float64
}{
	{"xla", "XLA", 23.95}, {"xla-mapping", "+ mapping", 21.98}, {"astitch-unmerged", "+ stitching", 20.45},
	{"astitch", "+ merging", 17.64},
}

// Ablation takes AStitch apart.
func Ablation() harness.Experiment { return full().ablation() }

func (s study) ablation() harness.Experiment {
	methods := []string{"astitch-nearby"}
	for _, x := range steps {
		methods = append(methods, x.method)
	}
	return s.experiment("astitch-ablation", "what each step of AStitch is worth", "the table of CRNN's ablation",
		s.networks, methods,
		func(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
			d := harness.NewDocument(e, s.hardware)
			t := harness.Table{Title: "Time of an inference, step by step (ms)", Name: "steps",
				Columns: []harness.Column{{Name: "Network", Text: true}}}
			for _, x := range steps {
				t.Columns = append(t.Columns, harness.Column{Name: x.title})
			}
			t.Columns = append(t.Columns, harness.Column{Name: "no remote"})
			row := []string{"CRNN, published"}
			for _, x := range steps {
				row = append(row, harness.Fixed(x.ms, 2))
			}
			t.Rows = append(t.Rows, append(row, ""))
			for i, n := range s.networks {
				row := []string{n.title}
				down := true
				for k := range steps {
					now := rows[i][k+1].Summary.Seconds
					row = append(row, harness.Fixed(1e3*now, 2))
					down = down && (k == 0 || now <= rows[i][k].Summary.Seconds)
				}
				t.Rows = append(t.Rows, append(row, harness.Fixed(1e3*rows[i][0].Summary.Seconds, 2)))
				if n.network != "crnn" {
					continue
				}
				d.Claim("CRNN: no step makes it slower", "yes", map[bool]string{true: "yes", false: "no"}[down],
					harness.Agreement(down))
				whole := rows[i][1].Summary.Seconds - rows[i][len(steps)].Summary.Seconds
				for k := 1; k < len(steps); k++ {
					share := (steps[k-1].ms - steps[k].ms) / (steps[0].ms - steps[len(steps)-1].ms)
					ours := (rows[i][k].Summary.Seconds - rows[i][k+1].Summary.Seconds) / whole
					d.Number("share of the gain, CRNN, "+steps[k].title, "%", 100*share, 100*ours)
					if k == 1 {
						explain(d,
							"this CRNN at batch 1 has no reduction of an irregular shape; adapted mappings change what threads cannot hide, and its kernels are launches first of all")
					}
				}
			}
			if err := d.Table(t); err != nil {
				return nil, err
			}
			d.Note(
				"Stitching without merging leaves each candidate dominant a group of its own. The last column is the whole method without remote stitching, which the paper does not show by itself.")
			return d.Report(harness.Data{Data: rows})
		})
}

// reduction is a row reduction of f32 on a machine.
type reduction struct {
	Hardware string       `json:"hardware"`
	Rows     int64        `json:"rows"`
	Cols     int64        `json:"cols"`
	Wave     int64        `json:"wave"`
	Adapted  simt.Mapping `json:"adapted"`
	Plain    float64      `json:"plain_s"`
	Packed   float64      `json:"adapted_s"`
}

// Reductions maps the paper's two reductions.
func Reductions() harness.Experiment {
	e := harness.Experiment{Name: "astitch-reductions",
		Description: "task packing and splitting on the paper's two row reductions",
		Paper:       paper + ", the two irregular reductions"}
	plain := e
	e.Plan = func() (*harness.Plan, error) {
		p := &harness.Plan{}
		for _, preset := range simt.Presets() {
			text, err := simt.PresetYAML(preset)
			if err != nil {
				return nil, err
			}
			m, err := simt.Load(preset)
			if err != nil {
				return nil, err
			}
			for _, s := range [][2]int64{{750000, 32}, {64, 30000}} {
				p.Cells = append(p.Cells, harness.Cell{Key: fmt.Sprintf("%s-%dx%d", preset, s[0], s[1]),
					Label:  fmt.Sprintf("%d x %d on %s", s[0], s[1], preset),
					Inputs: map[string]any{"hardware": string(text), "rows": s[0], "cols": s[1]},
					Run:    func(ctx context.Context) (any, error) { return reduce(ctx, m, s[0], s[1]) }})
			}
		}
		p.Report = func(results []json.RawMessage) (*harness.Report, error) { return reportReductions(plain, results) }
		return p, nil
	}
	return e
}

// reduce maps a row reduction and prices it, as a kernel of one operator.
func reduce(ctx context.Context, m *simt.Machine, rows, cols int64) (reduction, error) {
	b := model.NewBuilder("reduction")
	b.Output(b.Op("ReduceSum", "sum", model.Attr{Axes: []int64{1}}, b.Input("x", model.F32, rows, cols)))
	g, err := b.Build()
	if err != nil {
		return reduction{}, err
	}
	r := reduction{Hardware: m.Name, Rows: rows, Cols: cols, Wave: m.Wave(m.Start())}
	for _, x := range []struct {
		method string
		to     *float64
	}{{"xla", &r.Plain}, {"astitch", &r.Packed}} {
		k, err := kernels.Run(ctx, g, m, x.method)
		if err != nil {
			return reduction{}, err
		}
		*x.to = k.Summary.Seconds
		r.Adapted = k.Kernels[0].Groups[0].Mapping
	}
	return r, nil
}

func reportReductions(e harness.Experiment, results []json.RawMessage) (*harness.Report, error) {
	d := harness.NewDocument(e, simt.Presets()...)
	t := harness.Table{Title: "Row reductions", Name: "reductions",
		Columns: []harness.Column{{Name: "Machine", Text: true}, {Name: "Rows"}, {Name: "Columns"},
			{Name: "Wave"}, {Name: "Rows a task"}, {Name: "Tasks"}, {Name: "a block"}, {Name: "Parts"}, {Name: "Blocks"},
			{Group: "us", Name: "plain"}, {Group: "us", Name: "adapted"}}}
	given := func(what, unit string, published float64, ours int64) { // the paper's own formulas
		d.Number(what, unit, published, float64(ours))
		d.Given()
	}
	var list []reduction
	for _, raw := range results {
		var r reduction
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, err
		}
		list = append(list, r)
		a := r.Adapted
		t.Rows = append(t.Rows, []string{r.Hardware, harness.Count(r.Rows), harness.Count(r.Cols), harness.Count(r.Wave),
			harness.Count(a.RowsPerTask), harness.Count(a.TaskCount()),
			harness.Count(a.Tasks), harness.Count(a.Parts), harness.Count(a.Blocks), harness.Fixed(1e6*r.Plain, 1),
			harness.Fixed(1e6*r.Packed, 1)})
		if r.Hardware != "v100-simt" {
			if r.Rows == 64 {
				given("blocks of a wave, T4", "blocks", 40, r.Wave)
			}
			continue
		}
		if r.Rows == 64 {
			given("<64, 30000>: parts of a row", "parts", 2, a.Parts)
			given("<64, 30000>: blocks", "blocks", 128, a.Blocks)
			continue
		}
		given("blocks of a wave, V100", "blocks", 160, r.Wave)
		given("<750000, 32>: rows of a task", "rows", 32, a.RowsPerTask)
		given("<750000, 32>: tasks", "tasks", 23438, a.TaskCount())
		given("<750000, 32>: tasks of a block", "tasks", 147, a.Tasks)
	}
	if err := d.Table(t); err != nil {
		return nil, err
	}
	d.Note(
		"Plain is a block for each row, of as many threads as the row has in whole warps. Times are of the model, not published.")
	return d.Report(harness.Data{Data: list})
}

// barriers are the published times of a barrier over all blocks, in us.
var barriers = []struct {
	blocks int64
	us     float64
}{{20, 2.53}, {40, 2.53}, {60, 2.59}, {80, 2.59}, {100, 2.66}, {120, 2.66}, {140, 2.69}, {160, 2.72}}

// Barrier compares the model's barrier with the measured one.
func Barrier() harness.Experiment {
	e := harness.Experiment{Name: "astitch-barrier", Description: "a barrier over all blocks of a kernel",
		Paper: paper + ", the table of the global barrier"}
	plain := e
	e.Plan = func() (*harness.Plan, error) {
		text, err := simt.PresetYAML("v100-simt")
		if err != nil {
			return nil, err
		}
		m, err := simt.Load("v100-simt")
		if err != nil {
			return nil, err
		}
		p := &harness.Plan{Cells: []harness.Cell{
			{Key: "v100-simt", Label: "v100-simt", Inputs: map[string]any{"hardware": string(text)},
				Run: func(context.Context) (any, error) {
					var us []float64
					for _, b := range barriers {
						us = append(us, 1e6*m.Barrier(b.blocks))
					}
					return us, nil
				}}}}
		p.Report = func(results []json.RawMessage) (*harness.Report, error) {
			var us []float64
			if err := json.Unmarshal(results[0], &us); err != nil {
				return nil, err
			}
			d := harness.NewDocument(plain, "v100-simt")
			t := harness.Table{Title: "A barrier over all blocks", Name: "barrier",
				Columns: []harness.Column{{Name: "Blocks"}, {Group: "us", Name: "published"}, {Group: "us", Name: "ours"},
					{Name: "Error, %"}}}
			for i, b := range barriers {
				t.Rows = append(t.Rows, []string{harness.Count(b.blocks), harness.Fixed(b.us, 2), harness.Fixed(us[i], 2),
					harness.Fixed(100*(us[i]/b.us-1), 1)})
				d.Line(harness.Line{What: fmt.Sprintf("barrier over %d blocks", b.blocks), Unit: "us", Published: b.us, Ours: us[i],
					Calibration: true})
			}
			if err := d.Table(t); err != nil {
				return nil, err
			}
			d.Note(
				"The machine has a straight line through the first and the last point. The table rises by 8 %% in all, so that any line near it is near all points: nothing is predicted.")
			return d.Report(harness.Data{Data: us})
		}
		return p, nil
	}
	return e
}
