package tuning

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/dsasched/dsasched/experiments/calibration"
	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/scheduler"
	"gonum.org/v1/gonum/stat"
)

// sensitivity recomputes the headline figures with each fitted constant halved
// and doubled. Decisions do not depend on these constants, so that each schedule is made
// once and simulated with all of them, on one cluster.
type sensitivity struct {
	hardware string
	variants []string
	// configurations, for tests: those of Configurations with these labels; nil: all.
	labels string
}

func fullSensitivity() sensitivity {
	return sensitivity{hardware: "stcp920", variants: []string{"tvm", "astitch", "llb", "l1", "ordering", "cross-layer"}}
}

func (s sensitivity) experiment() harness.Experiment {
	return harness.Experiment{Name: "sensitivity",
		Description: "what the headlines become with each fitted constant at half and at double",
		Paper:       "none; asks whether a conclusion depends on a fitted constant", Plan: s.plan}
}

// turn is a fitted constant with another value; Constant is -1 for the machine as it is.
type turn struct {
	constant int
	factor   float64
	value    float64
}

// turns are the machine as it is, and each constant at half and double; in place of 0, a
// quarter of its range and all of it. A share does not go beyond 1.
func turns(spec *hardware.Spec) []turn {
	list := []turn{{-1, 1, 0}}
	for i, k := range calibration.Constants() {
		for _, f := range []float64{0.5, 2} {
			v := f * k.Get(spec)
			if v == 0 { // has no half
				v = f / 2 * k.Hi
			}
			if k.Unit == "" {
				v = min(v, 1)
			}
			list = append(list, turn{i, f, v})
		}
	}
	return list
}

// label names the turn, such as "launch at 2.5us".
func (t turn) label() string {
	if t.constant < 0 {
		return "as fitted"
	}
	k := calibration.Constants()[t.constant]
	return fmt.Sprintf("%s at %s", k.Name, k.Text(harness.Round(t.value)))
}

// possible reports whether the value lies within the constant's range.
func (t turn) possible() bool {
	if t.constant < 0 {
		return true
	}
	k := calibration.Constants()[t.constant]
	return t.value >= k.Lo && t.value <= k.Hi
}

// sensitivityCell has a throughput for each turn.
type sensitivityCell struct {
	Model      string    `json:"model"`
	Variant    string    `json:"variant"`
	Throughput []float64 `json:"throughput_per_s"`
}

func (s sensitivity) configurations() []literature.Configuration {
	var list []literature.Configuration
	for _, c := range literature.Configurations() {
		if s.labels == "" || strings.Contains(s.labels, c.Label) {
			list = append(list, c)
		}
	}
	return list
}

func (s sensitivity) plan() (*harness.Plan, error) {
	spec, specHash := harness.Machine(s.hardware)
	list := turns(spec)
	specs := make([]*hardware.Spec, len(list))
	values := make([]float64, len(list))
	for i, t := range list {
		specs[i] = spec.Clone()
		if t.constant >= 0 {
			calibration.Constants()[t.constant].Set(specs[i], t.value)
		}
		if err := specs[i].Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.label(), err)
		}
		values[i] = t.value
	}
	p := &harness.Plan{}
	configurations := s.configurations()
	for _, c := range configurations {
		src := harness.OpenNetwork(c.Network)
		for _, name := range s.variants {
			v := harness.Recipe(name)
			chunk := c.PaperChunk(v)
			p.Cells = append(p.Cells, harness.Cell{
				Key: c.Network + "-" + name,
				Inputs: map[string]any{
					"model": c.Network, "hardware_sha256": specHash, "batch": c.BatchSize, "chunk": chunk,
					"variant": v, "values": values,
				},
				Run: func(ctx context.Context) (any, error) {
					r, err := scheduler.Prepare(ctx, src, spec, c.BatchSize, v, scheduler.Options{Chunk: chunk})
					if err != nil {
						return nil, err
					}
					out := sensitivityCell{Model: c.Network, Variant: name}
					for i := range list {
						latency, err := r.LatencyOn(ctx, specs[i])
						if err != nil {
							return nil, err
						}
						out.Throughput = append(out.Throughput, harness.Round(float64(c.BatchSize)/latency))
					}
					return out, nil
				},
			})
		}
	}
	p.Report = func(results []json.RawMessage) (*harness.Report, error) {
		throughput := map[string][]float64{}
		var cells []sensitivityCell
		for _, r := range results {
			var c sensitivityCell
			if err := json.Unmarshal(r, &c); err != nil || len(c.Throughput) != len(list) {
				return nil, fmt.Errorf("a result can't be read: %d throughputs of %d (%v)", len(c.Throughput), len(list), err)
			}
			cells = append(cells, c)
			throughput[c.Model+" "+c.Variant] = c.Throughput
		}
		at := func(c literature.Configuration, variant string, turn int) float64 {
			return throughput[c.Network+" "+variant][turn]
		}
		rep, err := s.experiment().WriteRows(s.hardware,
			func(b *harness.Document) { s.report(list, configurations, at, b) }, nil)
		if err != nil {
			return nil, err
		}
		type turned struct {
			sensitivityCell
			turn int
		}
		var points []turned
		for _, c := range cells {
			for i := range list {
				points = append(points, turned{c, i})
			}
		}
		constant := func(of func(calibration.Constant, turn) string) func(turned) any {
			return func(p turned) any {
				if t := list[p.turn]; t.constant >= 0 {
					return of(calibration.Constants()[t.constant], t)
				}
				return nil
			}
		}
		rep.Replace(harness.File{Name: "sensitivity.csv", Data: harness.CSV(points, []harness.Field[turned]{
			{Name: "model", Of: func(p turned) any { return p.Model }},
			{Name: "variant", Of: func(p turned) any { return p.Variant }},
			{Name: "constant", Of: constant(func(k calibration.Constant, _ turn) string { return k.Name })},
			{Name: "value", Of: constant(func(k calibration.Constant, t turn) string { return k.Text(harness.Round(t.value)) })},
			{Name: "throughput_per_s", Of: func(p turned) any { return p.Throughput[p.turn] }},
		})})
		return rep, nil
	}
	return p, nil
}

// headline is a figure that conclusions are drawn from.
type headline struct {
	name      string
	unit      string  // in the figure; "": it is not drawn
	published float64 // 0: there is none
	of        func(turn int) float64
	// holds is the conclusion, and whether it follows from a value.
	conclusion string
	holds      func(v float64) bool
}

func (s sensitivity) headlines(configurations []literature.Configuration,
	at func(literature.Configuration, string, int) float64) []headline {
	mean := func(to, from string) func(int) float64 {
		return func(turn int) float64 {
			var v []float64
			for _, c := range configurations {
				v = append(v, at(c, to, turn)/at(c, from, turn))
			}
			return stat.Mean(v, nil)
		}
	}
	list := []headline{
		{"mean speedup over TVM", "×", literature.MeanSpeedup.Value, mean("cross-layer", "tvm"),
			"within 20 % of the published mean", harness.Within20(literature.MeanSpeedup.Value)},
		{"mean speedup over AStitch", "×", literature.MeanOverAStitch.Value, mean("cross-layer", "astitch"),
			"within 20 % of the published mean", harness.Within20(literature.MeanOverAStitch.Value)},
	}
	for _, step := range literature.Breakdown {
		list = append(list, headline{"mean gain of " + step.Variant + " over " + step.Before, "×", step.Published.Value,
			mean(step.Variant, step.Before), "within 20 % of the published mean", harness.Within20(step.Published.Value)})
	}
	tvm := func(turn int, plausible bool) (ours, published []float64) {
		for _, c := range configurations {
			if !plausible || c.Doubt == "" {
				ours = append(ours, at(c, "tvm", turn))
				published = append(published, c.TVMThroughputPerSecond)
			}
		}
		return ours, published
	}
	list = append(list, headline{"rank correlation of TVM's throughputs", "", 0,
		func(turn int) float64 { return harness.Spearman(tvm(turn, false)) }, "at least 0.8",
		func(v float64) bool { return v >= 0.8 }})
	list = append(list, headline{"error of TVM's throughputs, " + literature.Without() + " (factor)", "×", 0,
		func(turn int) float64 { return stat.GeometricMean(harness.Factors(tvm(turn, true)), nil) }, "at most 1.5",
		func(v float64) bool { return v <= 1.5 }})
	return list
}

func (s sensitivity) report(list []turn, configurations []literature.Configuration,
	at func(literature.Configuration, string, int) float64, b *harness.Document) {
	heads := s.headlines(configurations, at)
	t := harness.Table{Name: "headlines", Title: "Headlines with one constant changed; the paper's batches per cluster",
		Columns: harness.Columns("<Headline", "Published", "As fitted"),
		Notes:   []string{"A value that the constant can't have in reality, being outside of its range, is marked with !."}}
	for _, k := range list[1:] {
		c := calibration.Constants()[k.constant]
		name := c.Text(harness.Round(k.value))
		if !k.possible() {
			name += " !"
		}
		t.AddColumns(c.Name + "|" + name)
	}
	var torn []plots.Tornado
	hangs := map[string][]string{}
	var order, firm []string
	for _, h := range heads {
		published, base := "–", h.of(0)
		if h.published > 0 {
			published = harness.Fixed(h.published, 2)
		}
		row := []string{h.name, published, harness.Fixed(base, 2)}
		pic := plots.Tornado{Title: strings.ToUpper(h.name[:1]) + h.name[1:], Base: base, Published: h.published}
		changed := false
		for i, k := range list {
			if i == 0 {
				continue
			}
			v := h.of(i)
			row = append(row, harness.Fixed(v, 2))
			if k.factor < 1 {
				pic.Names = append(pic.Names, calibration.Constants()[k.constant].Name)
				pic.Half = append(pic.Half, v)
			} else {
				pic.Double = append(pic.Double, v)
			}
			if h.holds(v) != h.holds(base) {
				changed = true
				verb := "loses"
				if h.holds(v) {
					verb = "gains"
				}
				what := fmt.Sprintf("%s it with %s", verb, k.label())
				if !k.possible() {
					what += " (outside of its range)"
				}
				hangs[h.name] = append(hangs[h.name], what)
			}
		}
		if changed {
			order = append(order, h.name)
		} else {
			firm = append(firm, h.name)
		}
		t.Add(row)
		if h.unit != "" {
			pic.Unit = h.unit
			torn = append(torn, pic)
		}
	}
	b.Table(t)
	for _, h := range heads {
		if list := hangs[h.name]; len(list) > 0 {
			b.Note("Depends on a fitted constant: whether the %s is %s (it is %s): the figure %s.", h.name, h.conclusion,
				harness.Fixed(h.of(0), 2), strings.Join(list, ", and "))
		}
	}
	if len(order) == 0 {
		b.Note(
			"No verdict depends on a fitted constant: each headline stays on its side of its limit (20 %% of the published figure, a rank correlation of 0.8, an error of 1.5) with every constant at half and at double.")
	} else {
		b.Note("No fitted constant at half or double changes the verdict on: %s.", strings.Join(firm, "; "))
	}
	slower, least, where := s.neverSlower(list, configurations, at)
	if slower {
		b.Note("That GraphTurbo is faster than TVM on each network depends on a constant: %s is %s times as fast.", where,
			harness.Fixed(least, 2))
	} else {
		b.Note("That GraphTurbo is faster than TVM on each network depends on no constant: the least speedup is %s (%s).",
			harness.Fixed(least, 2), where)
	}
	f, err := plots.Tornados(torn)
	b.Figure("tornado", "Headlines with one constant at half and at double", f, err)
}

// neverSlower finds the least speedup over TVM.
func (s sensitivity) neverSlower(list []turn, configurations []literature.Configuration,
	at func(literature.Configuration, string, int) float64) (slower bool, least float64, where string) {
	least = math.Inf(1)
	for i, t := range list {
		for _, c := range configurations {
			if v := at(c, "cross-layer", i) / at(c, "tvm", i); v < least {
				least, where = v, fmt.Sprintf("%s, %s", c.Network, t.label())
			}
		}
	}
	return least < 1, least, where
}

// Sensitivity varies the fitted constants.
func Sensitivity() harness.Experiment { return fullSensitivity().experiment() }
