package hardware

import (
	"reflect"
	"strings"
	"testing"
)

func TestSetField(t *testing.T) {
	const file = `name: x # a name
clock: 1GHz
clusters: 1
core_types:
  - {name: core, count: 1, units: [{name: mme, kind: matrix, rows: 8, cols: 8, rate: {f16: 1}, fill: 3}]}
  - name: other
    count: 2
    units:
      # what it costs to begin
      - name: v
        kind: vector
        lanes: 8
        rate: {f16: 1}
        fill: 4cycles   # ESTIMATE
        cycles_per_op: {simple: 1}
lb: {size: 1KiB, bandwidth: 1GB/s, latency: 0s}
gb: none
ddr: {size: 1GiB, bandwidth: 1GB/s, latency: 5ns}
core_link: {bandwidth: 1GB/s, latency: 0s}
ddr_link: {bandwidth: unlimited, latency: 0s}
launch: 10us                # ESTIMATE: range 5 to 70
sync: 1us
`
	for _, c := range []struct {
		name, path, value string
		line              string // afterwards
		get               func(*Spec) float64
		want              float64
	}{
		{"a comment gives way and keeps its column", "launch", "5.5us", "launch: 5.5us               # fitted",
			func(s *Spec) float64 { return s.LaunchSeconds }, 5.5e-6},
		{"no comment", "sync", "2us", "sync: 2us  # fitted", func(s *Spec) float64 { return s.SyncSeconds }, 2e-6},
		{"inside a mapping of one line", "ddr.latency", "6ns", "ddr: {size: 1GiB, bandwidth: 1GB/s, latency: 6ns}",
			func(s *Spec) float64 { return s.DDR.LatencySeconds }, 6e-9},
		{"of the second core type", "core_types[1].units[0].fill", "12cycles", "        fill: 12cycles  # fitted",
			func(s *Spec) float64 { return float64(s.CoreTypes[1].Units[0].FillCycles) }, 12},
	} {
		out, err := SetField("x.yaml", []byte(file), c.path, c.value, "fitted")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s, err := Parse("x.yaml", out)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.get(s); got != c.want {
			t.Errorf("%s: the value is %g, want %g", c.name, got, c.want)
		}
		before, after := strings.Split(file, "\n"), strings.Split(string(out), "\n")
		changed := 0
		for i := range before {
			if before[i] != after[i] {
				changed++
				if after[i] != c.line {
					t.Errorf("%s: the line is %q, want %q", c.name, after[i], c.line)
				}
			}
		}
		if len(before) != len(after) || changed != 1 {
			t.Errorf("%s: %d lines changed, want one", c.name, changed)
		}
	}
	for _, c := range []struct{ name, path, value, want string }{
		{"missing", "ddr.activation_efficiency", "0.5",
			"x.yaml: ddr.activation_efficiency: missing, expected a value that can be replaced by 0.5"},
		{"a mapping", "ddr", "1", "x.yaml: ddr: missing, expected a value that can be replaced by 1"},
		{"not possible", "launch", "-1us",
			`x.yaml:21: launch: found "-1us", expected a time of zero or more such as 84ns, 10us or 84cycles`},
		{"several in one line", "core_types[0].name", "c",
			"x.yaml:5: core_types[0].name: found 2 values with the key name in one line, expected one, that can be replaced"},
	} {
		if _, err := SetField("x.yaml", []byte(file), c.path, c.value, "fitted"); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := SetField("x.yaml", []byte("name: x\n"), "launch", "1us", ""); err == nil {
		t.Error("a file that is not valid is edited")
	}
}

func TestClone(t *testing.T) {
	a, err := Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	b := a.Clone()
	if !reflect.DeepEqual(a, b) {
		t.Fatal("the copy differs")
	}
	b.L1.SizeBytes, b.LLB.SizeBytes, b.DDR.SizeBytes = 1, 1, 1
	b.CoreTypes[0].Units[0].Rate["f16"] = 7
	b.CoreTypes[0].Units[1].CyclesPerOp[OpSimple] = 7
	b.CoreTypes[0].Count = 7
	if again, _ := Load("stcp920"); !reflect.DeepEqual(a, again) {
		t.Error("a change of the copy shows in the original")
	}
}
