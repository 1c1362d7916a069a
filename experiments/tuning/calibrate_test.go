package tuning

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/literature"
	"github.com/dsasched/dsasched/hardware"
)

func calibrator(t *testing.T, preset string) *Calibrator {
	t.Helper()
	spec, err := hardware.Load(preset)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCalibrator(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The preset holds what the procedure yields: from there, its last part, which rounds
// and moves to the best neighbour, goes nowhere.
func TestPresetIsCalibrated(t *testing.T) {
	c := calibrator(t, "stcp920")
	got, err := c.Polish(context.Background(), c.Values())
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range c.constants {
		if want := c.Values()[i]; math.Abs(got[i]-want) > 1e-9 {
			t.Errorf("%s: the preset has %s, the procedure goes on to %s", k.Name, k.text(want), k.text(got[i]))
		}
	}
}

// The whole procedure, which takes minutes.
func TestCalibrationYieldsThePreset(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("skipped: TestPresetIsCalibrated has its last part")
	}
	c := calibrator(t, "stcp920")
	got, err := c.Minimise(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range c.constants {
		if want := c.Values()[i]; math.Abs(got[i]-want) > 1e-9 {
			t.Errorf("%s: the preset has %s, the procedure yields %s", k.Name, k.text(want), k.text(got[i]))
		}
	}
}

// stcp920-paper differs in the LB only.
func TestPaperPresetHasTheSameConstants(t *testing.T) {
	a, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hardware.Load("stcp920-paper")
	if err != nil {
		t.Fatal(err)
	}
	b.Name, b.Description, b.LB, b.LBWeightBytes = a.Name, a.Description, a.LB, a.LBWeightBytes
	if !reflect.DeepEqual(a, b) {
		t.Errorf("stcp920-paper differs from stcp920 in more than the LB:\n%+v\n%+v", a, b)
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
		for _, u := range []float64{-1e9, -3, 0, 0.1, math.Pi / 4, math.Pi / 2, 7, 1e6} {
			if v := k.at(u); v < k.Lo || v > k.Hi || k.onStep(v) < k.Lo || k.onStep(v) > k.Hi {
				t.Errorf("%s: %g leaves the range", k.Name, v)
			}
		}
		if lo, mid, hi := k.at(0), k.at(math.Pi/4), k.at(math.Pi/2); lo != k.Lo || hi != k.Hi || math.Abs(mid-k.middle()) > 1e-9 {
			t.Errorf("%s: from %g over %g to %g", k.Name, lo, mid, hi)
		}
		if got := k.get(spec); got < k.Lo || got > k.Hi || math.Abs(k.onStep(got)-got) > 1e-9 {
			t.Errorf("%s: the preset has %g, which the procedure can't yield", k.Name, got)
		}
		s := spec.Clone()
		v := k.onStep(k.Lo + 0.3*(k.Hi-k.Lo))
		k.set(s, v)
		if math.Abs(k.get(s)-v) > 1e-9 || s.Validate() != nil {
			t.Errorf("%s: %g becomes %g", k.Name, v, k.get(s))
		}
		if k.get(spec) == v && k.get(spec) != k.get(s) {
			t.Errorf("%s: setting it changes the original", k.Name)
		}
	}
}

// Only ResNet-50 and BERT-128, with figures that are published.
func TestCalibrationSet(t *testing.T) {
	list := CalibrationSet()
	if len(list) != 6 {
		t.Errorf("%d figures, want 6", len(list))
	}
	var published []float64
	for _, m := range literature.Models[:2] {
		published = append(published, m.TVMThroughputPerSecond)
	}
	for _, m := range literature.Measurements {
		published = append(published, m.ThroughputPerSecond)
	}
	published = append(published, literature.BertThroughput.Value)
	for _, f := range list {
		if f.Network != "resnet50" && f.Network != "bert-128" {
			t.Errorf("%s is not of the calibration set", f.Network)
		}
		if !slices.Contains(published, f.PublishedPerSecond) {
			t.Errorf("%s: %g is not published", f.What, f.PublishedPerSecond)
		}
	}
}

// What Apply writes reads as the fitted machine, and is what the presets are.
func TestApply(t *testing.T) {
	for _, preset := range []string{"stcp920", "stcp920-paper"} {
		data, err := hardware.PresetYAML(preset)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := hardware.Load(preset)
		if err != nil {
			t.Fatal(err)
		}
		c := &Calibration{}
		for _, k := range Constants() {
			c.Constants = append(c.Constants, fitted(k, k.get(spec)))
		}
		same, err := c.Apply(preset, data, spec)
		if err != nil {
			t.Fatal(err)
		}
		if string(same) != string(data) {
			t.Errorf("%s: with its own constants the file is not the same", preset)
		}
		for i, k := range Constants() {
			c.Constants[i] = fitted(k, k.Lo+2*k.Step)
		}
		out, err := c.Apply(preset, data, spec)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := hardware.Parse(preset, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range Constants() {
			if got, want := k.get(changed), k.Lo+2*k.Step; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s is %g, want %g", preset, k.Name, got, want)
			}
		}
		if n := strings.Count(string(out), "fitted: dsasched calibrate"); n != len(c.Constants) {
			t.Errorf("%s: %d marks of the fit, want %d", preset, n, len(c.Constants))
		}
	}
	// A file without the fields says so before anything is computed.
	data, err := hardware.PresetYAML("goya")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("goya")
	if err != nil {
		t.Fatal(err)
	}
	if err := CanApply("goya", data, spec); err == nil || !strings.Contains(err.Error(), "goya: ddr.activation_efficiency: missing") {
		t.Errorf("%v", err)
	}
	if _, err := NewCalibrator(context.Background(), &hardware.Spec{Name: "bare"}); err == nil || !strings.Contains(fmt.Sprint(err), "no matrix unit") {
		t.Errorf("%v", err)
	}
}
