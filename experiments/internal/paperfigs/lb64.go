package paperfigs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"gonum.org/v1/gonum/stat"
)

// localBuffers asks which size of the L1 the paper's results can be of: it gives the
// L1 64 KB, the vendor 1 MiB and 0.25 MiB for weights. All that shows it is made on
// both machines with the same decisions.
type localBuffers struct {
	machines []string // the vendor's, and the paper's
	network  string   // whose factors are compared
	images   []int64  // per cluster, for the factors
	variants []string
	steps    []string // of the breakdown, between the first and the last variant
	stepsOf  []string // labels of the configurations for which they are made
}

func lb64() localBuffers {
	return localBuffers{[]string{"stcp920", "stcp920-paper"}, "resnet50", []int64{8, 16},
		[]string{"tvm", "astitch", "cross-layer"}, []string{"llb", "l1", "ordering"}, []string{"B"}}
}

func (e localBuffers) variantsOf(c literature.Configuration) []string {
	if slices.Contains(e.stepsOf, c.Label) {
		return append(slices.Clone(e.variants), e.steps...)
	}
	return e.variants
}

// publishedFactors are the factors of the paper's four stages (§2.1), which the
// vendor's guide has for its partition of ResNet-50, too.
var publishedFactors = []int64{8, 4, 2, 1}

func (e localBuffers) experiment() harness.Experiment {
	return harness.Experiment{Name: "lb64",
		Description: "the paper's results with 64 KB of local buffer and with the vendor's 1.25 MiB: which can they be of?",
		Paper:       "GraphTurbo (OSDI 2023), §5.1: \"LB: 64 KB L1\"; Table 3 and the factors of Fig. 3", Plan: e.plan}
}

// fitted is a row, or why there is none.
type fitted struct {
	Row   *harness.Row `json:"row,omitempty"`
	Error string       `json:"error,omitempty"`
}

// tolerant makes a machine that is too small a result of a cell.
func tolerant(c harness.Cell) harness.Cell {
	run := c.Run
	c.Run = func(ctx context.Context) (any, error) {
		result, err := run(ctx)
		if harness.DoesNotFit(err) {
			return fitted{Error: err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		row := result.(harness.Row)
		return fitted{Row: &row}, nil
	}
	c.Shared = false
	return c
}

// partition is the grouping of a network for some images per cluster.
type partition struct {
	Hardware string      `json:"hardware"`
	Images   int64       `json:"images_per_cluster"`
	Groups   []partGroup `json:"groups"`
}

type partGroup struct {
	Factor    int64    `json:"factor"`
	Operators int      `json:"operators"`
	First     string   `json:"first_operator"`
	Last      string   `json:"last_operator"`
	Stages    []string `json:"stages"`
}

func (p partition) factors() []int64 {
	return harness.Each(p.Groups, func(g partGroup) int64 { return g.Factor })
}

func (e localBuffers) plan() (*harness.Plan, error) {
	p := &harness.Plan{}
	configurations := literature.Configurations()
	for i, name := range e.machines {
		spec, specHash := harness.Machine(name)
		turbo := harness.Recipe("cross-layer")
		src := harness.OpenNetwork(e.network)
		for _, images := range e.images {
			p.Cells = append(p.Cells, harness.Cell{
				Key: fmt.Sprintf("groups-%s-%d", spec.Name, images),
				Inputs: map[string]any{
					"model": e.network, "hardware_sha256": specHash, "images_per_cluster": images,
					"variant": turbo,
				},
				Run: func(ctx context.Context) (any, error) {
					g, err := src.Graph(images)
					if err != nil {
						return nil, err
					}
					s, err := turbo.Schedule(ctx, g, spec, scheduler.Options{})
					if err != nil {
						return nil, err
					}
					names, of := stagesOf(g)
					part := partition{Hardware: spec.Name, Images: images}
					for _, sg := range s.Grouping.Groups {
						x := partGroup{Factor: sg.Factor(), Operators: len(sg.Ops), First: g.Op(sg.Ops[0]).Name,
							Last: g.Op(sg.Ops[len(sg.Ops)-1]).Name}
						for _, op := range sg.Ops {
							if k, ok := of[op]; ok && !slices.Contains(x.Stages, names[k]) {
								x.Stages = append(x.Stages, names[k])
							}
						}
						part.Groups = append(part.Groups, x)
					}
					return part, nil
				},
			})
		}
		for _, c := range configurations {
			src := harness.OpenNetwork(c.Network)
			for _, name := range e.variantsOf(c) {
				v := harness.Recipe(name)
				cell := harness.RowCell(src, model.F16, spec, c.BatchSize, v, scheduler.Options{Chunk: c.PaperChunk(v)},
					harness.PaperChunks, c.Unit)
				if i > 0 { // all experiments use the first machine and have the same cells
					cell = tolerant(cell)
				}
				p.Cells = append(p.Cells, cell)
			}
		}
	}
	p.Report = func(results []json.RawMessage) (*harness.Report, error) { return e.decode(results) }
	return p, nil
}

// l1Results are the results of one machine.
type l1Results struct {
	Hardware   string            `json:"hardware"`
	Partitions []partition       `json:"partitions"`
	Rows       []harness.Row     `json:"rows"`
	Errors     map[string]string `json:"errors,omitempty"` // by network and variant
}

func (r l1Results) at(c literature.Configuration, variant string) (harness.Row, bool) {
	for _, row := range r.Rows {
		if row.Model == c.Network && row.Variant == variant {
			return row, true
		}
	}
	return harness.Row{}, false
}

// meanRatio is the mean of the ratio of two variants' throughputs over the
// configurations that have both, and their number.
func (r l1Results) meanRatio(to, from string) (float64, int) {
	var list []float64
	for _, c := range literature.Configurations() {
		x, ok1 := r.at(c, to)
		y, ok2 := r.at(c, from)
		if ok1 && ok2 {
			list = append(list, x.ThroughputPerSecond/y.ThroughputPerSecond)
		}
	}
	if len(list) == 0 {
		return 0, 0
	}
	return stat.Mean(list, nil), len(list)
}

// hits counts the cells of Table 3 of a method within 20 % of the published.
func (r l1Results) hits(variant string, published func(literature.Writes) harness.Levels) (hits, cells int) {
	for _, c := range literature.Configurations() {
		row, ok := r.at(c, variant)
		w := published(literature.WritesOf(c.Label))
		for _, l := range harness.WriteLevels {
			cells++
			line := harness.Line{Unit: "tensors", Published: float64(l.Of(w)), Ours: float64(l.Of(row.Writes))}
			if ok && line.Verdict() == harness.Verdicts[0] {
				hits++
			}
		}
	}
	return hits, cells
}

func (e localBuffers) decode(results []json.RawMessage) (*harness.Report, error) {
	var all []l1Results
	read := func(v any) error {
		err := json.Unmarshal(results[0], v)
		results = results[1:]
		if err != nil {
			return fmt.Errorf("a result can't be read: %w", err)
		}
		return nil
	}
	for i, name := range e.machines {
		r := l1Results{Hardware: name, Errors: map[string]string{}}
		for range e.images {
			var p partition
			if err := read(&p); err != nil {
				return nil, err
			}
			r.Partitions = append(r.Partitions, p)
		}
		for _, c := range literature.Configurations() {
			for _, v := range e.variantsOf(c) {
				var f fitted
				var err error
				if i == 0 {
					f.Row = &harness.Row{}
					err = read(f.Row)
				} else {
					err = read(&f)
				}
				if err != nil {
					return nil, err
				}
				if f.Row == nil {
					r.Errors[c.Network+" "+v] = f.Error
					continue
				}
				r.Rows = append(r.Rows, *f.Row)
			}
		}
		all = append(all, r)
	}
	return e.report(all)
}

func numbersOf(list []int64) string {
	s := harness.Each(list, harness.Count)
	return strings.Join(s, ", ")
}

// runs writes a list in which the same number follows itself: 16 (27 times), 8. Of a
// long list it gives the range.
func runs(list []int64) string {
	if len(list) > 12 {
		return fmt.Sprintf("%d to %d", slices.Min(list), slices.Max(list))
	}
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j] == list[i] {
			j++
		}
		s := harness.Count(list[i])
		if j-i > 1 {
			s += fmt.Sprintf(" (%d times)", j-i)
		}
		parts = append(parts, s)
		i = j
	}
	return strings.Join(parts, ", ")
}

func (e localBuffers) report(all []l1Results) (*harness.Report, error) {
	d := harness.NewDocument(e.experiment())
	d.Table(e.factorTable(all), writesTable(all), throughputsBySize(all), gainTable(all))
	e.answer(d, all)
	e.figures(d, all)
	var rows []harness.Row
	for _, r := range all {
		rows = append(rows, r.Rows...)
	}
	d.File("lb64.csv", harness.RowsCSV(rows))
	return d.Report(harness.Data{Data: all})
}

func (e localBuffers) factorTable(all []l1Results) harness.Table {
	t := harness.Table{Name: "factors", Title: "Sub-graphs of " + e.network + " and their factors",
		Columns: harness.Columns("<Accelerator", "Images\nper cluster", "Sub-graphs", "Instances", "<Factors")}
	for _, r := range all {
		for _, p := range r.Partitions {
			n := int64(0)
			for _, g := range p.Groups {
				n += g.Factor
			}
			t.Add(r.Hardware, p.Images, len(p.Groups), n, runs(p.factors()))
		}
	}
	return t
}

func writesTable(all []l1Results) harness.Table {
	t := harness.Table{Name: "writes", Title: "Tensor writes of GraphTurbo (DDR/LLB/L1) in the program of a cluster",
		Columns: harness.Columns("<", "<Network", "Published")}
	for _, r := range all {
		t.AddColumns(r.Hardware)
	}
	for _, c := range literature.Configurations() {
		line := []string{c.Label, c.Network, literature.WritesOf(c.Label).GraphTurbo.String()}
		for _, r := range all {
			line = append(line, r.cell(c, "cross-layer", func(x harness.Row) string { return x.Writes.String() }))
		}
		t.Add(line)
	}
	return t
}

// cell is the text of a row's cell, or a dash where there is none.
func (r l1Results) cell(c literature.Configuration, variant string, of func(harness.Row) string) string {
	if row, ok := r.at(c, variant); ok {
		return of(row)
	}
	return "–"
}

func throughputsBySize(all []l1Results) harness.Table {
	t := harness.Table{Name: "throughput", Title: "Throughput (1/s), the paper's batches per cluster",
		Columns: harness.Columns("<", "<Network", "TVM,\npublished")}
	for _, r := range all {
		for _, v := range []string{"TVM", "AStitch", "GraphTurbo", "over TVM (×)"} {
			t.AddColumns(r.Hardware + "|" + v)
		}
	}
	for _, c := range literature.Configurations() {
		line := []string{c.Label, c.Network, harness.Significant(c.TVMThroughputPerSecond)}
		for _, r := range all {
			for _, v := range []string{"tvm", "astitch", "cross-layer"} {
				line = append(line, r.cell(c, v, func(x harness.Row) string { return harness.Significant(x.ThroughputPerSecond) }))
			}
			line = append(line, r.cell(c, "tvm", func(x harness.Row) string {
				return r.cell(c, "cross-layer",
					func(y harness.Row) string { return harness.Fixed(y.ThroughputPerSecond/x.ThroughputPerSecond, 2) })
			}))
		}
		t.Add(line)
	}
	for _, r := range all {
		for _, c := range literature.Configurations() {
			for _, v := range []string{"tvm", "astitch", "cross-layer"} {
				if why := r.Errors[c.Network+" "+v]; why != "" {
					t.Notes = append(t.Notes, fmt.Sprintf("– %s, %s: %s.", r.Hardware, v, why))
				}
			}
		}
	}
	return t
}

func gainTable(all []l1Results) harness.Table {
	t := harness.Table{Name: "gains", Title: "Mean gains",
		Columns: harness.Columns("<Of", "<over", "Published (×)"),
		Notes: []string{
			"Arithmetic means over the configurations that could be simulated with both, whose number stands in brackets; the steps of the breakdown are made for one. The published gains of l1, ordering and cross-layer are in the reading of the notes."}}
	for _, r := range all {
		t.AddColumns(r.Hardware)
	}
	for _, x := range []struct {
		to, from  string
		published float64
	}{{"cross-layer", "tvm", literature.MeanSpeedup.Value}, {"cross-layer", "astitch", literature.MeanOverAStitch.Value},
		{"astitch", "tvm", 0}, {"llb", "tvm", 0},
		{"l1", "llb", literature.MeanL1.Value}, {"ordering", "l1", literature.MeanOrder.Value},
		{"cross-layer", "ordering", literature.MeanCross.Value}} {
		line := []string{x.to, x.from, "–"}
		if x.published > 0 {
			line[2] = harness.Fixed(x.published, 2)
		}
		for _, r := range all {
			m, n := r.meanRatio(x.to, x.from)
			if n == 0 {
				line = append(line, "–")
				continue
			}
			line = append(line, fmt.Sprintf("%s (%d)", harness.Fixed(m, 2), n))
		}
		t.Add(line)
	}
	return t
}

// answer says which machine can produce the published factors and counts.
func (e localBuffers) answer(d *harness.Document, all []l1Results) {
	type evidence struct {
		factors   bool
		hits      int
		speedup   float64
		simulated int
	}
	var list []evidence
	for _, r := range all {
		var x evidence
		var got []string
		for _, p := range r.Partitions {
			same := slices.Equal(p.factors(), publishedFactors)
			x.factors = x.factors || same
			ours := numbersOf(p.factors())
			if len(p.Groups) > 2*len(publishedFactors) {
				ours = fmt.Sprintf("%d sub-graphs, factors up to %d", len(p.Groups), slices.Max(p.factors()))
			}
			got = append(got, fmt.Sprintf("%s with %d images per cluster", ours, p.Images))
		}
		d.Claim("Factors of "+e.network+"'s stages, "+r.Hardware, numbersOf(publishedFactors), strings.Join(got, "; "),
			harness.Agreement(x.factors))
		d.Given() // they decided how buffers are counted
		if beyond := slices.IndexFunc(r.Partitions,
			func(p partition) bool { return slices.Max(p.factors()) > p.Images }); !x.factors && beyond >= 0 {
			p := r.Partitions[beyond]
			d.Why("%d parts of %d images: not even one image of a sub-graph fits this L1, and rows or channels are split",
				slices.Max(p.factors()), p.Images)
		}
		tvm, _ := r.hits("tvm", func(w literature.Writes) harness.Levels { return w.TVM })
		hits, cells := r.hits("cross-layer", func(w literature.Writes) harness.Levels { return w.GraphTurbo })
		x.hits = hits
		d.Claim("Cells of Table 3 within 20 %, "+r.Hardware, fmt.Sprintf("%d of GraphTurbo, %d of TVM", cells, cells),
			fmt.Sprintf("%d of GraphTurbo, %d of TVM", hits, tvm), "–")
		x.speedup, x.simulated = r.meanRatio("cross-layer", "tvm")
		overAStitch, _ := r.meanRatio("cross-layer", "astitch")
		d.Claim("Mean speedup over TVM, "+r.Hardware, harness.Fixed(literature.MeanSpeedup.Value, 2)+"×",
			fmt.Sprintf("%s× over %d of %d configurations", harness.Fixed(x.speedup, 2), x.simulated,
				len(literature.Configurations())),
			harness.Agreement(harness.Within20(literature.MeanSpeedup.Value)(x.speedup)))
		d.Given() // its line is in fig14
		if !harness.Within20(literature.MeanSpeedup.Value)(x.speedup) {
			astitch, _ := r.meanRatio("astitch", "tvm")
			d.Why("%.0f %% of the published mean; over AStitch %s, AStitch over TVM %s; fig14 has the reasons by network",
				100*x.speedup/literature.MeanSpeedup.Value, harness.Fixed(overAStitch, 2), harness.Fixed(astitch, 2))
		}
		list = append(list, x)
	}
	can := func(ok func(evidence) bool) string {
		var names []string
		for i, x := range list {
			if ok(x) {
				names = append(names, e.machines[i])
			}
		}
		switch len(names) {
		case 0:
			return "on neither machine"
		case 1:
			return "only on " + names[0]
		}
		return "on both machines"
	}
	closer := e.machines[0]
	verb := "more than"
	switch {
	case list[0].hits < list[1].hits:
		closer = e.machines[1]
	case list[0].hits == list[1].hits:
		verb = "as many as"
	}
	a, b := max(list[0].hits, list[1].hits), min(list[0].hits, list[1].hits)
	_, cells := all[0].hits("cross-layer", func(w literature.Writes) harness.Levels { return w.GraphTurbo })
	d.Note(
		"Answer: the factors %s come out %s. Of the %d cells of Table 3 for GraphTurbo %s comes within 20 %% of %d, %s the other's %d. The mean speedup over TVM is above one %s, and within 20 %% of %s %s.",
		numbersOf(publishedFactors), can(func(x evidence) bool { return x.factors }), cells, closer, a, verb, b,
		can(func(x evidence) bool { return x.speedup > 1 }), harness.Fixed(literature.MeanSpeedup.Value, 2),
		can(func(x evidence) bool { return harness.Within20(literature.MeanSpeedup.Value)(x.speedup) }))
	d.Note(
		"Nothing but the size of the L1 and its part for weights differs between the two machines. The 64 KB are also the size of the scalar core's cache in the vendor's documents.")
}

func (e localBuffers) figures(d *harness.Document, all []l1Results) {
	g := plots.Groups{Title: "Speedup of GraphTurbo over TVM by size of the local buffer", YLabel: "Speedup (×)",
		Categories: literature.Labels("mean"), Log: true, Line: 1,
		Marks: []plots.GroupMark{{Category: len(literature.Configurations()), Series: 0,
			Value: literature.MeanSpeedup.Value}}}
	for _, r := range all {
		m, _ := r.meanRatio("cross-layer", "tvm")
		g.Series = append(g.Series, plots.Series{Name: r.Hardware,
			Values: literature.Pick(func(c literature.Configuration) float64 {
				x, ok1 := r.at(c, "tvm")
				y, ok2 := r.at(c, "cross-layer")
				if !ok1 || !ok2 {
					return 0
				}
				return y.ThroughputPerSecond / x.ThroughputPerSecond
			}, m)})
	}
	d.Bars("speedup", "Speedup over TVM with both sizes of the local buffer; what can't be simulated is left out", g)
}

// LB64 compares two sizes of the local buffer.
func LB64() harness.Experiment { return lb64().experiment() }
