package calibration

import (
	"context"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func opened(t *testing.T, preset string) *calibrator {
	t.Helper()
	spec, err := hardware.Load(preset)
	if err != nil {
		t.Fatal(err)
	}
	return newCalibrator(context.Background(), spec)
}

// preset is what the procedure made of the preset's constants: those that it could not fit
// stand where they stand without a fit.
func preset(c *calibrator) (fit []bool) {
	for i, k := range c.constants {
		fit = append(fit, c.values()[i] != k.Prior)
	}
	return fit
}

// The preset holds what the procedure yields: from there, its last part, steps to the best
// neighbour, goes nowhere.
func TestPresetIsCalibrated(t *testing.T) {
	c := opened(t, "stcp920")
	got := c.minimise(context.Background(), c.values(), preset(c), all, false)
	for i, k := range c.constants {
		if want := c.values()[i]; math.Abs(got[i]-want) > 1e-9 {
			t.Errorf("%s: the preset has %s, the procedure goes on to %s", k.Name, k.Text(want), k.Text(got[i]))
		}
	}
}

// The whole procedure, which takes minutes.
func TestCalibrationYieldsThePreset(t *testing.T) {
	if testing.Short() || raceDetector || os.Getenv("DSASCHED_LONG") == "" {
		t.Skip("skipped without DSASCHED_LONG: TestPresetIsCalibrated has its last part")
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Calibrate(context.Background(), spec, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range Constants() {
		if want := k.Text(k.Get(spec)); got.Constants[i].Value != want {
			t.Errorf("%s: the preset has %s, the procedure yields %s", k.Name, want, got.Constants[i].Value)
		}
	}
	// What was left out is less off than without any fit.
	if best, none := choose(got.Validation), got.Validation[0]; len(none.Fitted) != 0 || best.Sum >= none.Sum {
		t.Errorf("%v is off by %g, nothing by %g", best.Fitted, best.Sum, none.Sum)
	}
}

// A network that is left out has no say in a fit, and the best of all sets of constants is
// the one that says most of what was left out.
func TestFoldsDoNotSeeWhatIsLeftOut(t *testing.T) {
	c := opened(t, "stcp920")
	ctx := context.Background()
	fit := []bool{true, false, false}
	without := func(f CalibrationFigure) bool { return f.Network != "mobilenetv2" }
	x := c.minimise(ctx, c.prior(), fit, without, true)
	for i := range c.figures {
		if c.figures[i].Network == "mobilenetv2" {
			c.figures[i].Published *= 100
		}
	}
	if y := c.minimise(ctx, c.prior(), fit, without, true); !slices.Equal(x, y) {
		t.Errorf("%v and %v", x, y)
	}
	list := []Candidate{{Sum: 3}, {Sum: 1, Fitted: []string{"a"}}, {Sum: 1, Fitted: []string{"b", "c"}}}
	if got := choose(list); len(got.Fitted) != 1 {
		t.Errorf("%v is chosen", got.Fitted)
	}
}

// The search finds the least of all points of the grid for one constant.
func TestSearchAgainstAllPoints(t *testing.T) {
	c := opened(t, "stcp920")
	ctx := context.Background()
	in := func(f CalibrationFigure) bool { return f.Network == "mobilenetv2" }
	got := c.minimise(ctx, c.prior(), []bool{false, true, false}, in, true)
	k := c.constants[1]
	best, least := 0.0, math.Inf(1)
	for v := k.Lo; v <= k.Hi+k.Step/2; v += k.Step {
		x := c.prior()
		x[1] = k.onStep(v)
		if _, s := c.residuals(ctx, x, in); s < least {
			best, least = x[1], s
		}
	}
	if math.Abs(got[1]-best) > 1e-9 {
		t.Errorf("the search yields %g, the best is %g", got[1], best)
	}
}

// In the set are TVM's throughputs of the known networks whose programs have as many
// kernels as Table 3 has results, within 20 %.
func TestCalibratedConfigurations(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range literature.Configurations() {
		src, err := network.Open(c.Network, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := recipes.Lookup("tvm")
		if err != nil {
			t.Fatal(err)
		}
		r, err := v.Prepare(context.Background(), src, spec, c.BatchSize, scheduler.Options{Chunk: c.TVMBatchesPerCluster})
		if err != nil {
			t.Fatal(err)
		}
		kernels, published := float64(len(r.Schedule.Grouping.Groups)), float64(literature.WritesOf(c.Label).TVM.DDR)
		if c.Doubt == "" && math.Abs(kernels/published-1) <= 0.2 {
			got += c.Label
		}
	}
	if got != literature.Calibrated {
		t.Errorf("%s have programs as Table 3, calibrated are %s", got, literature.Calibrated)
	}
}

// stcp920-paper differs in the L1 only.
func TestPaperPresetHasTheSameConstants(t *testing.T) {
	a, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hardware.Load("stcp920-paper")
	if err != nil {
		t.Fatal(err)
	}
	b.Name, b.Description, b.L1, b.L1WeightBytes = a.Name, a.Description, a.L1, a.L1WeightBytes
	if !reflect.DeepEqual(a, b) {
		t.Errorf("stcp920-paper differs from stcp920 in more than the L1:\n%+v\n%+v", a, b)
	}
}

// At most three constants, ranges that are ranges, values that a file can have.
func TestConstants(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	list := Constants()
	if len(list) > 3 {
		t.Errorf("%d constants are fitted, at most 3 may be", len(list))
	}
	for _, k := range list {
		for _, v := range []float64{-1e9, k.Lo, k.Prior, k.Hi, 1e6} {
			if v = k.onStep(v); v < k.Lo || v > k.Hi {
				t.Errorf("%s: %g leaves the range", k.Name, v)
			}
		}
		if got := k.Get(spec); got < k.Lo || got > k.Hi || math.Abs(k.onStep(got)-got) > 1e-9 {
			t.Errorf("%s: the preset has %g, which the procedure can't yield", k.Name, got)
		}
		s := spec.Clone()
		v := k.onStep(k.Lo + 0.3*(k.Hi-k.Lo))
		k.Set(s, v)
		if math.Abs(k.Get(s)-v) > 1e-9 || s.Validate() != nil {
			t.Errorf("%s: %g becomes %g", k.Name, v, k.Get(s))
		}
		if k.Get(spec) == v && k.Get(spec) != k.Get(s) {
			t.Errorf("%s: setting it changes the original", k.Name)
		}
	}
}

// Each published figure is there once.
func TestCalibrationSet(t *testing.T) {
	published := []float64{literature.BertThroughput.Value,
		literature.MeasuredResNetInt8.ThroughputPerSecond / literature.MeasuredResNet.ThroughputPerSecond}
	for _, m := range literature.Models {
		published = append(published, m.TVMThroughputPerSecond)
	}
	seen := map[float64]bool{}
	for _, f := range calibrationSet() {
		if seen[f.Published] || !slices.Contains(published, f.Published) {
			t.Errorf("%s: %g is there twice, or not published", f.What, f.Published)
		}
		seen[f.Published] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d figures, want 5", len(seen))
	}
}

// No configuration has less time for a result of TVM than a launch may take.
func TestLaunchBound(t *testing.T) {
	bound, label := launchBound()
	if math.Abs(1e6*bound-20.62) > 0.01 || label != "J" {
		t.Errorf("%g s by %s, want 12/184 s over 3 loops of 1054 results, J's", bound, label)
	}
	if got := 1e6 * perResult(literature.ConfigurationOf("F").Model); math.Abs(got-25.71) > 0.01 {
		t.Errorf("F's results take %g us, want 1024/131000 s over 4 loops of 76", got)
	}
}

// The presets say of each constant whether it is fitted, and within which range.
func TestPresetsSayWhatIsFitted(t *testing.T) {
	for _, preset := range []string{"stcp920", "stcp920-paper"} {
		data, err := hardware.PresetYAML(preset)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := hardware.Load(preset)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range Constants() {
			what := "fitted: dsasched calibrate"
			if k.Get(spec) == k.Prior {
				what = "ESTIMATE: no fit improves it (dsasched calibrate)"
			}
			line := fmt.Sprintf(`(?m): %s +# %s; range %s to %s$`, regexp.QuoteMeta(k.Text(k.Get(spec))),
				regexp.QuoteMeta(what), k.Text(k.Lo), k.Text(k.Hi))
			if !regexp.MustCompile(line).Match(data) {
				t.Errorf("%s: %s: no line %s", preset, k.Name, line)
			}
		}
	}
	_, err := Calibrate(context.Background(), &hardware.Spec{Name: "bare"}, false)
	if err == nil || !strings.Contains(err.Error(), "no matrix unit") {
		t.Errorf("%v", err)
	}
}
