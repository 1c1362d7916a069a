package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

// memoryText is a memory in ZigZag's syntax, with one port for reads and one for writes.
func memoryText(name string, bits int, operands, served string, width int) string {
	return fmt.Sprintf(`  %s:
    size: %d
    r_cost: 3
    w_cost: 5
    area: 0
    latency: 1
    operands: [%s]
    ports:
      - {name: r, type: read, bandwidth_min: 8, bandwidth_max: %d, allocation: []}
      - {name: w, type: write, bandwidth_min: 8, bandwidth_max: %d, allocation: []}
    served_dimensions: [%s]
`, name, bits, operands, width, width, served)
}

func coreText(dram bool) string {
	text := "name: small\nmemories:\n" + memoryText("reg_w", 8, "I2", "D3", 8) + memoryText("reg_o", 16, "O", "D2", 16) +
		memoryText("inner", 1<<16, "I1", "D1, D2, D3", 64) + memoryText("data", 1<<20, "I1, O", "D1, D2, D3", 256) +
		memoryText("weights", 1<<19, "I2", "D1, D2, D3", 128)
	if dram {
		text += memoryText("dram", 1<<33, "I1, I2, O", "D1, D2, D3", 64)
	}
	return text +
		"operational_array:\n  unit_energy: 0.5\n  unit_area: 1\n  dimensions: [D1, D2, D3]\n  sizes: [16, 8, 4]\n"
}

const off = "name: off\nmemories:\n%soperational_array: {unit_energy: 0, unit_area: 0, dimensions: [D1], sizes: [0]}\n"

var files = map[string]string{
	"core.yaml": coreText(false),
	"off.yaml":  fmt.Sprintf(off, memoryText("dram", 1<<33, "I1, I2, O", "D1", 64)),
	"wide.yaml": strings.NewReplacer("sizes: [16, 8, 4]", "sizes: [32, 32, 4]", "size: 1048576", "size: 524288",
		"name: small", "name: wide").Replace(coreText(false)) +
		"operator_types: [Conv, Gemm, Add]\noperand_precision: {input: int8}\n",
	"bare.yaml": strings.Replace(coreText(false), "size: 524288", "size: 0", 1),
	"simd.yaml": "name: simd\nmemories:\n" + memoryText("m", 1<<20, "I1, I2, O", "D1", 512) +
		"operational_array: {unit_energy: 0.1, unit_area: 0, dimensions: [D1], sizes: [32]}\noperator_types: [Add, Relu]\n",
}

func readTest(name string) ([]byte, error) {
	if text, ok := files[name]; ok {
		return []byte(text), nil
	}
	return nil, os.ErrNotExist
}

const system = `name: pair
cores: {0: core.yaml, 1: core.yaml, 2: simd.yaml, 3: off.yaml}
offchip_core_id: 3
unit_energy_cost: 0
core_connectivity:
  - {type: link, cores: [0, 1], bandwidth: 64}
  - {type: link, cores: [0, 2], bandwidth: 32}
  - {type: bus, cores: [0, 1, 2, 3], bandwidth: 128}
`

const hierarchy = `{% set SIZE=SIZE | default(1024*8) %}
arch:
  nodes:
  - !Memory
    name: Main
    size: inf
    leak_power: 2
    actions: [{name: read, energy: 1e-12, throughput: 8 * 2e9}, {name: write, energy: 3e-12, throughput: 8 * 2e9}]
  - !Memory
    name: Local
    spatial: [{name: Z, fanout: 4, may_reuse: Nothing}]
    size: {{SIZE}}
    total_latency: max(a.n_calls / a.throughput for a in actions)
    actions: [{name: read, energy: 1e-13, throughput: (1 + 7) * 4e9}, {name: write, energy: 1e-13, throughput: 8e9}]
  - !Compute
    name: Scalar
    actions: [{name: compute, energy: 0, throughput: 64e9}]
    enabled: len(All) == 2
  - !Container
    name: PE
    spatial: [{name: c, fanout: 32, reuse: input}, {name: r, fanout: 16, reuse: output}]
  - !Memory
    name: Register
    size: weight.bits_per_value
  - !Compute
    name: MAC
    actions: [{name: compute, energy: 1e-13, throughput: 1e9}]
`

func converted(t *testing.T, text string) (*Result, *hardware.Spec) {
	t.Helper()
	r, err := Convert("x.yaml", []byte(text), readTest)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Parse("x.yaml", []byte(r.YAML))
	if err != nil {
		t.Fatal(err)
	}
	return r, spec
}

// TestEarlierPorts: releases of ZigZag whose memories have bandwidths and numbers of ports give the same machine.
func TestEarlierPorts(t *testing.T) {
	text := coreText(true)
	_, want := converted(t, text)
	ports := regexp.MustCompile(`    ports:\n.*bandwidth_max: (\d+).*\n.*\n`)
	old := ports.ReplaceAllString(text, "    r_bw: $1\n    w_bw: $1\n    r_port: 1\n    w_port: 1\n    rw_port: 0\n"+
		"    min_r_granularity: 8\n    ports:\n      - fh: w_port_1\n        tl: r_port_1\n")
	r, spec := converted(t, old)
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("found\n%+v, want\n%+v", spec, want)
	}
	if !slices.ContainsFunc(r.Lost, func(l string) bool { return strings.Contains(l, "min_r_granularity") }) {
		t.Errorf("lost are %q", r.Lost)
	}
	// One port for both moves half of that.
	none := strings.ReplaceAll(old, "r_port: 1\n    w_port: 1", "r_port: 0\n    w_port: 0")
	one := strings.ReplaceAll(none, "rw_port: 0", "rw_port: 1")
	if _, half := converted(t, one); half.DDR.BandwidthBytesPerSecond != want.DDR.BandwidthBytesPerSecond/2 {
		t.Errorf("%v, want half of %v", half.DDR.BandwidthBytesPerSecond, want.DDR.BandwidthBytesPerSecond)
	}
	_, err := Convert("x.yaml", []byte(none), readTest)
	if err == nil || !strings.Contains(err.Error(), "memories.reg_w.r_bw: found a memory without reads, writes or ports") {
		t.Errorf("no port: %v", err)
	}
}

// TestFigures: what is read of each tool's syntax, against figures worked out by hand.
func TestFigures(t *testing.T) {
	r, s := converted(t, coreText(true))
	m, _ := s.UnitOf(hardware.Matrix)
	if m.Rows != 8 || m.Cols != 16 || m.Rate["i8"] != 4 || s.Cores() != 1 {
		t.Errorf("array %dx%d, rate %v, %d cores", m.Rows, m.Cols, m.Rate, s.Cores())
	}
	if s.LB.SizeBytes != 128<<10 || s.LBWeightBytes != 64<<10 || s.LB.BandwidthBytesPerSecond != 96e9 || s.GB != nil {
		t.Errorf("L1 %v and %v at %g", s.LB.SizeBytes, s.LBWeightBytes, s.LB.BandwidthBytesPerSecond)
	}
	if s.DDR.BandwidthBytesPerSecond != 16e9 || s.DDR.SizeBytes != 1<<30 || s.Energy.DDR != 0.5e-12 ||
		s.Energy.MAC["i8"] != 0.5e-12 {
		t.Errorf("DDR %+v, energy %+v", s.DDR, s.Energy)
	}
	if !slices.ContainsFunc(r.Lost, func(l string) bool { return strings.Contains(l, "reg_w, reg_o, inner") }) {
		t.Errorf("lost: %q", r.Lost)
	}

	r, s = converted(t, system)
	if s.CoresWith(hardware.Matrix) != 2 || s.CoresWith(hardware.Vector) != 1 ||
		s.CoreLink.BandwidthBytesPerSecond != 4e9 || s.DDRLink.BandwidthBytesPerSecond != 16e9 {
		t.Errorf("%s:\n%s", r.Tool, r.YAML)
	}

	_, s = converted(t, hierarchy)
	m, _ = s.UnitOf(hardware.Matrix)
	v, _ := s.UnitOf(hardware.Vector)
	if s.Cores() != 4 || m.Rows != 16 || m.Cols != 32 || v.Lanes != 64 || s.LB.SizeBytes != 1024 ||
		s.LB.BandwidthBytesPerSecond != 5e9 || s.DDR.BandwidthBytesPerSecond != 2e9 {
		t.Errorf("%+v", s)
	}
	if s.Energy.DDR != 16e-12 || s.Energy.StaticWatts != 2 {
		t.Errorf("%+v", s.Energy)
	}
}

// TestKinds: cores whose files differ are kinds of core, with the least L1 of all; files of other names are not.
func TestKinds(t *testing.T) {
	files["copy.yaml"] = files["core.yaml"]
	defer delete(files, "copy.yaml")
	if _, s := converted(t, strings.Replace(system, "1: core.yaml", "1: copy.yaml", 1)); s.Mixed() ||
		s.CoresWith(hardware.Matrix) != 2 {
		t.Errorf("cores alike in two files: %+v", s.CoreTypes)
	}
	mixed := strings.NewReplacer("1: core.yaml", "1: wide.yaml", "3: off.yaml", "3: wide.yaml, 4: off.yaml",
		"offchip_core_id: 3", "offchip_core_id: 4\ntechnology_node: n3\ncore_coordinates: {0: [0, 0]}", "2, 3]", "2, 3, 4]",
		"bandwidth: 64}", "bandwidth: 64, unit_energy_cost: 0}").Replace(system)
	r, s := converted(t, mixed)
	var got []string
	for _, c := range s.CoreTypes {
		m, _ := c.UnitOf(hardware.Matrix)
		v, _ := c.UnitOf(hardware.Vector)
		got = append(got, fmt.Sprint(c.Name, c.Count, c.Runs, m.Rows, m.Cols, v.Lanes))
	}
	want := []string{"small1 [matrix reduction element-wise injective] 8 16 512",
		"wide2 [matrix element-wise injective] 32 32 4096", "simd1 [element-wise injective] 0 0 32"}
	if !slices.Equal(got, want) || s.LB.SizeBytes != 64<<10 || s.LBWeightBytes != 64<<10 {
		t.Errorf("found\n%q, L1 %v and %v\nwant\n%q", got, s.LB.SizeBytes, s.LBWeightBytes, want)
	}
	for _, want := range []string{"cores.1: wide.yaml: its L1", "operand_precision", "core_coordinates", "technology_node"} {
		if !slices.ContainsFunc(r.Lost, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("%s is not among the lost: %q", want, r.Lost)
		}
	}
}

// TestRefused: what has no counterpart is refused with its file, line and name.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, from, to, want string }{
		{"another tool", "a: 1", "", "", "x.yaml:1: file"},
		{"unknown field", coreText(true), "unit_area: 1", "is_imc: true", "operational_array.is_imc"},
		{"unknown memory field", coreText(true), "    area: 0\n", "    banks: 4\n", "memories.reg_w.banks"},
		{"operand", coreText(true), "operands: [I1]", "operands: [I9]", "I9"},
		{"sizes", coreText(true), "sizes: [16, 8, 4]", "sizes: [16, 8]", "operational_array.sizes"},
		{"number", coreText(true), "r_cost: 3", "r_cost: x", `r_cost: found "x"`},
		{"no core file", system, "simd.yaml", "other.yaml", "cores.2"},
		{"weights alone in some", system, "1: core.yaml", "1: bare.yaml", "cores.1: found bare.yaml"},
		{"two memories", system, "1: core.yaml", "1: off.yaml", "cores.1: found off.yaml, whose array has no size"},
		{"an earlier system", system, "offchip_core_id: 3", "graph: {offchip_core_id: 3}", "x.yaml:3: graph"},
		{"sharing of kinds", system + "core_memory_sharing: [\"0, 1\"]\n", "1: core.yaml", "1: wide.yaml",
			"core_memory_sharing[0]: found 0, 1"},
		{"sharing", system + "core_memory_sharing: [\"0, 1\"]\n", "", "", "core_memory_sharing[0]"},
		{"component model", hierarchy, "throughput: 1e9}", "cycles: 1}", "actions[0].cycles"},
		{"no throughput", hierarchy, ", throughput: 1e9}", "}", "MAC: found no throughput"},
		{"template", hierarchy, "default(1024*8)", "upper", "x.yaml:1: file: found a template"},
		{"tag", hierarchy, "!Container", "!Toll", "!Toll"},
		{"formula", hierarchy, "max(a.n", "sum(a.n", "Local.total_latency"},
		{"alias", strings.Replace(hierarchy, "size: inf", "size: &a inf", 1), "size: {{SIZE}}", "size: *a",
			"Local.size: found an alias"},
	} {
		text := strings.Replace(tt.text, tt.from, tt.to, 1)
		if _, err := Convert("x.yaml", []byte(text), readTest); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, expected %q", tt.name, err, tt.want)
		}
	}
}

// TestOthersFiles reads the tools' own files, which stand beside the project where they are there.
func TestOthersFiles(t *testing.T) {
	const shared = "../../../../shared/data/peers"
	refused := map[string]string{"eyeriss.yaml": "extra_attributes_for_all_component_models"}
	names, _ := filepath.Glob(filepath.Join(shared, "*", "*.yaml"))
	if len(names) == 0 {
		t.Skip("no files of others")
	}
	for _, name := range names {
		r, err := File(name)
		if want := refused[filepath.Base(name)]; want != "" {
			if err == nil && strings.HasPrefix(r.Tool, "Accel") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, expected %s", name, err, want)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, text := range []string{coreText(true), system, hierarchy, "arch: {nodes: [!Memory {}]}", "cores: [0, 0]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := Convert("x.yaml", []byte(text), readTest); err == nil {
			if _, err := hardware.Parse("x.yaml", []byte(r.YAML)); err != nil {
				t.Error(err)
			}
		}
	})
}
