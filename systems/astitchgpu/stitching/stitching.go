package stitching

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/astitchgpu/fusion"
	"github.com/dsasched/dsasched/systems/astitchgpu/kernels"
	"github.com/dsasched/dsasched/systems/astitchgpu/simt"

	"gonum.org/v1/gonum/stat"
)

// Experiments lists those of the package.
func Experiments() []harness.Experiment {
	return []harness.Experiment{full().kernels(), full().speedup(), ablation(full()), training(), reductions(), barrier()}
}

// paper is the paper that the experiments reproduce.
const paper = "AStitch (ASPLOS 2022)"

// published holds the paper's figures of a network: over XLA (read off a figure), kernels and
// copies of XLA and of AStitch (tables).
type published struct {
	title, network string
	overXLA        float64
	xla, astitch   int
	copies         [2]int
}

var publishedNetworks = []published{
	{"CRNN", "crnn", 1.37, 986, 297, [2]int{406, 388}},
	{"ASR", "asr-encoder", 1.76, 496, 218, [2]int{372, 203}},
	{"BERT", "bert-128", 1.12, 64, 26, [2]int{25, 10}},
	{"Transformer", "transformer", 2.72, 10132, 2578, [2]int{5579, 1474}},
	{"DIEN", "dien", 2.19, 2579, 811, [2]int{628, 422}},
}

const (
	// Published in the text.
	meanOverXLA, largestOverXLA               = 1.84, 2.73
	meanOverTensorFlow, largestOverTensorFlow = 2.37, 4.06
	meanOverTensorRT, largestOverTensorRT     = 2.47, 4.46
	trainingOverTensorFlow, trainingOverXLA   = 1.34, 1.30

	overAnsor = 42.02 / 31.75 // BERT, in ms
)

// cut is the share of kernels that stitching saves.
func (p published) cut() float64 { return 1 - float64(p.astitch)/float64(p.xla) }

// study is which networks are made into kernels by which methods.
type study struct {
	hardware string
	networks []published
	batch    int64
	training bool // steps of it
}

func full() study { return study{"v100-simt", publishedNetworks, 1, false} }

// measured is the result of a cell.
type measured struct {
	Network  string         `json:"network"`
	Method   string         `json:"method"`
	Summary  fusion.Summary `json:"summary"`
	Barriers float64        `json:"barriers_s"` // time at barriers of all blocks
	// Reductions has a row for each shape: kernels with one loop nest alone.
	Reductions []shape `json:"reductions"`
}

// shape sums up the kernels with a row reduction of one shape.
type shape struct {
	Rows        int64   `json:"rows"`
	Cols        int64   `json:"cols"`
	RowsPerTask int64   `json:"rows_per_task"`
	Parts       int64   `json:"parts"`
	Kernels     int     `json:"kernels"`
	Seconds     float64 `json:"seconds"` // of all of them
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
	what := ""
	if s.training {
		what = "-training"
	}
	var cells []harness.Cell
	for _, n := range networks {
		for _, method := range methods {
			cells = append(cells, harness.Cell{
				Key:   fmt.Sprintf("%s-%s%s-%d-%s", s.hardware, n.network, what, s.batch, method),
				Label: n.network + ", " + method,
				Inputs: map[string]any{"hardware": string(text), "network": n.network, "batch": s.batch,
					"dtype": model.F32.String(), "method": method, "training": s.training},
				Run: func(ctx context.Context) (any, error) {
					read := open
					if s.training {
						read = openTraining
					}
					r := bail.Of(kernels.Run(ctx, bail.Of(read(n.network, s.batch, method)), m, method))
					out := measured{Network: n.network, Method: method, Summary: r.Summary}
					for _, k := range r.Kernels {
						out.Barriers += k.Time.Barrier
						if p := k.Groups[0].Mapping; !k.Library && len(k.Groups) == 1 && p.Cols > 1 {
							i := slices.IndexFunc(out.Reductions, func(x shape) bool { return x.Rows == p.Rows && x.Cols == p.Cols })
							if i < 0 {
								i = len(out.Reductions)
								out.Reductions = append(out.Reductions, shape{p.Rows, p.Cols, p.RowsPerTask, p.Parts, 0, 0})
							}
							out.Reductions[i].Kernels++
							out.Reductions[i].Seconds += k.Seconds
						}
					}
					return out, nil
				},
			})
		}
	}
	return cells, nil
}

// byMethods divides results into rows of a network each, and hands them to a report.
func byMethods(methods int, report func(rows [][]measured) (*harness.Report, error)) func([]json.RawMessage) (
	*harness.Report, error) {
	return harness.Of(func(list []measured) (*harness.Report, error) {
		return report(slices.Collect(slices.Chunk(list, methods)))
	})
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
		return &harness.Plan{Cells: cells, Report: byMethods(len(methods),
			func(rows [][]measured) (*harness.Report, error) { return report(plain, rows) })}, nil
	}
	return e
}

func (s study) kernels() harness.Experiment {
	methods := []string{"xla", "tvm", "astitch", "framework"}
	return s.experiment("astitch-kernels", "memory-intensive kernels of XLA, TVM and AStitch",
		"the tables of kernels and of CRNN's DRAM transactions", s.networks, methods,
		func(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
			d := harness.NewDocument(e, s.hardware)
			t := harness.Table{Title: "Memory-intensive kernels", Name: "kernels",
				Columns: harness.Columns("<Network", "Published|XLA|AStitch|cut, %", "Ours|XLA|TVM|AStitch|cut, %")}
			for i, n := range s.networks {
				x, v, a := rows[i][0].Summary, rows[i][1].Summary, rows[i][2].Summary
				cut := 1 - float64(a.MemoryKernels)/float64(x.MemoryKernels)
				t.Add(n.title, n.xla, n.astitch, harness.Percent(n.cut()), x.MemoryKernels, v.MemoryKernels,
					a.MemoryKernels, harness.Percent(cut))
				d.Number("kernels of XLA over AStitch, "+n.title, "x", float64(n.xla)/float64(n.astitch),
					float64(x.MemoryKernels)/float64(a.MemoryKernels))
				d.Given()
				d.Claim("copies that stitching saves, "+n.title, fmt.Sprintf("%d of %d", n.copies[0]-n.copies[1], n.copies[0]),
					"no copies are modelled", "")
				d.Given()
				if n.network == "crnn" {
					d.Number("DRAM transactions written by XLA over AStitch, CRNN", "x", 63.8/16.3,
						float64(x.WriteTransactions)/float64(a.WriteTransactions))
					explain(d, fmt.Sprintf(
						"XLA computes cheap operators again instead of writing them, and what the LSTM's steps pass to the matrix products must be written by both. Without any fusion this CRNN writes %s times what AStitch does, so that no rules of fusion reach the published ratio on it; the published batch, image and precision are unknown",
						harness.Fixed(float64(rows[i][3].Summary.WriteTransactions)/float64(a.WriteTransactions), 2)))
					d.Number("DRAM transactions read by XLA over AStitch, CRNN", "x", 1,
						float64(x.ReadTransactions)/float64(a.ReadTransactions))
					explain(d,
						"what a kernel reads comes from the DRAM here, also what the kernel before it has left in the L2; stitching saves these reads, which a cache would serve")
				}
			}
			d.Table(t)
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
			d.Note("%s", rebuilt)
			d.Note(
				"The paper's copies (memcpy and memset calls) have no counterpart here: it does not say which operators or systems make them. The graph of Fig. 7 is rebuilt from its description: two row reductions, a power in front of a broadcast, additions and a multiplication.")
			return d.Report(harness.Data{Data: rows})
		})
}

const (
	// rebuilt is why the networks' own numbers are not compared.
	rebuilt = "The paper gives no configurations: these networks are rebuilt, and their kernels are others, so that what " +
		"hangs on them is not counted. astitch-speedup compares with the published numbers of kernels and copies."
	causeKernels = "which kernels the networks have is not published beyond their numbers, and no cache stands between them here"
)

// explain says why the last number differs, if it does.
func explain(d *harness.Document, why string) {
	if d.Lines[len(d.Lines)-1].Verdict() != harness.Holds {
		d.Why("%s", why)
		d.Cause(causeKernels)
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

// systems are the methods that stand for a system each; the last is AStitch.
var systems = []struct{ method, title string }{
	{"framework", "TensorFlow"}, {"xla", "XLA"}, {"tensorrt", "TensorRT"}, {"tvm", "TVM"}, {"astitch", "AStitch"},
}

func (s study) speedup() harness.Experiment {
	methods := harness.Each(systems, func(x struct {
		method string
		title  string
	}) string {
		return x.method
	})
	return s.experiment("astitch-speedup", "AStitch over TensorFlow, XLA, TensorRT and TVM", "the figures of inference",
		s.networks, methods,
		func(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
			d := harness.NewDocument(e, s.hardware)
			m, err := simt.Load(s.hardware)
			if err != nil {
				return nil, err
			}
			s.reportTimes(d, rows)
			s.reportCauses(d, m, rows)
			s.reportCounts(d, m, rows)
			d.Note("%s", rebuilt)
			d.Note(
				"TensorFlow is a kernel for each operator of its graph, where a softmax is one and a normalisation several; XLA and TVM fuse by their rules; TensorRT by those that its documentation lists. Library calls are priced alike for all.")
			d.Note("A launch takes %s us in all systems: the paper's figure, about 10 with what the framework does. What a framework's host does beside that, and copies, are not modelled.",
				harness.Fixed(1e6*m.LaunchSeconds, 0))
			return d.Report(harness.Data{Data: rows})
		})
}

// reportTimes has a row for each network with the times of the systems.
func (s study) reportTimes(d *harness.Document, rows [][]measured) {
	last := len(systems) - 1
	t := harness.Table{Title: "Time of an inference at batch 1", Name: "times", Columns: harness.Columns("<Network")}
	for _, x := range systems {
		t.AddColumns("ms|" + x.title)
	}
	for _, x := range systems[:last] {
		t.AddColumns("AStitch over (x)|" + x.title)
	}
	t.AddColumns("Published (x)|XLA")
	gains := make([][]float64, last) // of AStitch over each system
	var names []string
	groups := plots.Groups{Title: "AStitch over other systems; marks: published", YLabel: "Speedup (×)", Line: 1}
	for i, n := range s.networks {
		row := []string{n.title}
		for k := range systems {
			row = append(row, harness.Fixed(1e3*rows[i][k].Summary.Seconds, 2))
		}
		for k := range gains {
			gains[k] = append(gains[k], rows[i][k].Summary.Seconds/rows[i][last].Summary.Seconds)
			row = append(row, harness.Fixed(gains[k][i], 2))
		}
		t.Add(row, harness.Fixed(n.overXLA, 2))
		names = append(names, n.title)
		groups.Marks = append(groups.Marks, plots.GroupMark{Category: i, Series: 1, Value: n.overXLA})
		d.Number("AStitch over XLA, "+n.title, "x", n.overXLA, gains[1][i])
		d.Given()
		if n.network == "bert-128" {
			d.Number("AStitch over Ansor, BERT (ours: over TVM's fusion)", "x", overAnsor, gains[3][i])
			d.Given() // Ansor is not here
		}
	}
	d.Table(t)
	for _, x := range []struct {
		what            string
		published, ours float64
	}{{"XLA, mean", meanOverXLA, stat.Mean(gains[1], nil)}, {"XLA, largest", largestOverXLA, slices.Max(gains[1])},
		{"TensorFlow, mean", meanOverTensorFlow, stat.Mean(gains[0], nil)},
		{"TensorFlow, largest", largestOverTensorFlow, slices.Max(gains[0])},
		{"TensorRT, mean", meanOverTensorRT, stat.Mean(gains[2], nil)},
		{"TensorRT, largest", largestOverTensorRT, slices.Max(gains[2])}} {
		d.Number("AStitch over "+x.what, "x", x.published, x.ours)
		d.Given()
	}
	d.Note("Over TensorFlow launches are nine tenths of the time of a kernel for each operator on networks that are unrolled step by step, where steps have a dozen small operators; the paper's counts for TensorFlow are not known.")
	bars := harness.Each(s.networks, func(n published) float64 { return n.overXLA })
	d.Claim("Order of the gains over XLA", order(names, bars), order(names, gains[1]),
		harness.Agreement(order(names, bars) == order(names, gains[1])))
	d.Given()
	if order(names, bars) != order(names, gains[1]) {
		d.Why(
			"our networks have other sizes and fewer kernels for a step than the published counts imply, most of all Transformer and DIEN; what is left of a gain is then the launches that stitching saves over the time of library calls. With the published counts the order is nearer (table below)")
	}
	others := []string{"TensorFlow", "XLA", "TensorRT"}
	paper := order(others, []float64{meanOverTensorFlow, meanOverXLA, meanOverTensorRT})
	ours := order(others, []float64{stat.Mean(gains[0], nil), stat.Mean(gains[1], nil), stat.Mean(gains[2], nil)})
	d.Claim("Order of the systems by AStitch's mean gain over them", paper, ours, harness.Agreement(paper == ours))
	d.Given()
	if paper != ours {
		d.Why(
			"by its documented fusions TensorRT has about half of TensorFlow's kernels; that the paper's TensorRT is the slower of the two is not explained by kernels")
	}
	for k, x := range systems[:last] {
		groups.Series = append(groups.Series, plots.Series{Name: "over " + x.title, Values: gains[k]})
	}
	groups.Categories = names
	d.Bars("speedup", "AStitch over other systems", groups)
}

// order lists names by falling values.
func order(names []string, values []float64) string {
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Compare(values[slices.Index(names, b)], values[slices.Index(names, a)])
	})
	return strings.Join(sorted, ", ")
}

// reportCauses takes times apart.
func (s study) reportCauses(d *harness.Document, m *simt.Machine, rows [][]measured) {
	t := harness.Table{Title: "Where the time goes", Name: "causes",
		Columns: harness.Columns("<Network", "<System", "Kernels|memory-intensive|library",
			"ms|launches|memory-intensive work|barriers|library work", "Launches, %")}
	for i, n := range s.networks {
		for k, x := range systems {
			r := rows[i][k]
			u := r.Summary
			memory, library := float64(u.MemoryKernels)*m.LaunchSeconds, float64(u.LibraryKernels)*m.LaunchSeconds
			ms := func(v float64) string { return harness.Fixed(1e3*v, 2) }
			t.Add(n.title, x.title, u.MemoryKernels, u.LibraryKernels, ms(memory+library),
				ms(u.MemorySeconds-memory-r.Barriers), ms(r.Barriers), ms(u.LibrarySeconds-library),
				harness.Percent((memory+library)/u.Seconds))
		}
	}
	d.Table(t)
}

// reportCounts holds the gains against those of one launch for each published kernel and copy.
func (s study) reportCounts(d *harness.Document, m *simt.Machine, rows [][]measured) {
	t := harness.Table{Title: "With the published numbers of kernels and copies", Name: "counts",
		Columns: harness.Columns("<Network", "Kernels and copies|XLA|AStitch", "Launches, ms|XLA|AStitch",
			"Library, ms", "AStitch over XLA (x)|so|without\ncopies|published|ours|ours with\ncopies"),
		Notes: []string{
			"A launch for each, and our library calls: inputs are the paper's counts, its launch and the sizes that we assume. Copies stand for memcpy and memset calls, which nothing makes here; ours with copies has a launch for each of the published ones."}}
	var so, bars []float64
	var names []string
	for i, n := range s.networks {
		x, a := rows[i][1].Summary, rows[i][len(systems)-1].Summary
		calls := [2]int{n.xla + n.copies[0], n.astitch + n.copies[1]}
		launches := [2]float64{float64(calls[0]) * m.LaunchSeconds, float64(calls[1]) * m.LaunchSeconds}
		gain := (launches[0] + a.LibrarySeconds) / (launches[1] + a.LibrarySeconds)
		copies := [2]float64{float64(n.copies[0]) * m.LaunchSeconds, float64(n.copies[1]) * m.LaunchSeconds}
		so, bars, names = append(so, gain), append(bars, n.overXLA), append(names, n.title)
		t.Add(n.title, calls[0], calls[1], harness.Fixed(1e3*launches[0], 2), harness.Fixed(1e3*launches[1], 2),
			harness.Fixed(1e3*a.LibrarySeconds, 2), harness.Fixed(gain, 2),
			harness.Fixed((launches[0]-copies[0]+a.LibrarySeconds)/(launches[1]-copies[1]+a.LibrarySeconds), 2),
			harness.Fixed(n.overXLA, 2), harness.Fixed(x.Seconds/a.Seconds, 2),
			harness.Fixed((x.Seconds+copies[0])/(a.Seconds+copies[1]), 2))
		d.Number("AStitch over XLA with the published counts, "+n.title, "x", n.overXLA, gain)
		d.Cause(causeKernels)
	}
	d.Number("AStitch over XLA with the published counts, mean", "x", meanOverXLA, stat.Mean(so, nil))
	d.Given()
	d.Claim("Order of the gains over XLA with the published counts", order(names, bars), order(names, so), "")
	d.Given()
	for _, n := range s.networks {
		if n.network != "crnn" {
			continue
		}
		saved := 1e3 * float64(n.xla+n.copies[0]-n.astitch-n.copies[1]) * m.LaunchSeconds
		d.Number("ms that AStitch saves on CRNN: launches of the published counts alone", "ms",
			steps[0].ms-steps[len(steps)-1].ms, saved)
		d.Given()
	}
	d.Table(t)
}

// steps are the steps of the paper's ablation, in ms.
var steps = []struct {
	method, title string
	ms            float64
}{
	{"xla", "XLA", 23.95}, {"xla-mapping", "+ mapping", 21.98}, {"astitch-unmerged", "+ stitching", 20.45},
	{"astitch", "+ merging", 17.64},
}

// batches of the ablation: where kernels are short, and where they are not.
var batches = []int64{1, 16, 256}

func ablation(s study) harness.Experiment {
	e := harness.Experiment{Name: "astitch-ablation", Description: "what each step of AStitch is worth",
		Paper: paper + ", the table of CRNN's ablation"}
	plain := e
	methods := []string{"framework", "astitch-nearby"}
	for _, x := range steps {
		methods = append(methods, x.method)
	}
	e.Plan = func() (*harness.Plan, error) {
		var cells []harness.Cell
		for _, b := range batches {
			s.batch = b
			more, err := s.cells(s.networks, methods)
			if err != nil {
				return nil, err
			}
			cells = append(cells, more...)
		}
		s.batch = 1
		more, err := s.cells(irregular, methods)
		if err != nil {
			return nil, err
		}
		return &harness.Plan{Cells: append(cells, more...), Report: byMethods(len(methods),
			func(rows [][]measured) (*harness.Report, error) { return s.reportAblation(plain, rows) })}, nil
	}
	return e
}

// reportAblation has the networks at each batch size, then those that are made of one reduction. Of each row of results
// the first is a kernel for each operator, the second AStitch without remote stitching; the steps follow.
func (s study) reportAblation(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
	d := harness.NewDocument(e, s.hardware)
	const first = 2
	last := first + len(steps) - 1
	t := harness.Table{Title: "Time of an inference, step by step", Name: "steps",
		Columns: harness.Columns("<Network", "Batch")}
	for _, x := range steps {
		t.AddColumns("ms|" + x.title)
	}
	t.AddColumns("ms|no remote")
	row := []string{"CRNN, published", ""}
	for _, x := range steps {
		row = append(row, harness.Fixed(x.ms, 2))
	}
	row = append(row, "")
	for _, x := range steps[1:] {
		t.AddColumns("Saved (% of XLA)|" + x.title)
	}
	saved := func(before, now, all float64) float64 { return (before - now) / all }
	groups := plots.Groups{Title: "Time that each step saves", YLabel: "Of XLA's time (%)", Categories: []string{"CRNN, published"}}
	for k := 1; k < len(steps); k++ {
		share := saved(steps[k-1].ms, steps[k].ms, steps[0].ms)
		row = append(row, harness.Percent(share))
		groups.Series = append(groups.Series, plots.Series{Name: steps[k].title, Values: []float64{100 * share}})
	}
	t.Add(row)
	traffic := harness.Table{Title: "DRAM transactions of memory-intensive kernels (millions)", Name: "transactions",
		Columns: harness.Columns("<Network", "Batch"),
		Notes:   []string{"Adapted mappings leave XLA's as they are."}}
	counted := []int{0, first, first + 2, last} // unfused, XLA, stitched, merged
	for _, of := range []string{"Written", "Read"} {
		traffic.AddColumns(of + "|unfused")
		for _, k := range counted[1:] {
			traffic.AddColumns(of + "|" + steps[k-first].title)
		}
	}
	shapes := harness.Table{Title: "Reductions of an irregular shape", Name: "shapes",
		Columns: harness.Columns("<Network", "Batch", "Reductions", "Kernels|packed|split", "<Shape that gains most",
			"us|it gains|all gain")}
	for i, r := range rows {
		var n published
		batch := harness.Count(1)
		if k := i / len(s.networks); k < len(batches) {
			n, batch = s.networks[i%len(s.networks)], harness.Count(batches[k])
		} else {
			n = irregular[i-len(batches)*len(s.networks)]
		}
		all := r[first].Summary.Seconds
		row := []string{n.title, batch}
		for k := first; k <= last; k++ {
			row = append(row, harness.Fixed(1e3*r[k].Summary.Seconds, 2))
		}
		row = append(row, harness.Fixed(1e3*r[1].Summary.Seconds, 2))
		for k := first + 1; k <= last; k++ {
			row = append(row, harness.Percent(saved(r[k-1].Summary.Seconds, r[k].Summary.Seconds, all)))
		}
		t.Add(row)
		if batch == harness.Count(1) {
			groups.Categories = append(groups.Categories, n.title)
			for k := range groups.Series {
				groups.Series[k].Values = append(groups.Series[k].Values,
					100*saved(r[first+k].Summary.Seconds, r[first+k+1].Summary.Seconds, all))
			}
		}
		row = []string{n.title, batch}
		for _, of := range []func(fusion.Summary) int64{
			func(u fusion.Summary) int64 { return u.WriteTransactions },
			func(u fusion.Summary) int64 { return u.ReadTransactions }} {
			for _, k := range counted {
				row = append(row, harness.Significant(float64(of(r[k].Summary))/1e6))
			}
		}
		traffic.Add(row)
		shapes.Add(shapeRow(n.title, batch, r[first], r[first+1]))
		if n.network == "crnn" && batch == harness.Count(1) {
			s.claimShares(d, r[first:])
		}
	}
	d.Table(t, traffic, shapes)
	d.Bars("steps", "What each step of AStitch saves", groups)
	d.Note(
		"Stitching without merging leaves each candidate dominant a group of its own. No remote is the whole method without remote stitching, which the paper does not show by itself. Unfused is a kernel for each operator.")
	d.Note(
		"The last two networks are made here of the paper's two irregular reductions: a product, a normalisation of 750000 rows of 32, and another product; a product that gives 64 rows of 30000 scores, and their softmax. Packed are kernels whose reduction has several rows to a block, split those with several blocks to a row.")
	return d.Report(harness.Data{Data: rows})
}

// claimShares puts CRNN's steps beside the published ones.
func (s study) claimShares(d *harness.Document, r []measured) {
	slower, faster := 0, 0
	gains, ours := make([]float64, len(steps)-1), make([]float64, len(steps)-1)
	names := make([]string, len(steps)-1)
	whole := r[0].Summary.Seconds - r[len(steps)-1].Summary.Seconds
	for k := 1; k < len(steps); k++ {
		switch now, before := r[k].Summary.Seconds, r[k-1].Summary.Seconds; {
		case now < before:
			faster++
		case now > before:
			slower++
		}
		names[k-1] = steps[k].title
		gains[k-1] = (steps[k-1].ms - steps[k].ms) / (steps[0].ms - steps[len(steps)-1].ms)
		ours[k-1] = (r[k-1].Summary.Seconds - r[k].Summary.Seconds) / whole
	}
	d.Claim("CRNN: each step makes it faster", fmt.Sprintf("%d of %d", len(names), len(names)),
		fmt.Sprintf("%d of %d, %d slower", faster, len(names), slower), harness.Agreement(faster == len(names)))
	d.Given()
	for k, name := range names {
		d.Number("share of the gain, CRNN, "+name, "%", 100*gains[k], 100*ours[k])
		d.Given()
		if k == 0 {
			d.Why(
				"this CRNN has one softmax, at its end, at any batch; on a network of 750000 rows of 32 adapted mappings gain more than any other step. Which reductions the paper's CRNN has is not said")
		}
	}
	paper, got := order(names, gains), order(names, ours)
	d.Claim("CRNN: steps by what they save", paper, got, harness.Agreement(paper == got))
	d.Given()
	if paper != got {
		d.Why(
			"stitching saves launches here, and all of them: mapping and merging leave the number of kernels as it is. By the published counts the launches that are saved are worth more than the whole gain (astitch-speedup), yet mapping and merging have three quarters of it; so the paper's steps change the number of kernels where ours do not")
	}
}

// shapeRow has the gain of adapted mappings on a network's reductions.
func shapeRow(title, batch string, plain, adapted measured) []string {
	row := []string{title, batch}
	count, packed, split := 0, 0, 0
	var most shape
	for _, x := range adapted.Reductions {
		count += x.Kernels
		switch {
		case x.Parts > 1:
			split += x.Kernels
		case x.RowsPerTask > 1:
			packed += x.Kernels
		}
		for _, y := range plain.Reductions {
			if y.Rows == x.Rows && y.Cols == x.Cols {
				if x.Seconds = y.Seconds - x.Seconds; x.Seconds > most.Seconds {
					most = x
				}
			}
		}
	}
	name, gain := "none", ""
	if most.Seconds > 0 {
		name = fmt.Sprintf("%s of %s rows of %s", harness.Count(int64(most.Kernels)), harness.Count(most.Rows),
			harness.Count(most.Cols))
		gain = harness.Fixed(1e6*most.Seconds, 1)
	}
	return append(row, harness.Count(int64(count)), harness.Count(int64(packed)), harness.Count(int64(split)), name, gain,
		harness.Fixed(1e6*(plain.Summary.Seconds-adapted.Summary.Seconds), 1))
}

// training compares times of training steps. Networks with convolutions have no rules for
// their gradients, and a decoder that is unrolled token by token is not trained so.
func training() harness.Experiment {
	return study{"v100-simt", []published{publishedNetworks[2], publishedNetworks[4]}, 64, true}.trainingSteps()
}

func (s study) trainingSteps() harness.Experiment {
	methods := []string{"framework", "xla", "astitch"}
	return s.experiment("astitch-training", "AStitch over TensorFlow and XLA on training steps", "the figures of training",
		s.networks, methods,
		func(e harness.Experiment, rows [][]measured) (*harness.Report, error) {
			d := harness.NewDocument(e, s.hardware)
			t := harness.Table{Title: fmt.Sprintf("Time of a training step at batch %d", s.batch), Name: "training",
				Columns: harness.Columns("<Network")}
			names := []string{"TensorFlow", "XLA", "AStitch"}
			for _, of := range []string{"ms", "Memory-intensive kernels"} {
				for _, x := range names {
					t.AddColumns(of + "|" + x)
				}
			}
			t.AddColumns("Library, ms", "AStitch over (x)|TensorFlow|XLA")
			var over [2][]float64
			for i, n := range s.networks {
				row := []string{n.title}
				for _, r := range rows[i] {
					row = append(row, harness.Fixed(1e3*r.Summary.Seconds, 2))
				}
				for _, r := range rows[i] {
					row = append(row, harness.Count(int64(r.Summary.MemoryKernels)))
				}
				row = append(row, harness.Fixed(1e3*rows[i][2].Summary.LibrarySeconds, 2))
				for k := range over {
					over[k] = append(over[k], rows[i][k].Summary.Seconds/rows[i][2].Summary.Seconds)
					row = append(row, harness.Fixed(over[k][i], 2))
				}
				t.Add(row)
			}
			d.Table(t)
			d.Number("training, AStitch over TensorFlow, mean", "x", trainingOverTensorFlow, stat.Mean(over[0], nil))
			d.Given()
			explain(d,
				"nearly all of it is DIEN, whose unrolled steps have a dozen small operators each, and more with their gradients; the paper's networks and batches are not known")
			d.Number("training, AStitch over XLA, mean", "x", trainingOverXLA, stat.Mean(over[1], nil))
			d.Given()
			explain(d, "BERT's step is library calls first of all; the paper's networks and batches are not known")
			d.Note(
				"Gradients are in primitive operators, updates of plain gradient descent; rows of tables that are looked up are not updated. CRNN and ASR have convolutions, whose gradients have no rules here, and the Transformer is unrolled as for inference. The batch is assumed.")
			return d.Report(harness.Data{Data: rows})
		})
}

func openTraining(name string, batch int64, method string) (*model.Graph, error) {
	return kernels.OpenTraining(name, batch, method, network.Options{DType: model.F32})
}

// irregular are networks of the paper's two irregular reductions, each between what a network has before and behind it.
var irregular = []published{{title: "750000 x 32", network: "rows-750000x32"}, {title: "64 x 30000", network: "rows-64x30000"}}

// open reads a network, or makes one of those of irregular.
func open(name string, batch int64, method string) (*model.Graph, error) {
	b := model.NewBuilder(name)
	switch name {
	case irregular[0].network: // features of many items
		const rows, cols = 750000, 32
		weights := func(name string) model.TensorID { return b.Param(name, model.F32, cols, cols) }
		x := b.Op("MatMul", "features", model.Attr{}, b.Input("items", model.F32, rows, cols), weights("features.weight"))
		x = b.Op("LayerNorm", "norm", model.Attr{Axis: 1}, x, b.Param("norm.scale", model.F32, cols),
			b.Param("norm.bias", model.F32, cols))
		b.Output(b.Op("MatMul", "result", model.Attr{}, x, weights("result.weight")))
	case irregular[1].network: // likelihoods over an alphabet
		const rows, hidden, cols = 64, 512, 30000
		x := b.Op("MatMul", "scores", model.Attr{}, b.Input("states", model.F32, rows, hidden),
			b.Param("scores.weight", model.F32, hidden, cols))
		b.Output(b.Op("Softmax", "result", model.Attr{Axis: 1}, x))
	default:
		return kernels.Open(name, batch, method, network.Options{DType: model.F32})
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	return kernels.Expand(g, method)
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

// reductions maps the paper's two reductions.
func reductions() harness.Experiment {
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
					Run:    func(ctx context.Context) (any, error) { return reduce(ctx, m, s[0], s[1]), nil }})
			}
		}
		p.Report = harness.Of(func(list []reduction) (*harness.Report, error) { return reportReductions(plain, list) })
		return p, nil
	}
	return e
}

// reduce maps a row reduction and prices it, as a kernel of one operator.
func reduce(ctx context.Context, m *simt.Machine, rows, cols int64) reduction {
	b := model.NewBuilder("reduction")
	b.Output(b.Op("ReduceSum", "sum", model.Attr{Axes: []int64{1}}, b.Input("x", model.F32, rows, cols)))
	g := bail.Of(b.Build())
	r := reduction{Hardware: m.Name, Rows: rows, Cols: cols, Wave: m.Wave(m.Start())}
	for _, x := range []struct {
		method string
		to     *float64
	}{{"xla", &r.Plain}, {"astitch", &r.Packed}} {
		k := bail.Of(kernels.Run(ctx, g, m, x.method))
		*x.to = k.Summary.Seconds
		r.Adapted = k.Kernels[0].Groups[0].Mapping
	}
	return r
}

func reportReductions(e harness.Experiment, list []reduction) (*harness.Report, error) {
	d := harness.NewDocument(e, simt.Presets()...)
	t := harness.Table{Title: "Row reductions", Name: "reductions",
		Columns: harness.Columns("<Machine", "Rows", "Columns", "Wave", "Rows a task", "Tasks", "a block", "Parts",
			"Blocks", "us|plain|adapted")}
	given := func(what, unit string, published float64, ours int64) { // the paper's own formulas
		d.Number(what, unit, published, float64(ours))
		d.Given()
	}
	for _, r := range list {
		a := r.Adapted
		t.Add(r.Hardware, r.Rows, r.Cols, r.Wave, a.RowsPerTask, a.TaskCount(), a.Tasks, a.Parts, a.Blocks,
			harness.Fixed(1e6*r.Plain, 1), harness.Fixed(1e6*r.Packed, 1))
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
	d.Table(t)
	d.Note(
		"Plain is a block for each row, of as many threads as the row has in whole warps. Times are of the model, not published.")
	return d.Report(harness.Data{Data: list})
}

// barriers are the published times of a barrier over all blocks, in us.
var barriers = []struct {
	blocks int64
	us     float64
}{{20, 2.53}, {40, 2.53}, {60, 2.59}, {80, 2.59}, {100, 2.66}, {120, 2.66}, {140, 2.69}, {160, 2.72}}

// barrier compares the model's barrier with the measured one.
func barrier() harness.Experiment {
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
					us := harness.Each(barriers, func(b struct {
						blocks int64
						us     float64
					}) float64 {
						return 1e6 * m.Barrier(b.blocks)
					})
					return us, nil
				}}}}
		p.Report = func(results []json.RawMessage) (*harness.Report, error) {
			var us []float64
			if err := json.Unmarshal(results[0], &us); err != nil {
				return nil, err
			}
			d := harness.NewDocument(plain, "v100-simt")
			t := harness.Table{Title: "A barrier over all blocks", Name: "barrier",
				Columns: harness.Columns("Blocks", "us|published|ours", "Error, %")}
			for i, b := range barriers {
				t.Add(b.blocks, harness.Fixed(b.us, 2), harness.Fixed(us[i], 2), harness.Fixed(100*(us[i]/b.us-1), 1))
				d.Line(harness.Line{What: fmt.Sprintf("barrier over %d blocks", b.blocks), Unit: "us", Published: b.us, Ours: us[i],
					Calibration: true})
			}
			d.Table(t)
			d.Note(
				"The machine has a straight line through the first and the last point. The table rises by 8 %% in all, so that any line near it is near all points: nothing is predicted.")
			return d.Report(harness.Data{Data: us})
		}
		return p, nil
	}
	return e
}
