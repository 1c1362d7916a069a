package measured

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// recipe predicts all rows: the project's own.
const recipe = "tiled"

// study is the experiment: measurements, in groups that are cells.
type study struct {
	rows  []row
	quick bool // little is searched
}

func full() (study, error) {
	rows, err := readRows(file)
	return study{rows: rows}, err
}

// short searches little and has three machines and the RTL.
func (s study) short() study {
	return study{quick: true, rows: slices.DeleteFunc(slices.Clone(s.rows), func(r row) bool {
		return r.Kind != rtl && !slices.Contains([]string{"h100", "inferentia2", "wormhole-n150"}, r.Machine)
	})}
}

// Experiments lists the experiments on real machines.
func Experiments() []harness.Experiment { return []harness.Experiment{measured(), gains()} }

func measured() harness.Experiment {
	return harness.Experiment{Name: "measured",
		Description: "networks, products and operators of eleven real machines and mappings of an RTL, predicted with nothing fitted",
		Paper:       "none; times that makers and others have published of their machines, and an H100's and an H200's, measured here",
		Plan:        plan(study.plan), Quick: plan(func(s study) (*harness.Plan, error) { return s.short().plan() })}
}

// plan makes one of all measurements.
func plan(of func(study) (*harness.Plan, error)) func() (*harness.Plan, error) {
	return func() (*harness.Plan, error) {
		s, err := full()
		if err != nil {
			return nil, err
		}
		return of(s)
	}
}

// group is rows that are predicted together: those of one family on one machine.
type group struct {
	Machine, Kind, Family string
	Rows                  []row
}

func (s study) groups() (list []*group) {
	at := map[string]*group{}
	for _, r := range s.rows {
		if r.Kind == rtl {
			continue
		}
		key := r.Kind + "-" + r.family() + "-" + r.Machine
		if at[key] == nil {
			at[key] = &group{Machine: r.Machine, Kind: r.Kind, Family: r.family()}
			list = append(list, at[key])
		}
		at[key].Rows = append(at[key].Rows, r)
	}
	return list
}

func (s study) plan() (*harness.Plan, error) {
	pick := harness.Recipe(recipe)
	groups := s.groups()
	pl := &harness.Plan{}
	for _, g := range groups {
		_, hash := harness.Machine(g.Machine)
		pl.Cells = append(pl.Cells, harness.Cell{Key: g.Family + "-" + g.Machine, Label: g.Family + " on " + g.Machine,
			Inputs: struct {
				Rows         []row            `json:"rows"`
				HardwareHash string           `json:"hardware_sha256"`
				Variant      scheduler.Recipe `json:"variant"`
				Largest      int64            `json:"largest"`
			}{g.Rows, hash, pick, largest},
			Run: func(ctx context.Context) (any, error) { return g.predict(ctx, pick), nil }})
	}
	buffers, err := s.planRTL(pl)
	if err != nil {
		return nil, err
	}
	pl.Report = func(results []json.RawMessage) (*harness.Report, error) {
		var cycles []rtlResult
		var rows []row
		for i, b := range buffers {
			var all []rtlResult
			if err := json.Unmarshal(results[len(groups)+i], &all); err != nil || len(all) != len(b) {
				return nil, fmt.Errorf("a result can't be read: %d of %d rows, %w", len(all), len(b), err)
			}
			rows, cycles = append(rows, b...), append(cycles, all...)
		}
		layers, err := layersOf(rows, cycles)
		if err != nil {
			return nil, err
		}
		var list []compared
		for i, g := range groups {
			var all []prediction
			if err := json.Unmarshal(results[i], &all); err != nil {
				return nil, fmt.Errorf("a result can't be read: %w", err)
			}
			for k, p := range all {
				list = append(list, compared{row: g.Rows[k], prediction: p, Family: g.Family, Measured: g.Rows[k].seconds()})
			}
		}
		return report(list, layers)
	}
	return pl, nil
}

// planRTL adds a cell for each pair of buffers.
func (s study) planRTL(pl *harness.Plan) (groups [][]row, err error) {
	pick, err := recipes.Lookup("tiled-llb") // the nest is a row's
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, r := range s.rows {
		if r.Kind != rtl {
			continue
		}
		c, err := readConvolution(r.Case)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprintf("rtl-%d-%d", c.Scratchpad, c.Accumulator)
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
			_, hash := harness.Machine(r.Machine)
			pl.Cells = append(pl.Cells, harness.Cell{Key: key,
				Label: fmt.Sprintf("RTL with buffers of %d and %d bytes", c.Scratchpad, c.Accumulator),
				Inputs: struct {
					HardwareHash string `json:"hardware_sha256"`
					Leaves       int    `json:"leaves"`
				}{hash, leaves},
				Run: func(ctx context.Context) (any, error) { return predictRTL(ctx, groups[i], pick), nil }})
		}
		groups[i] = append(groups[i], r)
	}
	return groups, nil
}

// predict is a cell. Rows that differ in nothing that the simulator sees share a prediction.
func (g *group) predict(ctx context.Context, pick scheduler.Recipe) (list []prediction) {
	known := map[row]prediction{}
	for _, r := range g.Rows {
		key := r
		key.Value, key.Unit, key.Source = 0, "", ""
		if !strings.HasPrefix(r.Remark, gapsExcluded) {
			key.Remark = ""
		}
		p, ok := known[key]
		if !ok {
			p = *r.predict(ctx, pick)
			known[key] = p
		}
		list = append(list, p)
	}
	return list
}

// compared is a row beside its prediction.
type compared struct {
	row
	prediction
	Family   string  `json:"family"`
	Measured float64 `json:"measured_s"`
}

// ratio is predicted over measured.
func (c *compared) ratio() float64 { return c.total() / c.Measured }

// below says that the measured time is below the bound: the machine file or the bound is wrong.
func (c *compared) below() bool { return c.Measured < c.Bound*(1-rounding) }

// rounding is the relative error of published values, by their digits.
const rounding = 0.01

// sample sums up some rows: ratios of predicted and measured times.
type sample struct{ logs []float64 }

func (s *sample) add(ratio float64) { s.logs = append(s.logs, math.Log(ratio)) }

// spread is the geometric error, and bias the geometric mean.
func (s *sample) spread() float64                       { return s.mean(math.Abs) }
func (s *sample) bias() float64                         { return s.mean(func(x float64) float64 { return x }) }
func (s *sample) mean(of func(float64) float64) float64 { return math.Exp(s.average(of)) }
func (s *sample) average(of func(float64) float64) float64 {
	sum := 0.0
	for _, x := range s.logs {
		sum += of(x)
	}
	return sum / float64(len(s.logs))
}

// percent is the mean error as others give it, of the measured time.
func (s *sample) percent() float64 {
	return s.average(func(x float64) float64 { return math.Abs(math.Exp(x) - 1) })
}

// within is the share of rows that are off by a quarter at most.
func (s *sample) within() float64 {
	return s.average(func(x float64) float64 {
		if math.Abs(x) <= math.Log(1.25) {
			return 1
		}
		return 0
	})
}

// class is rows of one machine and kind.
type class struct {
	Machine, Kind string
	rows          []*compared
}

func (c *class) sample() (s sample) {
	for _, r := range c.rows {
		s.add(r.ratio())
	}
	return s
}

// rank is the rank correlation of predicted and measured times; NaN of fewer than three.
func (c *class) rank() float64 {
	if len(c.rows) < 3 {
		return math.NaN()
	}
	var a, b []float64
	for _, r := range c.rows {
		a, b = append(a, r.total()), append(b, r.Measured)
	}
	return harness.Spearman(a, b)
}

// classes groups what was predicted by kind and machine, in the order of kinds and of the file.
func classes(list []compared) (out []*class) {
	for _, kind := range []string{networks, products, attention, operators} {
		first := len(out)
		for i := range list {
			r := &list[i]
			if r.Kind != kind || r.Error != "" {
				continue
			}
			k := slices.IndexFunc(out[first:], func(c *class) bool { return c.Machine == r.Machine })
			if k < 0 {
				k = len(out) - first
				out = append(out, &class{Machine: r.Machine, Kind: kind})
			}
			out[first+k].rows = append(out[first+k].rows, r)
		}
	}
	return out
}

// leftOut is the class's error with one constant on the simulated time, which for each family is fitted to all others;
// ok is false if there is only one.
func (c *class) leftOut() (s sample, families int, ok bool) {
	sums, counts := map[string]float64{}, map[string]float64{}
	all, n := 0.0, 0.0
	for _, r := range c.rows {
		x := math.Log(r.Measured / r.total())
		sums[r.Family] += x
		counts[r.Family]++
		all, n = all+x, n+1
	}
	if len(sums) < 2 {
		return s, len(sums), false
	}
	for _, r := range c.rows {
		constant := (all - sums[r.Family]) / (n - counts[r.Family])
		s.add(r.ratio() * math.Exp(constant))
	}
	return s, len(sums), true
}

func number(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return harness.Fixed(x, 2)
}

// plural names kinds in tables.
var plural = map[string]string{networks: "networks", products: "products", attention: "attention", operators: "operators"}

func report(list []compared, layers []*layer) (*harness.Report, error) {
	all := classes(list)
	var machines []string
	for _, c := range all {
		if !slices.Contains(machines, c.Machine) {
			machines = append(machines, c.Machine)
		}
	}
	d := harness.NewDocument(measured(), machines...)
	d.Table(errorsTable(list, all), constantTable(all), familyTable(all), peersTable(all), belowTable(list))
	d.Table(rtlTables(layers)...)
	fig, err := plots.Rooflines(figure(machines, all, layers)...)
	d.Figure("measured", "Predicted against measured time of a batch, a point for each measurement", fig, err)
	d.Table(rowsTable(list))
	return d.Report(struct {
		Results []compared `json:"results"`
	}{list})
}

// errorsTable is the answer: by kind and machine, and of all machines.
func errorsTable(list []compared, all []*class) harness.Table {
	t := harness.Table{Name: "errors", Title: "Predicted with nothing fitted, by machine", Columns: harness.Columns(
		"<Kind", "<Accelerator", "Rows", "Error", "Within 25 %",
		"Predicted over measured", "Least", "Most", "Rank correlation", "Below the bound")}
	line := func(kind, name string, rows []*compared, s sample, rank float64) {
		n := 0
		for _, r := range rows {
			if r.below() {
				n++
			}
		}
		t.Rows = append(t.Rows, []string{plural[kind], name, fmt.Sprint(len(s.logs)), number(s.spread()),
			harness.Percent(s.within()),
			number(s.bias()), number(math.Exp(slices.Min(s.logs))), number(math.Exp(slices.Max(s.logs))),
			number(rank), fmt.Sprint(n)})
	}
	for _, kind := range []string{networks, products, attention, operators} {
		var sum class
		for _, c := range all {
			if c.Kind == kind {
				sum.rows = append(sum.rows, c.rows...)
				line(kind, c.Machine, c.rows, c.sample(), c.rank())
			}
		}
		if len(sum.rows) > 0 {
			line(kind, "all", sum.rows, sum.sample(), math.NaN())
		}
	}
	t.Notes = []string{
		"Error: geometric mean of the larger over the smaller of predicted and measured time. Rank correlation: Spearman's, of " +
			"the times of all batches of all networks (or of all products, operators) of a machine. Below the bound: rows whose measured time is " +
			"below the lower bound by more than their rounding; a table of their own has what bounds them."}
	missing := 0
	for _, r := range list {
		if r.Error != "" {
			missing++
		}
	}
	if missing > 0 {
		t.Notes = append(t.Notes,
			fmt.Sprintf("%d rows have no prediction: the recipe has no program for them that fits.", missing))
	}
	return t
}

// constantTable shows the errors with one constant per machine.
func constantTable(all []*class) harness.Table {
	t := harness.Table{Name: "constant", Title: "One constant per machine, each network left out in turn",
		Columns: harness.Columns("<Kind", "<Accelerator", "Families", "Rows",
			"Error|nothing fitted|one constant, left out", "Constant of all")}
	for _, kind := range []string{networks, operators} {
		var plain, fitted sample
		for _, c := range all {
			if c.Kind != kind {
				continue
			}
			s := c.sample()
			out, families, ok := c.leftOut()
			text := "–"
			if ok {
				text = number(out.spread())
				plain.logs, fitted.logs = append(plain.logs, s.logs...), append(fitted.logs, out.logs...)
			}
			t.Rows = append(t.Rows, []string{plural[kind], c.Machine, fmt.Sprint(families), fmt.Sprint(len(c.rows)),
				number(s.spread()), text, number(1 / s.bias())})
		}
		if len(fitted.logs) > 0 {
			t.Rows = append(t.Rows, []string{plural[kind], "all with two or more", "", fmt.Sprint(len(fitted.logs)),
				number(plain.spread()), number(fitted.spread()), ""})
		}
	}
	t.Notes = []string{
		"The constant multiplies the predicted time. That of a network is the geometric mean over the rows of all other networks of the machine."}
	return t
}

// familyTable shows the errors that remain, by network or operator.
func familyTable(all []*class) harness.Table {
	t := harness.Table{Name: "families", Title: "What is left, by network and operator", Columns: harness.Columns(
		"<Kind", "<Accelerator", "<Family", "Rows",
		"Predicted over measured", "Least", "Most", "<Limited by, at the largest")}
	for _, c := range all {
		var names []string
		for _, r := range c.rows {
			if !slices.Contains(names, r.Family) {
				names = append(names, r.Family)
			}
		}
		for _, name := range names {
			var s sample
			limit, most := "", 0.0
			for _, r := range c.rows {
				if r.Family == name {
					s.add(r.ratio())
					if r.Measured > most {
						limit, most = r.Limit, r.Measured
					}
				}
			}
			t.Rows = append(t.Rows, []string{plural[c.Kind], c.Machine, name, fmt.Sprint(len(s.logs)), number(s.bias()),
				number(math.Exp(slices.Min(s.logs))), number(math.Exp(slices.Max(s.logs))), limit})
		}
	}
	return t
}

// peers are errors that other simulators publish, in their own measure.
var peers = []struct{ name, what, machines, published string }{
	{"PyTorchSim", "run time, mean", "TPU v3", "11.5 %"},
	{"LLMCompass", "operators, mean", "A100, MI210, TPU v3", "10.9 %"},
	{"LLMCompass", "language models, mean", "A100, MI210, TPU v3", "4.1 %"},
	{"Stream", "one dispatch, factor", "AMD NPU", "1.6"},
	{"Stream", "per iteration, mean", "AMD NPU", "0.2 %"},
	{"SCALE-Sim TPU", "element-wise operators, mean", "TPU", "3 %"},
}

func peersTable(all []*class) harness.Table {
	t := harness.Table{Name: "peers", Title: "Errors of other simulators beside these", Columns: harness.Columns(
		"<Simulator", "<Of what", "<Machines", "Error")}
	for _, p := range peers {
		t.Rows = append(t.Rows, []string{p.name, p.what, p.machines, p.published})
	}
	for _, kind := range []string{products, attention, operators, networks} {
		var s sample
		n := 0
		for _, c := range all {
			if c.Kind == kind {
				n++
				s.logs = append(s.logs, c.sample().logs...)
			}
		}
		if n > 0 {
			t.Rows = append(t.Rows, []string{"this", plural[kind] + ", mean", fmt.Sprintf("%d machines", n),
				harness.Percent(s.percent()) + " %"})
		}
	}
	t.Notes = []string{
		"Each in its own measure, of its own cases, and most with constants fitted to the machine; here nothing is. " +
			"Mean: of the errors relative to the measured time, which is at most 100 % for what is predicted too fast."}
	return t
}

const (
	gapsExcluded = "launch gaps excluded"
	inGraph      = "in a graph" // among others of its kind
	// PyTorch adds a convolution's bias by a kernel of its own (aten/src/ATen/native/cudnn/ConvShared.cpp).
	apartInGraph = inGraph + ", biases of convolutions apart"
	halfByte     = "/4bit"
)

func belowTable(list []compared) harness.Table {
	t := harness.Table{Name: "below", Title: "Measured below the bound", Columns: harness.Columns(
		"<Accelerator", "<Case", "Batch", "Measured over bound",
		"<Bound by", "<Remark")}
	for _, r := range list {
		if r.below() {
			t.Rows = append(t.Rows, []string{r.Machine, r.Case, fmt.Sprint(r.Batch), number(r.Measured / r.Bound),
				r.Term, r.Remark})
		}
	}
	return t
}

func rowsTable(list []compared) harness.Table {
	t := harness.Table{Name: "rows", Title: "All rows", Columns: harness.Columns("<Accelerator", "<Case", "Batch", "<Type",
		"ms|measured|predicted|of it host|bound", "Ratio", "<Limited by", "<Remark")}
	for _, r := range list {
		predicted, ratio := "–", "–"
		if r.Error == "" {
			predicted, ratio = harness.Significant(1e3*r.total()), number(r.ratio())
		}
		t.Rows = append(t.Rows, []string{r.Machine, r.Case, fmt.Sprint(r.Batch), r.Type,
			harness.Significant(1e3 * r.Measured), predicted,
			harness.Significant(1e3 * r.HostSeconds), harness.Significant(1e3 * r.Bound), ratio, r.Limit, r.Remark})
	}
	return t
}

// figure is predicted against measured times, with a panel for networks and one for the rest.
func figure(machines []string, all []*class, layers []*layer) []plots.Roofline {
	panels := []plots.Roofline{{Title: "Networks"}, {Title: "Products and operators"}}
	for i := range panels {
		p := &panels[i]
		p.Diagonal, p.XLabel, p.YLabel = true, "Measured, ms", "Predicted, ms"
		for _, m := range machines {
			cloud := plots.Cloud{Name: m}
			for _, c := range all {
				if c.Machine != m || (c.Kind == networks) != (i == 0) {
					continue
				}
				for _, r := range c.rows {
					cloud.X, cloud.Y = append(cloud.X, 1e3*r.Measured), append(cloud.Y, 1e3*r.total())
				}
			}
			p.Clouds = append(p.Clouds, cloud)
		}
	}
	arrays := plots.Cloud{Name: "gemmini"} // at 1 GHz
	for _, l := range layers {
		for _, x := range []*rtlTimes{l.Given, l.Own} {
			if x != nil {
				arrays.X, arrays.Y = append(arrays.X, 1e-6*x.Measured), append(arrays.Y, 1e-6*x.Predicted)
			}
		}
	}
	if len(arrays.X) > 0 {
		panels[0].Clouds = append(panels[0].Clouds, plots.Cloud{Name: arrays.Name})
		panels[1].Clouds = append(panels[1].Clouds, arrays)
	}
	return panels
}
