package chips

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		n, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if n.Name != name {
			t.Errorf("%s calls itself %s", name, n.Name)
		}
		if _, err := hardware.Load(n.Device); err != nil {
			t.Error(err)
		}
	}
	if _, err := Load("v100x15"); !errors.Is(err, ErrUnknownPreset) || !strings.Contains(err.Error(), "v100x16") {
		t.Errorf("unknown preset: %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	data, err := PresetYAML("v100x16")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"devices: 16", "devices: 0", "devices: found 0, expected 1 to 65536"},
		{"devices: 16", "device_count: 16", "device_count"},
		{"bandwidth: 150GB/s", "bandwidth: fast", "link.bandwidth"},
		{"busy: 300", "busy: 10", "power.busy: found 10"},
		{"    64: 33", "    65: 33", "host.speedup: found 65"},
		{"    64: 33", "    64: 0", "host.speedup: found 0"},
		{"item: 9ms", "item: soon", "host.item"},
		{"link:", "network: {kind: ring}\nlink:", "f.yaml: not the description of a machine: line 15: field network not found"},
		{"devices: 16", "devices: many", "f.yaml: not the description of a machine: line "},
		{"link:", "link: 3\nlonk:", "line 15: cannot unmarshal !!int `3`"},
	} {
		text := strings.Replace(string(data), c.old, c.new, 1)
		if text == string(data) {
			t.Fatalf("%s is not in the preset", c.old)
		}
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.ContainsAny(err.Error(), "\n{;") {
			t.Errorf("%s: found %v, expected %q", c.new, err, c.want)
		}
	}
}

func Example() {
	n, err := Load("v100x16")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d times %s, %.0f GB/s between two, %d threads\n", n.Devices, n.Device,
		n.LinkBytesPerSecond/1e9, n.Host.Threads)
	// Output: 16 times v100, 150 GB/s between two, 64 threads
}

// What is accepted has figures that can be computed with, and every error names the file.
func FuzzParse(f *testing.F) {
	for _, name := range Presets() {
		data, err := PresetYAML(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("host: &a {speedup: {1: .nan, *a : 2}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse("f.yaml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Fatalf("%v", err)
			}
			return
		}
		host := Host{}
		if n.Host != nil {
			host = *n.Host
		}
		for _, x := range []float64{n.LinkBytesPerSecond, n.LinkSeconds, n.IdleWatts, n.BusyWatts, host.WattsPerThread,
			host.ItemSeconds} {
			if !(x >= 0 && x <= 1e18) {
				t.Fatalf("%+v", n)
			}
		}
		for _, s := range host.Speedups {
			if !(s.Factor > 0) {
				t.Fatalf("%+v", n.Host)
			}
		}
	})
}
