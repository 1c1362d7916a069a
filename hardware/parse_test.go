package hardware

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func example(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// with replaces one part of the example.
func with(t testing.TB, old, new string) string {
	t.Helper()
	text := example(t)
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%q is %d times in the example", old, n)
	}
	return strings.Replace(text, old, new, 1)
}

// without drops the only line that begins with the text.
func without(t testing.TB, prefix string) string {
	t.Helper()
	var kept []string
	lines := strings.SplitAfter(example(t), "\n")
	for _, l := range lines {
		if !strings.HasPrefix(l, prefix) {
			kept = append(kept, l)
		}
	}
	if len(kept) != len(lines)-1 {
		t.Fatalf("%q begins %d lines of the example", prefix, len(lines)-len(kept))
	}
	return strings.Join(kept, "")
}

func TestParseExample(t *testing.T) {
	got, err := Parse("my.yaml", []byte(example(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Spec{
		Name: "my-npu", Description: "an example", ClockHz: 1e9, Clusters: 4,
		CoreTypes: []CoreType{{Name: "core", Count: 8, HasL1: true, Units: []Unit{
			{Name: "mme", Kind: Matrix, Rows: 64, Cols: 32, FillCycles: 25, Rate: map[string]float64{"f16": 1, "i8": 2},
				fast: ends{}},
			{Name: "vme", Kind: Vector, Lanes: 64, FillCycles: 10, Rate: map[string]float64{"f16": 1, "f32": 0.5},
				CyclesPerOp: map[string]float64{OpSimple: 1, OpMove: 1}, fast: ends{}},
			{Name: "vector-core", Kind: Special, SharesWith: "vme", Lanes: 64, FillCycles: 20,
				Rate:        map[string]float64{"f16": 1, "f32": 0.5},
				CyclesPerOp: map[string]float64{OpSimple: 1, OpMove: 1, OpSpecial: 4}, fast: ends{}},
		}}},
		L1:            &Memory{SizeBytes: 1 << 20, BandwidthBytesPerSecond: 512e9},
		L1WeightBytes: 256 << 10,
		LLB:           &Memory{SizeBytes: 8 << 20, BandwidthBytesPerSecond: 256e9},
		DDR:           &Memory{SizeBytes: 16 << 30, BandwidthBytesPerSecond: 108e9, LatencySeconds: 150e-9},
		CoreLink:      Link{BandwidthBytesPerSecond: 64e9, LatencySeconds: 76e-9, Broadcast: true},
		LaunchSeconds: 10e-6, SyncSeconds: 100e-9, fast: ends{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestParseForms(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		ok         func(*Spec) bool
	}{
		{"network", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: ring, memory: [0, 7]}"),
			func(s *Spec) bool {
				return reflect.DeepEqual(s.Network, &Network{Kind: Ring, Memory: []int{0, 7}}) &&
					strings.Contains(s.Describe(), "  network   ring, memory beside cores 0 7\n") && s.Clone().Network != s.Network
			}},
		{"all-to-all", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: all-to-all}"),
			func(s *Spec) bool { return s.Network == nil }},
		{"plain bytes", with(t, "1MiB ", "65536 "), func(s *Spec) bool { return s.L1.SizeBytes == 65536 }},
		{"quoted bytes", with(t, "1MiB ", "'65536'"), func(s *Spec) bool { return s.L1.SizeBytes == 65536 }},
		{"fraction of MiB", with(t, "1MiB ", "1.25 MiB"), func(s *Spec) bool { return s.L1.SizeBytes == 5<<18 }},
		{"decimal prefix", with(t, "1MiB ", "0.1MB"), func(s *Spec) bool { return s.L1.SizeBytes == 100_000 }},
		{"largest size", with(t, "16GiB", "1024TiB"), func(s *Spec) bool { return s.DDR.SizeBytes == 1<<50 }},
		{"no weights", with(t, "256KiB ", "none"), func(s *Spec) bool { return s.L1WeightBytes == 0 }},
		{"weights left out", without(t, "  weights:"), func(s *Spec) bool { return s.L1WeightBytes == 0 }},
		{"exponent", with(t, "108GB/s", "1.08e11B/s"), func(s *Spec) bool { return s.DDR.BandwidthBytesPerSecond == 108e9 }},
		{"space before unit", with(t, "108GB/s", "108 GB/s"),
			func(s *Spec) bool { return s.DDR.BandwidthBytesPerSecond == 108e9 }},
		{"binary bandwidth", with(t, "108GB/s", "1GiB/s"),
			func(s *Spec) bool { return s.DDR.BandwidthBytesPerSecond == 1<<30 }},
		{"microseconds", with(t, "150ns", "0.15µs"), func(s *Spec) bool { return s.DDR.LatencySeconds == 0.15/1e6 }},
		{"negative zero", with(t, "150ns", "-0ns"), func(s *Spec) bool { return !math.Signbit(s.DDR.LatencySeconds) }},
		{"one cycle", with(t, "150ns", "1 cycle"), func(s *Spec) bool { return s.DDR.LatencySeconds == 1e-9 }},
		{"clock after use", "core_link: {bandwidth: 4B/cycle, latency: 3cycles}\n" +
			strings.Replace(strings.Replace(example(t),
				"core_link:", "#", 1), "  bandwidth: 64GB/s         # per direction\n  latency: 76cycles\n  broadcast: true",
				"#", 1),
			func(s *Spec) bool {
				return s.CoreLink == Link{BandwidthBytesPerSecond: 4e9, LatencySeconds: 3e-9}
			}},
		{"plain fill", with(t, "25cycles", "25"), func(s *Spec) bool { return s.CoreTypes[0].Units[0].FillCycles == 25 }},
		{"no fill", with(t, "25cycles", "0cycles"), func(s *Spec) bool { return s.CoreTypes[0].Units[0].FillCycles == 0 }},
		{"a gap between blocks", with(t, "25cycles", "25cycles\n        block: 3.5cycles"),
			func(s *Spec) bool { return s.CoreTypes[0].Units[0].BlockCycles == 3.5 }},
		{"a clock and least cycles of a unit", with(t, "25cycles", "25cycles\n        clock: 2GHz\n        least: 64cycles"),
			func(s *Spec) bool {
				return s.CoreTypes[0].Units[0].ClockHz == 2e9 && s.CoreTypes[0].Units[0].LeastCycles == 64
			}},
		{"commands in flight", with(t, "25cycles", "25cycles\n        in_flight: 5"),
			func(s *Spec) bool { return s.CoreTypes[0].Units[0].InFlight == 5 }},
		{"products that are waited for", with(t, "25cycles", "25cycles\n        synchronous: true"),
			func(s *Spec) bool {
				return s.CoreTypes[0].Units[0].Synchronous && strings.Contains(s.Describe(), "; synchronous")
			}},
		{"a clock under load", example(t) + "clock_under_load: 600MHz\n", func(s *Spec) bool {
			return s.LoadClockHz == 600e6 && strings.Contains(s.Describe(), "matrix units at 600MHz")
		}},
		{"operands in turn", with(t, "25cycles", "25cycles\n        operands: 80GB/s\n        results: 8192"),
			func(s *Spec) bool {
				return s.CoreTypes[0].Units[0].OperandBytesPerSecond == 80e9 && s.CoreTypes[0].Units[0].ResultsHeld == 8192
			}},
		{"gap, start and host", example(t) + "gap: 800ns\nmatrix_start: 1us\nhost: 0.1ms\n", func(s *Spec) bool {
			return s.GapSeconds == 800e-9 && s.MatrixStartSeconds == 1e-6 && s.HostSeconds == 1e-4
		}},
		{"no gap between blocks", with(t, "25cycles", "25cycles\n        block: 0"),
			func(s *Spec) bool { return s.CoreTypes[0].Units[0].BlockCycles == 0 }},
		{"a share for activations", with(t, "150ns", "150ns\n  activation_efficiency: 0.8"),
			func(s *Spec) bool { return s.DDRActivationEfficiency == 0.8 }},
		{"all of it for activations", with(t, "150ns", "150ns\n  activation_efficiency: 1"),
			func(s *Spec) bool { return s.DDRActivationEfficiency == 1 }},
		{"DDR link of a bandwidth", with(t, "unlimited", "32GB/s"),
			func(s *Spec) bool { return s.DDRLink.BandwidthBytesPerSecond == 32e9 }},
		{"no broadcast", without(t, "  broadcast:"), func(s *Spec) bool { return !s.CoreLink.Broadcast }},
		{"no description", without(t, "description:"), func(s *Spec) bool { return s.Description == "" }},
		{"folded description", with(t, "an example     # optional, one line", ">\n  an\n  example"),
			func(s *Spec) bool { return s.Description == "an example" }},
		{"has_lb left out", without(t, "    has_lb:"), func(s *Spec) bool { return s.CoreTypes[0].HasL1 }},
		{"a grid", with(t, "count: 8", "count: 8\n    grid: 2x4"),
			func(s *Spec) bool { return slices.Equal(s.CoreTypes[0].Grid, []int{2, 4}) }},
		{"DOS line ends", strings.ReplaceAll(example(t), "\n", "\r\n"), func(s *Spec) bool { return s.Name == "my-npu" }},
		{"byte order mark", "\ufeff" + example(t), func(s *Spec) bool { return s.Name == "my-npu" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Parse("my.yaml", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if !tc.ok(s) {
				t.Errorf("wrong value in\n%s", s.Describe())
			}
		})
	}
}

// l1None is the example without local buffers.
func l1None(t testing.TB) string {
	text := without(t, "    has_lb:")
	from, to := strings.Index(text, "lb:   "), strings.Index(text, "gb:   ")
	return text[:from] + "lb: none\n\n" + text[to:]
}

func TestParseNoL1(t *testing.T) {
	s, err := Parse("my.yaml", []byte(l1None(t)))
	if err != nil {
		t.Fatal(err)
	}
	if s.L1 != nil || s.CoreTypes[0].HasL1 || s.L1TotalBytes() != 0 {
		t.Errorf("LB = %v, HasLB = %v, LBTotalBytes() = %v, want none", s.L1, s.CoreTypes[0].HasL1, s.L1TotalBytes())
	}
}

func TestParseErrors(t *testing.T) {
	const dtypeList = "f64, f32, f16, bf16, i8, u8, i16, i32, i64, bool, f8"
	gb := "  size: 8MiB\n  bandwidth: 256B/cycle\n  latency: 0ns\n"
	for _, tc := range []struct {
		name, text string
		want       string // all lines of the error
	}{
		// Fields.
		{"unknown field", with(t, "clusters:", "cluster:"),
			"my.yaml:1: clusters: missing, expected a whole number from 1 to 1024\n" +
				`my.yaml:4: cluster: found an unknown field, expected one of name, description, clock, clock_under_load, clusters, core_types, lb, gb, ddr, core_link, ddr_link, launch, sync, gap, matrix_start, host, energy`},
		{"unknown field below", with(t, "  latency: 76cycles", "  delay: 76cycles"),
			"my.yaml:47: core_link.latency: missing, expected a time such as 84ns, 10us or 84cycles\n" +
				"my.yaml:49: core_link.delay: found an unknown field, expected one of bandwidth, latency, broadcast, in_flight, network"},
		{"unknown field in a unit", with(t, "        rows: 64", "        row: 64"),
			"my.yaml:11: core_types[0].units[0].rows: missing, expected a whole number from 1 to 65536\n" +
				"my.yaml:13: core_types[0].units[0].row: found an unknown field, expected one of name, kind, shares_with, clock, rows, cols, lanes, rate, fill, block, least, in_flight, synchronous, operands, results, cycles_per_op"},
		{"weights of GB", with(t, "  size: 8MiB", "  size: 8MiB\n  weights: 1MiB"),
			"my.yaml:39: gb.weights: found an unknown field, expected one of size, bandwidth, latency"},
		{"strange key", with(t, "clusters:", "\"a\\nb\": 1\nclusters:"),
			`my.yaml:4: "a\nb": found an unknown field, expected one of name, description, clock, clock_under_load, clusters, core_types, lb, gb, ddr, core_link, ddr_link, launch, sync, gap, matrix_start, host, energy`},
		{"list as key", with(t, "clusters:", "[a, b]: 1\nclusters:"),
			"my.yaml:4: found a list as a key, expected one of name, description, clock, clock_under_load, clusters, core_types, lb, gb, ddr, core_link, ddr_link, launch, sync, gap, matrix_start, host, energy"},
		{"duplicate key", with(t, "launch:", "clock: 2GHz\nlaunch:"),
			"my.yaml:56: clock: found a duplicate, expected it only once (first in line 3)"},
		{"duplicate key below", with(t, "  size: 16GiB", "  size: 16GiB\n  size: 16GiB"),
			"my.yaml:44: ddr.size: found a duplicate, expected it only once (first in line 43)"},
		{"duplicate dtype", with(t, "f16: 1, i8: 2", "f16: 1, f16: 2"),
			"my.yaml:15: core_types[0].units[0].rate.f16: found a duplicate, expected it only once (first in line 15)"},
		{"no value", with(t, "clusters: 4", "clusters:"),
			"my.yaml:4: clusters: found nothing, expected a whole number from 1 to 1024"},
		{"list for a number", with(t, "clusters: 4", "clusters: [4]"),
			"my.yaml:4: clusters: found a list, expected a whole number from 1 to 1024"},
		{"tag", with(t, "clusters: 4", "clusters: !!int 4"),
			`my.yaml:4: clusters: found a value with the tag "!!int", expected a whole number from 1 to 1024`},

		// Missing ones.
		{"no name", without(t, "name:"), "my.yaml:1: name: missing, expected a name for the accelerator"},
		{"no clock", without(t, "clock:"), "my.yaml:1: clock: missing, expected a clock such as 1.0GHz"},
		{"no launch", without(t, "launch:"), "my.yaml:1: launch: missing, expected a time such as 84ns, 10us or 84cycles"},
		{"no DDR size", with(t, "  size: 16GiB\n", ""),
			"my.yaml:42: ddr.size: missing, expected a size above zero such as 64KiB"},
		{"no GB", with(t, "gb:    ", "# "+"gb:    "), // its fields then belong to lb
			"my.yaml:1: gb: missing, expected none or a mapping with size, bandwidth, latency\n" +
				"my.yaml:38: lb.size: found a duplicate, expected it only once (first in line 32)\n" +
				"my.yaml:39: lb.bandwidth: found a duplicate, expected it only once (first in line 34)\n" +
				"my.yaml:40: lb.latency: found a duplicate, expected it only once (first in line 35)"},
		{"no core link", with(t, "core_link:", "#"),
			"my.yaml:1: core_link: missing, expected a mapping with bandwidth, latency, broadcast, in_flight, network\n" +
				"my.yaml:48: ddr.bandwidth: found a duplicate, expected it only once (first in line 44)\n" +
				"my.yaml:49: ddr.latency: found a duplicate, expected it only once (first in line 45)\n" +
				"my.yaml:50: ddr.broadcast: found an unknown field, expected one of size, bandwidth, activation_efficiency, latency"},
		{"no unit name", with(t, "- name: vme\n        kind", "- kind"),
			"my.yaml:17: core_types[0].units[1].name: missing, expected a name for the unit"},
		{"no kind", with(t, "        kind: vector\n", ""),
			"my.yaml:17: core_types[0].units[1].kind: missing, expected matrix, vector or special"},
		{"no lanes", with(t, "        lanes: 64           # elements per cycle at rate 1\n", ""),
			"my.yaml:17: core_types[0].units[1].lanes: missing, expected a whole number from 1 to 65536"},
		{"no unit that moves", with(t, "cycles_per_op: {simple: 1, move: 1}", "cycles_per_op: {simple: 1}"),
			"my.yaml:22: core_types[0].units[1].cycles_per_op: found no move, expected one, as no other unit of the cores does " +
				"these operations"},
		{"no cycles per op", with(t, "        cycles_per_op: {simple: 1, move: 1}\n", ""),
			"my.yaml:17: core_types[0].units[1].cycles_per_op: missing, expected a mapping with a number for any operation class of simple, special, move"},

		// Sizes.
		{"zero size", with(t, "1MiB ", "0KiB "),
			`my.yaml:32: lb.size: found "0KiB", expected a size above zero such as 64KiB`},
		{"negative size", with(t, "8MiB", "-8MiB"),
			`my.yaml:38: gb.size: found "-8MiB", expected a size above zero such as 64KiB`},
		{"size in KB", with(t, "1MiB ", "64KB "),
			`my.yaml:32: lb.size: found "64KB", expected KiB (1024 bytes) or kB (1000 bytes)`},
		{"size in cycles", with(t, "1MiB ", "64cycles "),
			`my.yaml:32: lb.size: found "64cycles", expected a size in B, KiB, MiB, GiB, TiB, kB, MB, GB or TB`},
		{"half a byte", with(t, "1MiB ", "0.5 "), `my.yaml:32: lb.size: found "0.5", expected a whole number of bytes`},
		{"size with an exponent", with(t, "1MiB ", "1e999999999KiB "),
			`my.yaml:32: lb.size: found "1e999999999KiB", expected a size without an exponent, such as 64KiB`},
		{"size beyond int64", with(t, "16GiB", "99999999TiB"),
			`my.yaml:43: ddr.size: found "99999999TiB", expected a size of at most 1024TiB`},
		{"size too large", with(t, "16GiB", "1025TiB"),
			`my.yaml:43: ddr.size: found "1025TiB", expected a size of at most 1024TiB`},
		{"size NaN", with(t, "16GiB", ".nan"),
			`my.yaml:43: ddr.size: found ".nan", expected a size above zero such as 64KiB`},
		{"LB too large together", with(t, "1MiB ", "100TiB"),
			`my.yaml:32: lb.size: found "100TiB", expected at most 1024TiB for all 32 on the chip together`},
		{"zero weights", with(t, "256KiB ", "0 "),
			`my.yaml:33: lb.weights: found "0", expected a size above zero such as 64KiB, or none`},
		{"negative weights", with(t, "256KiB ", "-1KiB "),
			`my.yaml:33: lb.weights: found "-1KiB", expected a size above zero such as 64KiB, or none`},
		{"long value", with(t, "16GiB", strings.Repeat("x", 500)),
			`my.yaml:43: ddr.size: found "` + strings.Repeat("x", 60) + `"..., expected a size above zero such as 64KiB`},

		{"no such network", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: star}"),
			`my.yaml:50: core_link.network.kind: found "star", expected all-to-all, bus, ring, mesh or torus, the first without memory`},
		{"mesh of a line", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: mesh}"),
			`my.yaml:7: core_types[0].grid: found "", expected two extents or more, as core_link.network is a mesh`},
		{"memory nowhere", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: bus, memory: [0, 8]}"),
			`my.yaml:50: core_link.network.memory: found 8, expected different cores from 0 to 7`},
		{"memory twice", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: bus, memory: [1, 1]}"),
			`my.yaml:50: core_link.network.memory: found 1, expected different cores from 0 to 7`},
		{"no memory", with(t, "latency: 76cycles", "latency: 76cycles\n  network: {kind: bus, memory: [x]}"),
			`my.yaml:50: core_link.network.memory: found "x", expected a list of numbers of cores, counted from 0, beside which the memory is`},

		// Bandwidths, times, clock.
		{"zero bandwidth", with(t, "108GB/s", "0GB/s"),
			`my.yaml:44: ddr.bandwidth: found "0GB/s", expected a bandwidth above zero such as 108GB/s or 64B/cycle`},
		{"negative bandwidth", with(t, "64GB/s", "-64GB/s"),
			`my.yaml:48: core_link.bandwidth: found "-64GB/s", expected a bandwidth above zero such as 108GB/s or 64B/cycle`},
		{"NaN bandwidth", with(t, "64GB/s", "NaN"),
			`my.yaml:48: core_link.bandwidth: found "NaN", expected a bandwidth above zero such as 108GB/s or 64B/cycle`},
		{"bandwidth without unit", with(t, "108GB/s", "108"),
			`my.yaml:44: ddr.bandwidth: found "108", expected a bandwidth above zero such as 108GB/s or 64B/cycle`},
		{"infinite bandwidth", with(t, "108GB/s", "1e999GB/s"),
			`my.yaml:44: ddr.bandwidth: found "1e999GB/s", expected at most 2000TB/s`},
		{"bandwidth of a forgotten prefix", with(t, "108GB/s", "108B/s"),
			`my.yaml:44: ddr.bandwidth: found "108B/s", expected at least 1MB/s`},
		{"unlimited core link", with(t, "64GB/s", "unlimited"),
			`my.yaml:48: core_link.bandwidth: found "unlimited", expected a bandwidth above zero such as 108GB/s or 64B/cycle`},
		{"zero DDR link", with(t, "unlimited", "0GB/s"),
			`my.yaml:53: ddr_link.bandwidth: found "0GB/s", expected a bandwidth above zero such as 108GB/s or 64B/cycle, or unlimited`},
		{"broadcast of DDR link", with(t, "unlimited", "32GB/s\n  broadcast: true"),
			"my.yaml:54: ddr_link.broadcast: found an unknown field, expected one of bandwidth, latency, in_flight"},
		{"negative latency", with(t, "150ns", "-150ns"),
			`my.yaml:45: ddr.latency: found "-150ns", expected a time of zero or more such as 84ns, 10us or 84cycles`},
		{"latency without unit", with(t, "150ns", "150"),
			`my.yaml:45: ddr.latency: found "150", expected a time such as 84ns, 10us or 84cycles`},
		{"long latency", with(t, "10us", "10s"), `my.yaml:56: launch: found "10s", expected a time of at most 1s`},
		{"NaN latency", with(t, "10us", ".NaN"),
			`my.yaml:56: launch: found ".NaN", expected a time such as 84ns, 10us or 84cycles`},
		{"energy without a part", with(t, "sync: 100cycles",
			"energy:\n  mac: {f16: 1pJ}\n  vector: {f16: 1pJ}\n  lb: 1pJ\n  gb: 1pJ\n  ddr: 40\nsync: 100cycles"),
			"my.yaml:57: energy.static: missing, expected a power of zero or more such as 50W\n" +
				`my.yaml:62: energy.ddr: found "40", expected an energy above zero such as 0.9pJ`},
		{"energy of nothing", with(t, "sync: 100cycles",
			"energy:\n  mac: {}\n  vector: {f17: 1pJ}\n  lb: 1mJ\n  gb: 0pJ\n  ddr: 1J\n  static: -1W\nsync: 100cycles"),
			`my.yaml:58: energy.mac: found nothing, expected at least one dtype of ` + dtypeList + "\n" +
				`my.yaml:59: energy.vector.f17: found an unknown dtype, expected one of ` + dtypeList + "\n" +
				`my.yaml:60: energy.lb: found "1mJ", expected an energy above zero such as 0.9pJ` + "\n" +
				`my.yaml:61: energy.gb: found "0pJ", expected an energy above zero such as 0.9pJ` + "\n" +
				`my.yaml:62: energy.ddr: found "1J", expected at most 1000nJ` + "\n" +
				`my.yaml:63: energy.static: found "-1W", expected a power of zero or more such as 50W, at most 100000W`},
		// The times in cycles can't be known either, which is not another mistake.
		{"bad clock", with(t, "1.0GHz ", "1.0 "), `my.yaml:3: clock: found "1.0", expected a clock such as 1.0GHz`},
		{"zero clock", with(t, "1.0GHz ", "0GHz "), `my.yaml:3: clock: found "0GHz", expected a clock such as 1.0GHz`},
		{"slow clock", with(t, "1.0GHz ", "1.0Hz "), `my.yaml:3: clock: found "1.0Hz", expected at least 1MHz`},
		{"fast clock", with(t, "1.0GHz ", "1e9GHz "), `my.yaml:3: clock: found "1e9GHz", expected at most 100GHz`},

		// Counts.
		{"zero clusters", with(t, "clusters: 4", "clusters: 0"),
			`my.yaml:4: clusters: found "0", expected a whole number from 1 to 1024`},
		{"negative cores", with(t, "count: 8", "count: -8"),
			`my.yaml:8: core_types[0].count: found "-8", expected a whole number from 1 to 1048576`},
		{"half a core", with(t, "count: 8", "count: 0.5"),
			`my.yaml:8: core_types[0].count: found "0.5", expected a whole number from 1 to 1048576`},
		{"a line as grid", with(t, "count: 8", "count: 8\n    grid: 8"),
			`my.yaml:9: core_types[0].grid: found "8", expected two or more whole numbers above zero such as 9x12`},
		{"no grid", with(t, "count: 8", "count: 8\n    grid: 2x-4"),
			`my.yaml:9: core_types[0].grid: found "2x-4", expected two or more whole numbers above zero such as 9x12`},
		{"grid of other cores", with(t, "count: 8", "count: 8\n    grid: 2x3"),
			`my.yaml:9: core_types[0].grid: found "2x3", expected dimensions whose product is the count of 8`},
		{"hexadecimal cores", with(t, "count: 8", "count: 0x8"),
			`my.yaml:8: core_types[0].count: found "0x8", expected a whole number from 1 to 1048576`},
		{"clusters beyond int64", with(t, "clusters: 4", "clusters: 99999999999999999999"),
			`my.yaml:4: clusters: found "99999999999999999999", expected a whole number from 1 to 1024`},
		{"too many cores together", with(t, "count: 8", "count: 1000000"),
			"my.yaml:6: core_types: found 4000000 cores or more on the chip, expected at most 1048576"},
		{"zero rows", with(t, "rows: 64", "rows: 0"),
			`my.yaml:13: core_types[0].units[0].rows: found "0", expected a whole number from 1 to 65536`},
		{"zero lanes", with(t, "64           # elements per", "0 # elements per"),
			`my.yaml:19: core_types[0].units[1].lanes: found "0", expected a whole number from 1 to 65536`},
		{"negative fill", with(t, "25cycles", "-25cycles"),
			`my.yaml:16: core_types[0].units[0].fill: found "-25cycles", expected from 0cycles to 1000000000cycles`},
		{"fill in time", with(t, "25cycles", "25ns"),
			`my.yaml:16: core_types[0].units[0].fill: found "25ns", expected a whole number of cycles such as 24cycles`},
		{"no clock", with(t, "25cycles", "25cycles\n        clock: 0Hz"),
			`my.yaml:17: core_types[0].units[0].clock: found "0Hz", expected a clock such as 1.0GHz`},
		{"operands without results", with(t, "25cycles", "25cycles\n        operands: 80GB/s"),
			`my.yaml:11: core_types[0].units[0].results: missing, expected a whole number from 1 to 1073741824`},
		{"negative gap", with(t, "25cycles", "25cycles\n        block: -1cycles"),
			`my.yaml:17: core_types[0].units[0].block: found "-1cycles", expected from 0cycles to 1000000000cycles`},
		{"gap in time", with(t, "25cycles", "25cycles\n        block: 4ns"),
			`my.yaml:17: core_types[0].units[0].block: found "4ns", expected a number of cycles of zero or more such as 3.5cycles`},
		{"gap in a vector unit", with(t, "10cycles", "10cycles\n        block: 4cycles"),
			`my.yaml:22: core_types[0].units[1].block: found "4cycles", expected none in a vector unit: it has lanes`},
		{"more than all", with(t, "150ns", "150ns\n  activation_efficiency: 1.1"),
			`my.yaml:46: ddr.activation_efficiency: found "1.1", expected a share above 0 and up to 1`},
		{"nothing for activations", with(t, "150ns", "150ns\n  activation_efficiency: 0"),
			`my.yaml:46: ddr.activation_efficiency: found "0", expected a share above 0 and up to 1`},
		{"percent for activations", with(t, "150ns", "150ns\n  activation_efficiency: 80%"),
			`my.yaml:46: ddr.activation_efficiency: found "80%", expected a share above 0 and up to 1`},
		{"fill beyond int64", with(t, "25cycles", "99999999999999999999"),
			`my.yaml:16: core_types[0].units[0].fill: found "99999999999999999999", expected a whole number of cycles such as 24cycles`},

		// Rates.
		{"unknown dtype", with(t, "i8: 2", "int8: 2"),
			"my.yaml:15: core_types[0].units[0].rate.int8: found an unknown dtype, expected one of " + dtypeList},
		{"only unknown dtypes", with(t, "f16: 1, i8: 2", "int8: 2"),
			"my.yaml:15: core_types[0].units[0].rate.int8: found an unknown dtype, expected one of " + dtypeList},
		{"no rates", with(t, "{f16: 1, i8: 2}", "{}"),
			"my.yaml:15: core_types[0].units[0].rate: found nothing, expected at least one dtype of " + dtypeList},
		{"rates of no mapping", with(t, "{f16: 1, i8: 2}", "1"),
			`my.yaml:15: core_types[0].units[0].rate: found "1", expected a mapping with a number for any dtype of ` +
				dtypeList},
		{"zero rate", with(t, "i8: 2", "i8: 0"),
			`my.yaml:15: core_types[0].units[0].rate.i8: found "0", expected a number above zero`},
		{"NaN rate", with(t, "i8: 2", "i8: .nan"),
			`my.yaml:15: core_types[0].units[0].rate.i8: found ".nan", expected a number above zero`},
		{"infinite rate", with(t, "i8: 2", "i8: 1e999"),
			`my.yaml:15: core_types[0].units[0].rate.i8: found "1e999", expected at most 1e+06`},
		{"tiny rate", with(t, "i8: 2", "i8: 1e-300"),
			`my.yaml:15: core_types[0].units[0].rate.i8: found "1e-300", expected at least 0.001`},
		{"rate with unit", with(t, "i8: 2", "i8: 2x"),
			`my.yaml:15: core_types[0].units[0].rate.i8: found "2x", expected a number above zero`},
		{"unknown class", with(t, "special: 4", "special: 4, exp: 4"),
			"my.yaml:29: core_types[0].units[2].cycles_per_op.exp: found an unknown operation class, expected one of simple, special, move"},
		{"special without special", with(t, ", special: 4", ""),
			"my.yaml:29: core_types[0].units[2].cycles_per_op: found no special, expected one, as the unit's kind is special"},
		{"negative cycles", with(t, "special: 4", "special: -4"),
			`my.yaml:29: core_types[0].units[2].cycles_per_op.special: found "-4", expected a number above zero`},

		// Units and core types.
		{"unknown kind", with(t, "kind: vector\n", "kind: scalar\n"),
			`my.yaml:18: core_types[0].units[1].kind: found "scalar", expected matrix, vector or special`},
		{"duplicate unit", with(t, "name: vector-core", "name: vme"),
			`my.yaml:23: core_types[0].units[2].name: found "vme", expected a name that no other unit of the core has` + "\n" +
				`my.yaml:25: core_types[0].units[2].shares_with: found "vme", expected another unit of the core than this one`},
		{"shares with nothing", with(t, "shares_with: vme ", "shares_with: vne "),
			`my.yaml:25: core_types[0].units[2].shares_with: found "vne", expected another unit of the core: mme, vme`},
		{"shares with itself", with(t, "shares_with: vme ", "shares_with: vector-core "),
			`my.yaml:25: core_types[0].units[2].shares_with: found "vector-core", expected another unit of the core than this one`},
		{"shares with an empty name", with(t, "shares_with: vme ", "shares_with: '' "),
			`my.yaml:25: core_types[0].units[2].shares_with: found "", expected the name of a unit`},
		{"bad name", with(t, "name: my-npu", "name: ../my npu"),
			`my.yaml:1: name: found "../my npu", expected a name of up to 64 letters, digits, '.', '_' and '-'`},
		{"description of two lines", with(t, "an example", "\"a\\nb\""),
			`my.yaml:2: description: found "a\nb", expected one line of text`},
		{"lanes of a matrix unit", with(t, "        rows: 64", "        lanes: 64\n        rows: 64"),
			`my.yaml:13: core_types[0].units[0].lanes: found "64", expected no lanes in a matrix unit: it has rows and cols`},
		{"operations of a matrix unit", with(t, "        rows: 64", "        cycles_per_op: {simple: 1}\n        rows: 64"),
			"my.yaml:13: core_types[0].units[0].cycles_per_op: found a mapping, expected none in a matrix unit: it has rows and cols"},
		{"rows of a vector unit", with(t, "kind: vector\n", "kind: vector\n        rows: 1\n"),
			`my.yaml:19: core_types[0].units[1].rows: found "1", expected none in a vector unit: it has lanes`},
		{"only special units", "name: x\nclock: 1GHz\nclusters: 1\ncore_types:\n" +
			"  - {name: a, count: 1, units: [{name: u, kind: special, lanes: 1, rate: {f16: 1}, fill: 0, cycles_per_op: {special: 1}}]}\n" +
			example(t)[strings.Index(example(t), "\nlb:"):],
			"my.yaml:4: core_types: found no matrix unit and no vector unit, expected at least one of them"},
		{"no units", "name: x\nclock: 1GHz\nclusters: 1\ncore_types:\n" +
			"  - name: a\n    count: 1\n    units: []\n" + example(t)[strings.Index(example(t), "\nlb:"):],
			"my.yaml:7: core_types[0].units: found an empty list, expected a list of units, each with name, kind, rate"},
		{"no core types", "name: x\nclock: 1GHz\nclusters: 1\ncore_types:\n" +
			example(t)[strings.Index(example(t), "\nlb:"):],
			"my.yaml:4: core_types: found nothing, expected a list of core types, each with name, count, units"},
		{"core type is no mapping", "name: x\nclock: 1GHz\nclusters: 1\ncore_types:\n  - core\n" +
			example(t)[strings.Index(example(t), "\nlb:"):],
			`my.yaml:5: core_types[0]: found "core", expected a mapping with name, count, grid, has_lb, runs, units`},
		{"duplicate core type", with(t, "core_types: ", "core_types:\n"+
			"  - {name: core, count: 1, units: [{name: u, kind: vector, lanes: 1, rate: {f16: 1}, fill: 0,\n"+
			"    cycles_per_op: {simple: 1, special: 1, move: 1}}]}\n#"),
			`my.yaml:10: core_types[1].name: found "core", expected a name that no other core type has`},

		// Memory levels.
		{"weights without LB", with(t, "1MiB ", "none "),
			`my.yaml:32: lb.size: found "none", expected a size above zero such as 64KiB; a core without it is written lb: none and can't have weights either`},
		{"LB is a number", strings.Replace(l1None(t), "lb: none", "lb: 64KiB", 1),
			`my.yaml:30: lb: found "64KiB", expected none or a mapping with size, weights, bandwidth, latency`},
		{"LB of cores but none", strings.Replace(l1None(t), "    count: 8", "    count: 8\n    has_lb: true", 1),
			`my.yaml:9: core_types[0].has_lb: found "true", expected false, as lb is none`},
		{"LB of no core", with(t, "has_lb: true", "has_lb: false"),
			"my.yaml:31: lb: found a buffer that no core has, as has_lb is false in every core type, expected none"},
		{"has_lb is no boolean", with(t, "has_lb: true", "has_lb: maybe"),
			`my.yaml:9: core_types[0].has_lb: found "maybe", expected true or false`},
		{"no memory on the chip", strings.Replace(strings.Replace(l1None(t), gb, "", 1), "gb:    ", "gb: none", 1),
			`my.yaml:32: gb: found "none", expected a memory on the chip, as lb is none too`},
		{"DDR none",
			with(t, "ddr:                        # whole chip\n  size: 16GiB\n  bandwidth: 108GB/s\n  latency: 150ns\n",
				"ddr: none\n"), `my.yaml:42: ddr: found "none", expected a mapping with size, bandwidth, latency`},

		// The file as a whole.
		{"empty", "", "my.yaml:1: found an empty file, expected a description of an accelerator"},
		{"only comments", "# a\n# b\n", "my.yaml:1: found an empty file, expected a description of an accelerator"},
		{"a list", "- a\n",
			"my.yaml:1: found a list, expected a description: a mapping with name, description, clock, clock_under_load, clusters, core_types, lb, gb, ddr, core_link, ddr_link, launch, sync, gap, matrix_start, host, energy"},
		{"a word", "stcp920\n",
			`my.yaml:1: found "stcp920", expected a description: a mapping with name, description, clock, clock_under_load, clusters, core_types, lb, gb, ddr, core_link, ddr_link, launch, sync, gap, matrix_start, host, energy`},
		{"nothing", "---\n",
			"my.yaml:2: found nothing, expected a description: a mapping with name, description, clock, clock_under_load, clusters, core_types, lb, gb, ddr, core_link, ddr_link, launch, sync, gap, matrix_start, host, energy"},
		{"two documents", example(t) + "---\nname: b\n", "my.yaml:58: found a second document, expected only one in a file"},
		{"no YAML", with(t, "clusters: 4", "clusters: [4"), "my.yaml:4: not valid YAML: did not find expected ',' or ']'"},
		{"tab", with(t, "  size: 16GiB", "\tsize: 16GiB"),
			"my.yaml:43: not valid YAML: found character that cannot start any token"},
		{"binary", "name: x\n\x00\x01",
			"my.yaml:2: found bytes that are not text in UTF-8, expected the YAML of an accelerator"},
		{"not UTF-8", "name: x\n\n# \xff\n",
			"my.yaml:3: found bytes that are not text in UTF-8, expected the YAML of an accelerator"},
		{"unknown anchor", with(t, "clusters: 4", "clusters: *n"),
			"my.yaml:4: not valid YAML: unknown anchor 'n' referenced"},
		{"alias", with(t, "name: my-npu", "name: &n my-npu\ndescription: *n\n#"),
			"my.yaml:2: description: found an alias, which is not supported, expected one line of text\n" +
				"my.yaml:4: description: found a duplicate, expected it only once (first in line 2)"},
		{"merge key", with(t, "  size: 16GiB", "  size: 16GiB\n  <<: {size: 1}"),
			`my.yaml:44: ddr."<<": found an unknown field, expected one of size, bandwidth, activation_efficiency, latency`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Parse("my.yaml", []byte(tc.text))
			if err == nil {
				t.Fatalf("no error, but\n%s", s.Describe())
			}
			if err.Error() != tc.want {
				t.Errorf("\ngot  %s\nwant %s", err, tc.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.File != "my.yaml" || e.Line == 0 {
				t.Errorf("got %#v, want an *Error with file and line", e)
			}
		})
	}
}

// Whatever is small in the file must be small when read, and a file of nothing
// but mistakes must give a short message soon.
func TestParseBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for _, tc := range []struct{ name, text string }{
		{"laughs", laughs.String()},
		{"alias to itself", "name: &a [*a]\ncore_types: &b\n  - *b\nlb: &c {size: *c}\n"},
		{"deep list", "core_types: " + strings.Repeat("[", MaxFileBytes/2)},
		{"deep mapping", "lb: " + strings.Repeat("{a: ", MaxFileBytes/8)},
		{"deep block", strings.Repeat("- ", MaxFileBytes/4)},
		{"many keys", strings.Repeat("a: 1\n", MaxFileBytes/8)},
		{"many clusters", strings.Repeat("clusters: 1\n", MaxFileBytes/16)},
		{"many core types", "core_types:\n" + strings.Repeat("- {}\n", MaxFileBytes/8)},
		{"many aliases", "name: &a x\nrate:\n" + strings.Repeat("- *a\n", MaxFileBytes/8)},
		{"many comments", strings.Repeat("# a\n\n", MaxFileBytes/8)},
		{"one long line", "name: " + strings.Repeat("x", MaxFileBytes/2)},
		{"one long key", strings.Repeat("x", MaxFileBytes/2) + ": 1"},
		{"one long number", "clusters: " + strings.Repeat("9", MaxFileBytes/2)},
		{"one long size", "lb: {size: " + strings.Repeat("9", MaxFileBytes/2) + "}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse("my.yaml", []byte(tc.text))
			if err == nil {
				t.Fatal("no error")
			}
			if n := len(err.Error()); n > 10_000 {
				t.Errorf("the message has %d bytes", n)
			}
			if n := strings.Count(err.Error(), "\n") + 1; n > maxReported+1 {
				t.Errorf("the message has %d lines", n)
			}
			// Far above what it takes, also with the race detector.
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("took %v", d)
			}
			t.Logf("%v: %.100s", time.Since(start), err)
		})
	}
}

func TestParseCountsTheRest(t *testing.T) {
	_, err := Parse("my.yaml", []byte(example(t)+strings.Repeat("clock: 1GHz\n", 50)))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if got, want := lines[len(lines)-1], "my.yaml: 30 more mistakes"; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Spec)
		want   string
	}{
		{"nothing", func(*Spec) {}, ""},
		{"weights without LB", func(s *Spec) { s.L1, s.CoreTypes[0].HasL1 = nil, false },
			"lb.weights: found 256KiB, expected no weight buffer, as lb is none"},
		{"LB missing", func(s *Spec) { s.L1, s.L1WeightBytes = nil, 0 },
			"core_types[0].has_lb: found true, expected false, as lb is none"},
		{"negative weights", func(s *Spec) { s.L1WeightBytes = -1 },
			"lb.weights: found -1B, expected a size above zero such as 64KiB"},
		{"no DDR", func(s *Spec) { s.DDR = nil }, "ddr: found none, expected the off-chip memory: size, bandwidth, latency"},
		{"no GB", func(s *Spec) { s.LLB = nil }, ""},
		{"no cores", func(s *Spec) { s.CoreTypes = nil }, "core_types: found no core, expected at least one core type"},
		{"NaN bandwidth", func(s *Spec) { s.DDR.BandwidthBytesPerSecond = math.NaN() },
			"ddr.bandwidth: found NaNB/s, expected a bandwidth above zero such as 108GB/s or 64B/cycle"},
		{"infinite bandwidth", func(s *Spec) { s.DDR.BandwidthBytesPerSecond = math.Inf(1) },
			"ddr.bandwidth: found +InfTB/s, expected at most 2000TB/s"},
		{"NaN latency", func(s *Spec) { s.SyncSeconds = math.NaN() },
			"sync: found NaNns, expected a time of zero or more such as 84ns, 10us or 84cycles"},
		{"broadcast of DDR", func(s *Spec) { s.DDRLink.Broadcast = true },
			"ddr_link.broadcast: found true, expected false: only the core link can broadcast"},
		{"overflow", func(s *Spec) { s.L1.SizeBytes = math.MaxInt64 },
			"lb.size: found 9223372036854775807B, expected a size of at most 1024TiB"},
		{"many cores", func(s *Spec) { s.CoreTypes[0].Count = math.MaxInt },
			"core_types[0].count: found 9223372036854775807, expected a whole number from 1 to 1048576"},
		{"unknown dtype", func(s *Spec) { s.CoreTypes[0].Units[0].Rate["fp8"] = 1 },
			"core_types[0].units[0].rate.fp8: found an unknown dtype, expected one of f64, f32, f16, bf16, i8, u8, i16, i32, i64, bool, f8"},
		{"energy of no LLB", func(s *Spec) {
			s.LLB = nil
			s.Energy = &Energy{MAC: map[string]float64{"f16": 1e-12}, Vector: map[string]float64{"f16": math.NaN()}, L1: 1e-12,
				LLB: 1e-12, DDR: 1e-12}
		},
			"energy.vector.f16: found NaNpJ, expected an energy above zero such as 0.9pJ\nenergy.gb: found 1pJ, expected none, as gb is none"},
		{"two mistakes", func(s *Spec) { s.Clusters, s.ClockHz = -1, 1e9*math.Inf(1) },
			"clock: found +InfTHz, expected at most 100GHz\nclusters: found -1, expected a whole number from 1 to 1024"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Parse("my.yaml", []byte(example(t)))
			if err != nil {
				t.Fatal(err)
			}
			tc.change(s)
			got := ""
			if err := s.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
	if err := new(Spec).Validate(); err == nil {
		t.Error("an empty Spec is valid")
	}
}

func TestBytesString(t *testing.T) {
	for _, tc := range []struct {
		b    Bytes
		want string
	}{
		{0, "0B"}, {1, "1B"}, {1000, "1000B"}, {1024, "1KiB"}, {65536, "64KiB"}, {5 << 18, "1280KiB"},
		{1 << 20, "1MiB"}, {16 << 30, "16GiB"}, {1 << 50, "1024TiB"}, {-1024, "-1KiB"},
		{math.MaxInt64, "9223372036854775807B"},
	} {
		if got := tc.b.String(); got != tc.want {
			t.Errorf("%d is %q, want %q", int64(tc.b), got, tc.want)
		}
		if back, expected := parseSize(tc.want); back != tc.b || expected != "" {
			t.Errorf("%q reads as %d (%s), want %d", tc.want, back, expected, tc.b)
		}
	}
}

// FuzzParse checks that nothing makes Parse panic, that each line of an error
// names the file, and that what is accepted is valid and has finite figures.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example(f)))
	for _, name := range Presets() {
		data, err := PresetYAML(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, path := range []string{"testdata/ipu.yaml", "testdata/goya.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", "---", "- a", "a: &a [*a]", "lb: &b {size: *b}", "name: *x", "? [a]\n: b", "<<: {a: b}",
		"%YAML 1.2\n---\nname: x\n...\n", "name: !!binary aGk=", "!!map {name: !!str x}", "name: |\n  x\n", "\"\\u0000\": 1",
		"clock: 1e309GHz", "clusters: -0", "lb: {size: 1e9, weights: .5MiB}", "core_types: [{units: [{rate: {f16: -.inf}}]}]",
		"name: x # \u0085 \u2028", "\xfe\xff\x00a", "name: x\r\rclock: y", "launch: 0x1p-2s", "gb: none\nlb: none\nddr: none",
		"clock: 1GHz\nlaunch: 1e400cycles\nddr: {latency: -1e-400cycles, bandwidth: 1e300B/cycle}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz.yaml", data)
		again, err2 := Parse("fuzz.yaml", data)
		if err != nil {
			if err2 == nil || err.Error() != err2.Error() {
				t.Fatalf("the second time the error is %v, not %v", err2, err)
			}
			if s != nil {
				t.Fatal("both a Spec and an error")
			}
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "fuzz.yaml:") {
					t.Fatalf("a line without the file: %q", line)
				}
			}
			return
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatal("the second time the Spec differs")
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		if s.Cores() <= 0 || s.L1TotalBytes() < 0 || s.Describe() == "" {
			t.Fatalf("%d cores, %v LB", s.Cores(), s.L1TotalBytes())
		}
		for _, d := range dtypes {
			if p := s.PeakMACsPerSecond(d); p < 0 || math.IsInf(p, 0) || math.IsNaN(p) {
				t.Fatalf("PeakMACsPerSecond(%s) = %g", d, p)
			}
		}
	})
}
