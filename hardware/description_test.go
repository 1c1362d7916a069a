package hardware_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

func describe(t *testing.T, name string) *hardware.Description {
	t.Helper()
	d, err := hardware.Describe(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Unchanged, a description is what Load reads; written out, it is so again.
func TestDescriptionIsThePreset(t *testing.T) {
	for _, name := range hardware.Presets() {
		want, err := hardware.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		d := describe(t, name)
		got, err := d.Spec()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v is not %+v", name, err, got, want)
		}
		data, err := d.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if got, err = hardware.Parse(name, data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s written: %v", name, err)
		}
		// Each field takes the value that it has.
		for _, f := range d.Fields() {
			v, err := d.Value(f)
			if err != nil {
				t.Fatal(err)
			}
			same, err := d.With(f, v)
			if err != nil {
				t.Fatalf("%s: %s=%s: %v", name, f, v, err)
			}
			if got, err := same.Spec(); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s=%s changes the accelerator: %v", name, f, v, err)
			}
		}
	}
}

func TestDescriptionWith(t *testing.T) {
	d := describe(t, "stcp920")
	for _, c := range []struct {
		field, value string
		path, text   string
		read         func(*hardware.Spec) any
		want         any
	}{
		{"gb.size", "4MiB", "gb.size", "4MiB", func(s *hardware.Spec) any { return s.LLB.SizeBytes },
			hardware.Bytes(4 << 20)},
		{"llb_bytes", "16MiB", "gb.size", "16MiB", func(s *hardware.Spec) any { return s.LLB.SizeBytes },
			hardware.Bytes(16 << 20)},
		{"llb.size", "*2", "gb.size", "16MiB", func(s *hardware.Spec) any { return s.LLB.SizeBytes },
			hardware.Bytes(16 << 20)},
		{"l1_bytes", "*0.1", "lb.size", "102KiB", func(s *hardware.Spec) any { return s.L1.SizeBytes },
			hardware.Bytes(102 << 10)},
		{"ddr_bandwidth", "x0.5", "ddr.bandwidth", "54GB/s",
			func(s *hardware.Spec) any { return s.DDR.BandwidthBytesPerSecond }, 54e9},
		{"cores", "*0.5", "core_types[0].count", "4", func(s *hardware.Spec) any { return s.CoreTypes[0].Count }, 4},
		{"core_types.core.units.mme.rows", "32", "core_types[0].units[0].rows", "32",
			func(s *hardware.Spec) any { return s.CoreTypes[0].Units[0].Rows }, 32},
		{"core_link.broadcast", "false", "core_link.broadcast", "false",
			func(s *hardware.Spec) any { return s.CoreLink.Broadcast }, false},
		{"ddr_link.bandwidth", "64GB/s", "ddr_link.bandwidth", "64GB/s",
			func(s *hardware.Spec) any { return s.DDRLink.BandwidthBytesPerSecond }, 64e9},
		{"launch", "*2", "launch", "41us", func(s *hardware.Spec) any { return s.LaunchSeconds }, 41e-6},
	} {
		changed, err := d.With(c.field, c.value)
		if err != nil {
			t.Errorf("%s=%s: %v", c.field, c.value, err)
			continue
		}
		path, err := d.Field(c.field)
		text, _ := changed.Value(c.field)
		if err != nil || path != c.path || text != c.text {
			t.Errorf("%s=%s: %s is %q (%v), want %s %q", c.field, c.value, path, text, err, c.path, c.text)
		}
		spec, err := changed.Spec()
		if err != nil {
			t.Errorf("%s=%s: %v", c.field, c.value, err)
			continue
		}
		if got := c.read(spec); got != c.want {
			t.Errorf("%s=%s: %v, want %v", c.field, c.value, got, c.want)
		}
		if spec, err = d.Spec(); err != nil || c.read(spec) == c.want {
			t.Errorf("%s=%s: the description that it was made from has changed too (%v)", c.field, c.value, err)
		}
	}
}

func TestDescriptionErrors(t *testing.T) {
	d := describe(t, "stcp920")
	for _, c := range []struct{ field, value, want string }{
		{"gb.sise", "4MiB", `unknown field "gb.sise" of preset stcp920 (did you mean gb.size?)`},
		{"", "1", `unknown field ""`},
		{"lb", "none", `unknown field "lb"`}, // has fields, is none
		{"description", "x", `unknown field "description"`},
		{"gb.size", "4Mib", `gb.size: found "4Mib", expected a size in B, KiB, MiB`},
		{"gb.size", "", `gb.size: found nothing, expected a size above zero`},
		{"gb.size", "[4]", `gb.size: found "[4]", expected a size`},
		{"gb.size", "*two", `gb.size: found "*two", expected a size`},
		{"gb.bandwidth", "4MiB", `gb.bandwidth: found "4MiB", expected a bandwidth`},
		{"cores", "*0.3", `core_types[0].count: found "2.4", expected a whole number`},
		{"clusters", "0", `clusters: found "0", expected`},
		{"core_link.broadcast", "*2", `core_link.broadcast: found "true", expected a number`},
		{"lb.size", "*1000000000000000000000", `lb.size: found "1MiB", expected a number`},
	} {
		changed, err := d.With(c.field, c.value)
		if err == nil {
			_, err = changed.Spec()
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%s: %v, want %s", c.field, c.value, err, c.want)
		}
	}
}

// What another field makes of a change stands at its own line.
func TestDescriptionNamesTheOtherField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chip.yaml")
	preset, err := hardware.PresetYAML("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(preset), "count: 8 ", "count: 8\n    grid: 2x4 ", 1)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	d := describe(t, file)
	if !slices.Contains(d.Fields(), "core_types[0].grid") {
		t.Fatalf("no grid among %q", d.Fields())
	}
	changed, err := d.With("cores", "6")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = changed.Spec(); err == nil || !strings.Contains(err.Error(), "grid") {
		t.Errorf("6 cores in a grid of 2x4: %v", err)
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"64KiB", 65536, true}, {"1.5 GB/s", 1.5e9, true}, {"10us", 1e-5, true}, {"1.0GHz", 1e9, true}, {"8", 8, true},
		{"76cycles", 76, true}, {"true", 0, false}, {"none", 0, false}, {"9x12", 0, false}, {"4Mib", 0, false},
	} {
		if v, ok := hardware.Number(c.text); v != c.want || ok != c.ok {
			t.Errorf("%s: %g, %t", c.text, v, ok)
		}
	}
}

func ExampleDescription_With() {
	d, err := hardware.Describe("stcp920")
	if err != nil {
		panic(err)
	}
	larger, err := d.With("llb_bytes", "*2")
	if err != nil {
		panic(err)
	}
	spec, err := larger.Spec()
	if err != nil {
		panic(err)
	}
	fmt.Println(spec.Name, spec.LLB.SizeBytes)
	// Output: stcp920 16MiB
}
