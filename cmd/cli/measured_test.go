package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/systems/measured/calibration"
)

// The residuals of the built-in accelerator, as text and as JSON.
func TestCalibrateResiduals(t *testing.T) {
	var a calibration.Calibration
	if err := json.Unmarshal([]byte(answer(t, "calibrate", "--residuals", "--json")), &a); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range a.Figures {
		sum += f.LogError * f.LogError
	}
	if len(a.Figures) != 5 || len(a.Constants) != 3 || sum <= 0 || sum-a.Sum > 1e-9 || a.Sum-sum > 1e-9 ||
		a.Simulations != 6 {
		t.Errorf("%+v", a)
	}
	for _, k := range a.Constants {
		if k.Half != nil || k.Double != nil || k.Value == "" || k.Why == "" {
			t.Errorf("%+v", k)
		}
	}
	var b bytes.Buffer
	writeCalibration(&b, &a)
	text := b.String()
	for _, want := range []string{"launch", "5us to 20.5us", "ddr.activation_efficiency", "mme.block", "resnet50, TVM",
		"Sum of squared log errors", "none: the constants"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestCalibrateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := callContext(t, ctx, "calibrate"); r.status != exitInterrupted || r.stdout != "" {
		t.Errorf("%+v", r)
	}
}
