package calibration

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
	"golang.org/x/sync/errgroup"
)

// Calibration of the STCP920's unpublished constants.
//
// The problem: choose x = (x1, x2, x3), each within its physical range, so that
//
//	S(x) = Σ_i (ln ours_i(x) - ln published_i)²
//
// is least over the figures of the calibration set, each of which is measured once and
// stands for a program that is simulated here. No other figure is looked at.
//
// How many constants the figures can carry is asked first: for each set of constants, those outside of it as they
// would stand without any fit, and for each network of the calibration set, the constants are fitted to the other
// networks and judged by what they say of this one. The set with the least sum of squared log errors of what was left
// out is fitted to all figures; of equal sets the smaller.
//
// The method: a search over the steps of the constants, from where they stand without a fit. The neighbour with the
// least S, by one stride of one constant, takes the point's place until none has less; then strides are halved, down
// to one step. What comes out is the best point of its neighbourhood among those that a file can name, which is
// quickly checked. S is separate for each figure, so that all fits share what was simulated.
//
// Schedules do not depend on the constants: capacities decide them. So they are made once,
// and only the simulation is run again.

// Constant is a figure of the accelerator that nobody has published.
type Constant struct {
	Name string
	Unit string // behind the number in the file; "" for a share
	// Lo and Hi are the range that is physically possible.
	Lo, Hi float64
	// Prior is its value where it is not fitted.
	Prior float64
	// Step is the step to which the fitted value is rounded.
	Step float64
	// Why says what bounds the range, and what the prior is.
	Why string
	Get func(*hardware.Spec) float64
	Set func(*hardware.Spec, float64)
}

// perResult is the time that TVM takes for each of a configuration's results of Table 3, in seconds: its kernels, one
// after another, have no more each, and its launch no more than that.
func perResult(m literature.Model) float64 {
	loops := float64(m.BatchSize) / 4 / float64(m.TVMBatchesPerCluster)
	return float64(m.BatchSize) / m.TVMThroughputPerSecond / loops / float64(literature.WritesOf(m.Label).TVM.DDR)
}

// launchBound is the least of these times.
func launchBound() (seconds float64, label string) {
	seconds = math.Inf(1)
	for _, m := range literature.Models {
		if t := perResult(m); t < seconds {
			seconds, label = t, m.Label
		}
	}
	return seconds, label
}

// Constants lists the constants that may be fitted: one for the control, one for the memory, one for the matrix unit.
func Constants() []Constant {
	bound, label := launchBound()
	return []Constant{
		{Name: "launch", Unit: "us", Lo: 5, Hi: math.Floor(2e6*bound) / 2, Prior: 10, Step: 0.5,
			Why: fmt.Sprintf(
				"from an accelerator behind PCIe at its best to what TVM takes for each of %s's results in Table 3 (%.1f us; F's take %.1f); without a fit: an estimate",
				label, 1e6*bound, 1e6*perResult(literature.ConfigurationOf("F").Model)),
			Get: func(s *hardware.Spec) float64 { return s.LaunchSeconds * 1e6 },
			Set: func(s *hardware.Spec, v float64) { s.LaunchSeconds = v * 1e-6 }},
		{Name: "ddr.activation_efficiency", Lo: 0.5, Hi: 1, Prior: 1, Step: 0.01,
			Why: "DRAM with short rows and turns between reading and writing gives half to all of its bandwidth; without a fit: all",
			Get: func(s *hardware.Spec) float64 { return cmp.Or(s.DDRActivationEfficiency, 1) },
			Set: func(s *hardware.Spec, v float64) { s.DDRActivationEfficiency = v }},
		{Name: "mme.block", Unit: "cycles", Lo: 0, Hi: 27, Prior: 0, Step: 0.5,
			Why: "from nothing (the next block is filled in while one works) to a whole small operation, published as 24 to 28 cycles, less one of work; without a fit: nothing",
			Get: func(s *hardware.Spec) float64 {
				c, u := matrixUnit(s)
				return s.CoreTypes[c].Units[u].BlockCycles
			},
			Set: func(s *hardware.Spec, v float64) {
				c, u := matrixUnit(s)
				s.CoreTypes[c].Units[u].BlockCycles = v
			}},
	}
}

// matrixUnit finds the first matrix unit; -1 if there is none.
func matrixUnit(s *hardware.Spec) (core, unit int) {
	for c, t := range s.CoreTypes {
		for u := range t.Units {
			if t.Units[u].Kind == hardware.Matrix {
				return c, u
			}
		}
	}
	return -1, -1
}

// Text writes a value as a hardware file has it.
func (c Constant) Text(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + c.Unit }

// onStep is the multiple of the step that is nearest to v, within the range.
func (c Constant) onStep(v float64) float64 {
	digits := 1 / c.Step // a whole number, so that the result prints without noise
	return min(max(math.Round(v*digits)/digits, c.Lo), c.Hi)
}

// CalibrationFigure is a published figure of the calibration set, and how it is simulated.
type CalibrationFigure struct {
	What      string  `json:"what"`
	Unit      string  `json:"unit"`
	Network   string  `json:"network"` // what is left out together
	Published float64 `json:"published"`
	Ours      float64 `json:"ours"`
	LogError  float64 `json:"log_error"` // ln(ours / published)
	Source    string  `json:"source"`

	simulated calibrationRun
	over      *calibrationRun // the figure is a quotient
}

// runs are the runs behind the figure.
func (f CalibrationFigure) runs() []calibrationRun {
	if f.over == nil {
		return []calibrationRun{f.simulated}
	}
	return []calibrationRun{f.simulated, *f.over}
}

// calibrationRun is a schedule that is simulated with all constants.
type calibrationRun struct {
	network      string
	dtype        model.DType
	batch, chunk int64
	variant      string
}

// calibrationSet lists the figures: TVM's throughputs where programs are as the paper's (literature.Calibrated), since
// what a launch costs can't be seen where the kernels are others; GraphTurbo's one throughput. Of what others measured
// with the vendor's own code, which is not simulated, there is a quotient of two throughputs of the same code.
func calibrationSet() []CalibrationFigure {
	var list []CalibrationFigure
	for _, label := range strings.Split(literature.Calibrated, "") {
		c := literature.ConfigurationOf(label)
		list = append(list, CalibrationFigure{What: c.Network + ", TVM", Unit: c.Unit, Network: c.Network,
			Published: c.TVMThroughputPerSecond, Source: "the paper's slides",
			simulated: calibrationRun{c.Network, model.F16, c.BatchSize, c.TVMBatchesPerCluster, "tvm"}})
	}
	a, b := literature.ConfigurationOf("A"), literature.ConfigurationOf("B")
	half, eighth := literature.MeasuredResNet, literature.MeasuredResNetInt8
	// ByteMLPerf's batch is that of a cluster: its latency says that 128 images are in
	// flight, two batches on each of the four.
	f16 := calibrationRun{a.Network, model.F16, 4 * half.Batch, half.Batch, "cross-layer"}
	return append(list,
		CalibrationFigure{What: b.Network + ", GraphTurbo", Unit: b.Unit, Network: b.Network,
			Published: literature.BertThroughput.Value, Source: "the paper's Table 1",
			simulated: calibrationRun{b.Network, model.F16, b.BatchSize, b.GraphTurboBatchesPerCluster, "cross-layer"}},
		CalibrationFigure{What: a.Network + ", I8 over F16", Unit: "x", Network: a.Network,
			Published: eighth.ThroughputPerSecond / half.ThroughputPerSecond, Source: "CARRV 2021, ByteMLPerf: vendor's code",
			simulated: calibrationRun{a.Network, model.I8, eighth.Batch, eighth.Batch / 4, "cross-layer"}, over: &f16})
}

// calibrator evaluates constants on one accelerator. Package bail throws its errors.
type calibrator struct {
	base        *hardware.Spec
	constants   []Constant
	figures     []CalibrationFigure
	runs        map[calibrationRun]*scheduler.Result
	seen        map[string]map[calibrationRun]float64 // throughputs, by constants
	Simulations int
}

// newCalibrator makes the schedules. It throws an error if the accelerator has no matrix unit.
func newCalibrator(ctx context.Context, spec *hardware.Spec) *calibrator {
	if c, _ := matrixUnit(spec); c < 0 {
		bail.Check(fmt.Errorf("accelerator %q has no matrix unit, whose constants are to be fitted", spec.Name))
	}
	cal := &calibrator{base: spec, constants: Constants(), figures: calibrationSet(),
		runs: map[calibrationRun]*scheduler.Result{}, seen: map[string]map[calibrationRun]float64{}}
	for _, f := range cal.figures {
		for _, x := range f.runs() {
			if cal.runs[x] != nil {
				continue
			}
			v, at := literature.ByText(x.variant)
			src := bail.Of(network.Open(x.network, network.Options{DType: x.dtype, Grain: at}))
			var err error
			if cal.runs[x], err = v.Prepare(ctx, src, spec, x.batch, literature.Options(x.chunk)); err != nil {
				bail.Check(fmt.Errorf("%s: %w", f.What, err))
			}
		}
	}
	return cal
}

// values are the constants as the accelerator has them.
func (c *calibrator) values() []float64 {
	var x []float64
	for _, k := range c.constants {
		x = append(x, k.Get(c.base))
	}
	return x
}

// spec is the accelerator with these constants.
func (c *calibrator) spec(x []float64) *hardware.Spec {
	s := c.base.Clone()
	for i, k := range c.constants {
		k.Set(s, x[i])
	}
	return s
}

// simulate finds the throughputs of runs with constants x that are not known yet.
func (c *calibrator) simulate(ctx context.Context, x []float64, runs []calibrationRun) map[calibrationRun]float64 {
	key := fmt.Sprint(x)
	known := c.seen[key]
	if known == nil {
		known = map[calibrationRun]float64{}
		c.seen[key] = known
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(r calibrationRun) bool { return known[r] != 0 })
	if len(runs) == 0 {
		return known
	}
	spec := c.spec(x)
	bail.Check(spec.Validate())
	rates := make([]float64, len(runs))
	g, inner := errgroup.WithContext(ctx)
	for i, run := range runs {
		g.Go(func() error {
			latency, err := c.runs[run].LatencyOn(inner, spec)
			rates[i] = float64(run.batch) / latency
			return err
		})
	}
	bail.Check(g.Wait())
	for i, run := range runs {
		known[run] = rates[i]
	}
	c.Simulations += len(runs)
	return known
}

// residuals simulates the figures that in takes with constants x. It returns them with our values, and the sum of their
// squared log errors.
func (c *calibrator) residuals(ctx context.Context, x []float64, in func(CalibrationFigure) bool) (
	figures []CalibrationFigure, sum float64) {
	var runs []calibrationRun
	for _, f := range c.figures {
		if in(f) {
			figures, runs = append(figures, f), append(runs, f.runs()...)
		}
	}
	slices.SortFunc(runs, func(a, b calibrationRun) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	rates := c.simulate(ctx, x, slices.Compact(runs))
	for i := range figures {
		f := &figures[i]
		f.Ours = rates[f.simulated]
		if f.over != nil {
			f.Ours /= rates[*f.over]
		}
		f.LogError = math.Log(f.Ours / f.Published)
		sum += f.LogError * f.LogError
	}
	return figures, sum
}

func all(CalibrationFigure) bool { return true }

// minimise fits constants, those that fit has true, to figures from x on: see the head of this file. The first stride
// is the largest power of two of steps in a quarter of a range, or one step if x is meant to be a minimum.
func (c *calibrator) minimise(ctx context.Context, x []float64, fit []bool, in func(CalibrationFigure) bool,
	strides bool) []float64 {
	best := slices.Clone(x)
	_, least := c.residuals(ctx, best, in)
	stride := 1.0
	for i, k := range c.constants {
		for strides && fit[i] && 2*stride*k.Step <= (k.Hi-k.Lo)/4 {
			stride *= 2
		}
	}
	for ; stride >= 1; stride /= 2 {
		for moved := true; moved; {
			moved = false
			from := best
			for i, k := range c.constants {
				for _, d := range []float64{-stride * k.Step, stride * k.Step} {
					y := slices.Clone(from)
					if y[i] = k.onStep(y[i] + d); !fit[i] || y[i] == from[i] {
						continue
					}
					if _, s := c.residuals(ctx, y, in); s < least {
						best, least, moved = y, s, true
					}
				}
			}
		}
	}
	return best
}

// Fold is a fit without one network.
type Fold struct {
	Without string   `json:"without"`
	Values  []string `json:"values"` // of the constants, as a file has them
	Sum     float64  `json:"left_out_sum"`
}

// Candidate is a set of constants and how a fit of them does on what it has not seen.
type Candidate struct {
	Fitted []string `json:"fitted"`
	Folds  []Fold   `json:"folds"`
	// Sum is of the squared log errors of the figures, each left out once, and Error their
	// geometric mean as a factor: exp of the root of the mean.
	Sum   float64 `json:"left_out_sum"`
	Error float64 `json:"left_out_error"`

	fit []bool
}

// validate fits all sets of constants with each network left out once.
func (c *calibrator) validate(ctx context.Context) []Candidate {
	var networks []string
	for _, f := range c.figures {
		if !slices.Contains(networks, f.Network) {
			networks = append(networks, f.Network)
		}
	}
	prior := c.prior()
	var list []Candidate
	for subset := range 1 << len(c.constants) {
		k := Candidate{Fitted: []string{}}
		for i, constant := range c.constants {
			k.fit = append(k.fit, subset>>i&1 == 1)
			if k.fit[i] {
				k.Fitted = append(k.Fitted, constant.Name)
			}
		}
		for _, name := range networks {
			x := c.minimise(ctx, prior, k.fit, func(f CalibrationFigure) bool { return f.Network != name }, true)
			_, sum := c.residuals(ctx, x, func(f CalibrationFigure) bool { return f.Network == name })
			fold := Fold{Without: name, Sum: sum}
			for i, constant := range c.constants {
				fold.Values = append(fold.Values, constant.Text(x[i]))
			}
			k.Folds = append(k.Folds, fold)
			k.Sum += sum
		}
		k.Error = math.Exp(math.Sqrt(k.Sum / float64(len(c.figures))))
		list = append(list, k)
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return len(a.Fitted) - len(b.Fitted) })
	return list
}

// prior are the constants without a fit.
func (c *calibrator) prior() []float64 {
	var x []float64
	for _, k := range c.constants {
		x = append(x, k.Prior)
	}
	return x
}

// choose is the candidate with the least sum, the first of equal ones.
func choose(list []Candidate) Candidate {
	best := list[0]
	for _, k := range list[1:] {
		if k.Sum < best.Sum {
			best = k
		}
	}
	return best
}

// FittedConstant is a constant and what the fit made of it.
type FittedConstant struct {
	Name string `json:"name"`
	// values are as a hardware file has them, with their units: the range, where the fit began and where it ended.
	Lo    string `json:"lo"`
	Hi    string `json:"hi"`
	Why   string `json:"range_because"`
	Start string `json:"start"`
	Value string `json:"value"`
	// Fitted is false if the figures can't carry it: the value is the start.
	Fitted bool `json:"fitted"`
	// AtBound says that the fit would go on beyond the range.
	AtBound bool `json:"at_bound"`
	// Half and Double are S with the value halved and doubled, within the range; null if nothing was fitted.
	Half   *float64 `json:"sum_at_half"`
	Double *float64 `json:"sum_at_double"`
}

func fitted(k Constant, value float64, fit bool) FittedConstant {
	return FittedConstant{Name: k.Name, Lo: k.Text(k.Lo), Hi: k.Text(k.Hi), Why: k.Why, Start: k.Text(k.Prior),
		Value: k.Text(value), Fitted: fit,
		AtBound: fit && (value <= k.Lo || value >= k.Hi)}
}

// Calibration is the outcome.
type Calibration struct {
	Hardware    string              `json:"hardware"`
	Method      string              `json:"method"`
	Constants   []FittedConstant    `json:"constants"`
	Figures     []CalibrationFigure `json:"figures"`
	Sum         float64             `json:"sum_of_squared_log_errors"` // S
	Validation  []Candidate         `json:"cross_validation,omitempty"`
	Simulations int                 `json:"simulations"`
}

const (
	fitMethod      = "the constants whose fit says most of a network that it has not seen, by steps from where they stand without a fit; least sum of squared log errors"
	residualMethod = "none: the constants are those of the file"
)

// Calibrate fits the constants of an accelerator; with fit false it only compares it, as it stands, with the published
// figures.
func Calibrate(ctx context.Context, spec *hardware.Spec, fit bool) (_ *Calibration, err error) {
	defer bail.Caught(&err)
	c := newCalibrator(ctx, spec)
	x, chosen := c.values(), Candidate{fit: make([]bool, len(c.constants))}
	out := &Calibration{Hardware: spec.Name, Method: residualMethod}
	if fit {
		out.Method = fitMethod
		out.Validation = c.validate(ctx)
		chosen = choose(out.Validation)
		x = c.minimise(ctx, c.prior(), chosen.fit, all, true)
	}
	out.Figures, out.Sum = c.residuals(ctx, x, all)
	for i, k := range c.constants {
		f := fitted(k, x[i], chosen.fit[i])
		if fit {
			for _, v := range []struct {
				factor float64
				to     **float64
			}{{0.5, &f.Half}, {2, &f.Double}} {
				y := slices.Clone(x)
				y[i] = min(max(v.factor*x[i], k.Lo), k.Hi)
				_, sum := c.residuals(ctx, y, all)
				*v.to = &sum
			}
		}
		out.Constants = append(out.Constants, f)
	}
	out.Simulations = c.Simulations
	return out, nil
}
