package hardware_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

// Each estimate of a preset that can slow the machine down has a range, and its fast form is a machine with nothing
// left to speed up.
func TestFast(t *testing.T) {
	for _, name := range hardware.Presets() {
		d, err := hardware.Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range d.Fields() {
			comment, _ := d.Comment(field)
			value, _ := d.Value(field)
			n, isNumber := hardware.Number(value)
			switch {
			case !strings.Contains(comment, "ESTIMATE") || !isNumber || n == 0 || strings.HasPrefix(field, "energy"),
				field == "ddr.size", strings.HasSuffix(field, "in_flight"), strings.HasSuffix(field, "operands"): // no bound has it
			case !strings.Contains(comment, " range "):
				t.Errorf("%s: %s is %q, expected a range", name, field, comment)
			}
		}
		spec, err := d.Spec()
		if err != nil {
			t.Fatal(err)
		}
		machines := []*hardware.Spec{spec}
		if raised, err := hardware.Raise(spec); err == nil {
			machines = append(machines, raised)
		}
		for _, s := range machines {
			fast := s.Fast()
			if err := fast.Validate(); err != nil || len(fast.Estimates()) > 0 {
				t.Errorf("%s: %v, %q left", s.Name, err, fast.Estimates())
			}
			for _, dtype := range []string{"f16", "i8", "f32"} {
				if a, b := s.PeakMACsPerSecond(dtype), fast.PeakMACsPerSecond(dtype); b < a*(1-1e-12) {
					t.Errorf("%s: peak %g of %s, expected at least %g", s.Name, b, dtype, a)
				}
			}
		}
	}
}

func TestFastEnds(t *testing.T) {
	data, err := hardware.PresetYAML("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, c := range []struct{ from, to, want string }{
		{"", "", "unit mme (matrix): 32 x 32; rate f16 2 i8 4; fill 23cycles"},
		{"latency: 150ns              # ESTIMATE: LPDDR4X behind a DMA engine; range 100 to 300", "latency: 150ns # ESTIMATE",
			"DDR 16GiB, 108GB/s, latency 0ns, for activations at 0.69 of it (chip)"},
		{"range 100 to 300", "range 0.1us to 0.3us", "DDR 16GiB, 108GB/s, latency 100ns, for activations at 0.69 of it (chip)"},
		{"clock: 1.0GHz                 # published: product manual", "clock: 1GHz # ESTIMATE; range 0.8 to 2", "sync 25ns"},
		{"broadcast: true             # second hand", "broadcast: false # ESTIMATE",
			"core link 64GB/s per direction with broadcast, latency 68ns"},
		{"bandwidth: 256GB/s          # single source", "bandwidth: 256GB/s # ESTIMATE, range 200 to 512",
			"LLB 8MiB, 512GB/s, latency 0ns (per cluster)"},
	} {
		if !strings.Contains(text, c.from) {
			t.Fatalf("no %q", c.from)
		}
		s, err := hardware.Parse("x", []byte(strings.Replace(text, c.from, c.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if list := s.Estimates(); !slices.Contains(list, c.want) {
			t.Errorf("with %q: %q, expected %q", c.to, list, c.want)
		}
	}
	// What is fitted to measurements stays, and so does what a user says.
	s, err := hardware.Parse("x", data)
	if err != nil || s.Fast().LaunchSeconds != s.LaunchSeconds {
		t.Errorf("launch at %g of %g (%v)", s.Fast().LaunchSeconds, s.LaunchSeconds, err)
	}
	d, err := hardware.Describe("stcp920")
	if err == nil {
		d, err = d.With("ddr.latency", "160ns")
	}
	if err == nil {
		s, err = d.Spec()
	}
	if err != nil || s.Fast().DDR.LatencySeconds != 160e-9 {
		t.Errorf("a given latency at %g (%v)", s.Fast().DDR.LatencySeconds, err)
	}
}
