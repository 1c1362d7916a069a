package tuning

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/scheduler"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/optimize"
)

// Calibration of the STCP920's unpublished constants.
//
// The problem: choose x = (x1, x2, x3), each within its physical range, so that
//
//	S(x) = Σ_i (ln ours_i(x) - ln published_i)²
//
// is least over the figures of the calibration set: those of ResNet-50 and BERT-128
// that the paper or a measurement gives. No other figure is looked at.
//
// The method: each range is mapped from the real line by lo + (hi-lo)·sin²(u), so that
// no step leaves it and its bounds can be reached; Nelder and Mead's simplex search
// (gonum's optimize) minimises S over u from the middle of the ranges; its best point is
// rounded to the step of each constant; and, step by step, the neighbour with the least
// S takes its place until none has less. What comes out is therefore the best point of
// its neighbourhood among those that a file can name, which is quickly checked.
//
// Schedules do not depend on the constants: capacities decide them. So they are made once,
// and only the simulation is run again, on one cluster, since all do the same.

// Constant is a figure of the accelerator that nobody has published.
type Constant struct {
	Name string
	Unit string // behind the number in the file; "" for a share
	// Lo and Hi are the range that is physically possible.
	Lo, Hi float64
	// Step is what the fitted value is rounded to.
	Step float64
	// Why says what bounds the range.
	Why string
	// path is the field of the file, for the matrix unit at this place.
	path func(core, unit int) string
	get  func(*hardware.Spec) float64
	set  func(*hardware.Spec, float64)
}

// Constants are those that are fitted: one for the control, one for the memory, one for
// the matrix unit.
func Constants() []Constant {
	return []Constant{
		{Name: "launch", Unit: "us", Lo: 5, Hi: 70, Step: 0.5,
			Why:  "steady-state launches of accelerators behind PCIe take 5 to 70 us",
			path: func(int, int) string { return "launch" },
			get:  func(s *hardware.Spec) float64 { return s.LaunchSeconds * 1e6 },
			set:  func(s *hardware.Spec, v float64) { s.LaunchSeconds = v * 1e-6 }},
		{Name: "ddr.activation_efficiency", Lo: 0.5, Hi: 1, Step: 0.01,
			Why:  "DRAM with short rows and turns between reading and writing gives half to all of its bandwidth",
			path: func(int, int) string { return "ddr.activation_efficiency" },
			get: func(s *hardware.Spec) float64 {
				if s.DDRActivationEfficiency == 0 {
					return 1
				}
				return s.DDRActivationEfficiency
			},
			set: func(s *hardware.Spec, v float64) { s.DDRActivationEfficiency = v }},
		{Name: "mme.block", Unit: "cycles", Lo: 0, Hi: 27, Step: 0.5,
			Why:  "from nothing (the next block is filled in while one works) to a whole small operation, published as 24 to 28 cycles, less one of work",
			path: func(c, u int) string { return fmt.Sprintf("core_types[%d].units[%d].block", c, u) },
			get: func(s *hardware.Spec) float64 {
				c, u := matrixUnit(s)
				return s.CoreTypes[c].Units[u].BlockCycles
			},
			set: func(s *hardware.Spec, v float64) {
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

// text writes a value as a hardware file has it.
func (c Constant) text(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + c.Unit }

// onStep is the multiple of the step that is nearest to v, within the range.
func (c Constant) onStep(v float64) float64 {
	digits := 1 / c.Step // a whole number, so that the result prints without noise
	return min(max(math.Round(v*digits)/digits, c.Lo), c.Hi)
}

// at maps the real line to the range; its middle is at u = π/4.
func (c Constant) at(u float64) float64 {
	s := math.Sin(u)
	return c.Lo + (c.Hi-c.Lo)*s*s
}

func (c Constant) middle() float64 { return (c.Lo + c.Hi) / 2 }

// CalibrationFigure is a published throughput of the calibration set, and how it is
// simulated.
type CalibrationFigure struct {
	What                string  `json:"what"`
	Unit                string  `json:"unit"`
	PublishedPerSecond  float64 `json:"published_per_s"`
	ThroughputPerSecond float64 `json:"ours_per_s"`
	LogError            float64 `json:"log_error"` // ln(ours / published)
	Source              string  `json:"source"`

	Network      string      `json:"-"`
	DType        model.DType `json:"-"`
	Batch, Chunk int64       `json:"-"`
	Variant      string      `json:"-"`
	run          int         // figures of the same run share it
}

// CalibrationSet lists the figures. What is measured with the vendor's own code is
// simulated as GraphTurbo, which comes within 4 % of it in the paper's mean. ByteMLPerf's
// batch of 16 is one of a cluster: its latency says that 128 images are in flight, two
// batches on each of the four clusters.
func CalibrationSet() []CalibrationFigure {
	a, b := literature.ModelOf("A"), literature.ModelOf("B")
	return []CalibrationFigure{
		{What: "ResNet-50, TVM", Network: literature.StandIns["A"], Batch: a.BatchSize, Chunk: a.TVMBatchesPerCluster, Variant: "tvm", Unit: a.Unit,
			PublishedPerSecond: a.TVMThroughputPerSecond, Source: "the paper's slides"},
		{What: "ResNet-50, vendor's code", Network: literature.StandIns["A"], Batch: 4 * literature.MeasuredResNet.Batch, Chunk: literature.MeasuredResNet.Batch, Variant: "cross-layer", Unit: a.Unit,
			PublishedPerSecond: literature.MeasuredResNet.ThroughputPerSecond, Source: "ByteMLPerf"},
		{What: "ResNet-50 in I8, vendor's code", Network: literature.StandIns["A"], DType: model.I8, Batch: literature.MeasuredResNetInt8.Batch, Chunk: literature.MeasuredResNetInt8.Batch / 4, Variant: "cross-layer", Unit: a.Unit,
			PublishedPerSecond: literature.MeasuredResNetInt8.ThroughputPerSecond, Source: "CARRV 2021"},
		{What: "BERT-128, TVM", Network: literature.StandIns["B"], Batch: b.BatchSize, Chunk: b.TVMBatchesPerCluster, Variant: "tvm", Unit: b.Unit,
			PublishedPerSecond: b.TVMThroughputPerSecond, Source: "the paper's slides and Table 1"},
		{What: "BERT-128, GraphTurbo", Network: literature.StandIns["B"], Batch: b.BatchSize, Chunk: b.GraphTurboBatchesPerCluster, Variant: "cross-layer", Unit: b.Unit,
			PublishedPerSecond: literature.BertThroughput.Value, Source: "the paper's Table 1"},
		{What: "BERT-128, vendor's code", Network: literature.StandIns["B"], Batch: literature.MeasuredBERT.Batch, Chunk: b.GraphTurboBatchesPerCluster, Variant: "cross-layer", Unit: b.Unit,
			PublishedPerSecond: literature.MeasuredBERT.ThroughputPerSecond, Source: "CARRV 2021"},
	}
}

// Calibrator evaluates constants on one accelerator.
type Calibrator struct {
	base      *hardware.Spec
	constants []Constant
	figures   []CalibrationFigure
	runs      []*scheduler.Result // by CalibrationFigure.run
	// Evaluations counts the points at which S was computed.
	Evaluations int
}

// NewCalibrator makes the schedules. It fails if the accelerator has no matrix unit.
func NewCalibrator(ctx context.Context, spec *hardware.Spec) (*Calibrator, error) {
	if c, _ := matrixUnit(spec); c < 0 {
		return nil, fmt.Errorf("accelerator %q has no matrix unit, whose constants are to be fitted", spec.Name)
	}
	cal := &Calibrator{base: spec, constants: Constants(), figures: CalibrationSet()}
	runs := map[string]int{}
	for i := range cal.figures {
		f := &cal.figures[i]
		key := fmt.Sprint(f.Network, f.DType, f.Batch, f.Chunk, f.Variant)
		if n, ok := runs[key]; ok {
			f.run = n
			continue
		}
		src, err := network.Open(f.Network, network.Options{DType: f.DType})
		if err != nil {
			return nil, err
		}
		v, err := scheduler.Lookup(f.Variant)
		if err != nil {
			return nil, err
		}
		r, err := scheduler.Prepare(ctx, src, spec, f.Batch, v, scheduler.Options{Chunk: f.Chunk})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.What, err)
		}
		f.run = len(cal.runs)
		runs[key] = f.run
		cal.runs = append(cal.runs, r)
	}
	return cal, nil
}

// Values are the constants as the accelerator has them.
func (c *Calibrator) Values() []float64 {
	var x []float64
	for _, k := range c.constants {
		x = append(x, k.get(c.base))
	}
	return x
}

// spec is the accelerator with these constants.
func (c *Calibrator) spec(x []float64) *hardware.Spec {
	s := c.base.Clone()
	for i, k := range c.constants {
		k.set(s, x[i])
	}
	return s
}

// Residuals simulates the calibration set with constants x and returns it with our
// throughputs, and the sum of squared log errors.
func (c *Calibrator) Residuals(ctx context.Context, x []float64) ([]CalibrationFigure, float64, error) {
	c.Evaluations++
	spec := c.spec(x)
	if err := spec.Validate(); err != nil {
		return nil, 0, err
	}
	throughput := make([]float64, len(c.runs))
	g, inner := errgroup.WithContext(ctx)
	for i, r := range c.runs {
		g.Go(func() error {
			again, err := r.On(inner, spec)
			if err == nil {
				throughput[i] = again.ThroughputPerSecond()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, 0, err
	}
	figures := append([]CalibrationFigure(nil), c.figures...)
	sum := 0.0
	for i := range figures {
		f := &figures[i]
		f.ThroughputPerSecond = throughput[f.run]
		f.LogError = math.Log(f.ThroughputPerSecond / f.PublishedPerSecond)
		sum += f.LogError * f.LogError
	}
	return figures, sum, nil
}

// Minimise fits the constants: the simplex search from the middle of the ranges, and
// Polish from what it finds.
func (c *Calibrator) Minimise(ctx context.Context) ([]float64, error) {
	x := make([]float64, len(c.constants))
	var failed error
	values := func(u []float64) []float64 {
		for i, k := range c.constants {
			x[i] = k.at(u[i])
		}
		return x
	}
	problem := optimize.Problem{Func: func(u []float64) float64 {
		if failed != nil {
			return math.Inf(1)
		}
		_, s, err := c.Residuals(ctx, values(u))
		if err != nil {
			failed = err
			return math.Inf(1)
		}
		return s
	}}
	start := make([]float64, len(c.constants))
	for i := range start {
		start[i] = math.Pi / 4
	}
	result, err := optimize.Minimize(problem, start, &optimize.Settings{
		Converger: &optimize.FunctionConverge{Absolute: 2e-4, Iterations: 8},
		Recorder:  stopper{&failed},
	}, &optimize.NelderMead{SimplexSize: math.Pi / 8})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	return c.Polish(ctx, values(result.X))
}

// stopper ends a search when an evaluation has failed.
type stopper struct{ failed *error }

func (stopper) Init() error { return nil }

func (s stopper) Record(*optimize.Location, optimize.Operation, *optimize.Stats) error {
	return *s.failed
}

// Polish rounds x to the steps and moves it by one step of one constant at a time, to the
// neighbour with the least S, until none has less. A point that stays where it is, is what
// the procedure may yield.
func (c *Calibrator) Polish(ctx context.Context, x []float64) ([]float64, error) {
	best := make([]float64, len(x))
	for i, k := range c.constants {
		best[i] = k.onStep(x[i])
	}
	_, least, err := c.Residuals(ctx, best)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{fmt.Sprint(best): true}
	for moved := true; moved; {
		moved = false
		from := best
		for i, k := range c.constants {
			for _, d := range []float64{-k.Step, k.Step} {
				y := append([]float64(nil), from...)
				y[i] = k.onStep(y[i] + d)
				if seen[fmt.Sprint(y)] {
					continue
				}
				seen[fmt.Sprint(y)] = true
				_, s, err := c.Residuals(ctx, y)
				if err != nil {
					return nil, err
				}
				if s < least {
					best, least, moved = y, s, true
				}
			}
		}
	}
	return best, nil
}

// FittedConstant is a constant and what the fit made of it.
type FittedConstant struct {
	Name string `json:"name"`
	// Values are as a hardware file has them, with their units: the range, where the fit
	// began and where it ended.
	Lo    string `json:"lo"`
	Hi    string `json:"hi"`
	Why   string `json:"range_because"`
	Start string `json:"start"`
	Value string `json:"value"`
	// AtBound says that the fit would go on beyond the range.
	AtBound bool `json:"at_bound"`
	// Half and Double are S with the value halved and doubled, within the range; null if
	// nothing was fitted.
	Half   *float64 `json:"sum_at_half"`
	Double *float64 `json:"sum_at_double"`

	constant Constant
}

func fitted(k Constant, value float64) FittedConstant {
	return FittedConstant{Name: k.Name, Lo: k.text(k.Lo), Hi: k.text(k.Hi), Why: k.Why, Start: k.text(k.middle()), Value: k.text(value),
		AtBound: value <= k.Lo || value >= k.Hi, constant: k}
}

// Calibration is the outcome.
type Calibration struct {
	Hardware    string              `json:"hardware"`
	Method      string              `json:"method"`
	Constants   []FittedConstant    `json:"constants"`
	Figures     []CalibrationFigure `json:"figures"`
	Sum         float64             `json:"sum_of_squared_log_errors"` // S
	Evaluations int                 `json:"evaluations"`
	File        string              `json:"file,omitempty"` // where the constants were written, if anywhere
}

const (
	fitMethod      = "simplex search (Nelder and Mead) from the middle of the ranges, then steps of the rounding; least sum of squared log errors"
	residualMethod = "none: the constants are those of the file"
)

// Calibrate fits the constants of an accelerator; with fit false it only compares it,
// as it stands, with the published figures.
func Calibrate(ctx context.Context, spec *hardware.Spec, fit bool) (*Calibration, error) {
	c, err := NewCalibrator(ctx, spec)
	if err != nil {
		return nil, err
	}
	x := c.Values()
	if fit {
		if x, err = c.Minimise(ctx); err != nil {
			return nil, err
		}
	}
	out := &Calibration{Hardware: spec.Name, Method: residualMethod}
	if fit {
		out.Method = fitMethod
	}
	if out.Figures, out.Sum, err = c.Residuals(ctx, x); err != nil {
		return nil, err
	}
	for i, k := range c.constants {
		f := fitted(k, x[i])
		if fit {
			for _, v := range []struct {
				factor float64
				to     **float64
			}{{0.5, &f.Half}, {2, &f.Double}} {
				y := append([]float64(nil), x...)
				y[i] = min(max(v.factor*x[i], k.Lo), k.Hi)
				_, sum, err := c.Residuals(ctx, y)
				if err != nil {
					return nil, err
				}
				*v.to = &sum
			}
		}
		out.Constants = append(out.Constants, f)
	}
	out.Evaluations = c.Evaluations
	return out, nil
}

// Apply writes the constants into a hardware file, whose comments stay.
func (c *Calibration) Apply(name string, data []byte, spec *hardware.Spec) ([]byte, error) {
	core, unit := matrixUnit(spec)
	for _, k := range c.Constants {
		comment := fmt.Sprintf("fitted: dsasched calibrate; range %s to %s", k.Lo, k.Hi)
		var err error
		if data, err = hardware.SetField(name, data, k.constant.path(core, unit), k.Value, comment); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// CanApply reports whether the constants can be written into this file.
func CanApply(name string, data []byte, spec *hardware.Spec) error {
	c := Calibration{}
	for _, k := range Constants() {
		c.Constants = append(c.Constants, fitted(k, k.Lo))
	}
	_, err := c.Apply(name, data, spec)
	return err
}
