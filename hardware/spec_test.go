package hardware

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func load(t *testing.T, name string) *Spec {
	t.Helper()
	s, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPresets(t *testing.T) {
	names := Presets()
	for _, want := range []string{"a100", "ascend910", "ascend910-abstract", "goya", "ipu", "stcp920",
		"stcp920-paper", "v100"} {
		if !slices.Contains(names, want) {
			t.Errorf("Presets() = %v, want %s among them", names, want)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("Presets() = %v, want them sorted", names)
	}
	for _, name := range names {
		s := load(t, name)
		if s.Name != name {
			t.Errorf("preset %s has the name %s", name, s.Name)
		}
		if s.Description == "" {
			t.Errorf("preset %s has no description", name)
		}
	}
}

// The figures of the chip that are published, as a check of the preset's.
func TestSTCP920(t *testing.T) {
	s := load(t, "stcp920")
	if s.Clusters != 4 || s.Cores() != 8 || len(s.CoreTypes) != 1 || len(s.CoreTypes[0].Units) != 3 {
		t.Errorf("%d clusters, %d cores, %d core types, want 4, 8, 1", s.Clusters, s.Cores(), len(s.CoreTypes))
	}
	// 128 TFLOPS FP16 and 256 TOPS INT8; the array of the second-hand
	// source gives 2.4 % more.
	for dtype, want := range map[string]float64{"f16": 128e12 / 2, "i8": 256e12 / 2} {
		if got := s.PeakMACsPerSecond(dtype); math.Abs(got/want-1) > 0.03 {
			t.Errorf("PeakMACsPerSecond(%s) = %g, want about %g", dtype, got, want)
		}
	}
	if got, want := s.L1.SizeBytes+s.L1WeightBytes, Bytes(5<<20/4); got != want {
		t.Errorf("L1 has %v, want %v", got, want)
	}
	if got, want := s.L1TotalBytes(), Bytes(8<<20); got != want {
		t.Errorf("LBTotalBytes() = %v, want %v", got, want)
	}
	if got, want := s.LLB.SizeBytes, Bytes(8<<20); got != want {
		t.Errorf("LLB has %v, want %v", got, want)
	}
	// A small operation takes 24 to 28 cycles on the MME and 11 on the VME.
	mme, _ := s.UnitOf(Matrix)
	vme, _ := s.UnitOf(Vector)
	if c := mme.FillCycles + 1; c < 24 || c > 28 {
		t.Errorf("a small operation takes %v on the MME, want 24 to 28", c)
	}
	if c := vme.FillCycles + 1; c != 11 {
		t.Errorf("a small operation takes %v on the VME, want 11", c)
	}
	// Two bytes take 68 to 84 cycles from L1 to LLB.
	if c := (s.L1.LatencySeconds + s.CoreLink.LatencySeconds + s.LLB.LatencySeconds) * s.ClockHz; c < 68 || c > 84 {
		t.Errorf("a small move takes %v cycles, want 68 to 84", c)
	}
	core := s.CoreTypes[0]
	if vc, ok := s.UnitOf(Special); !ok || core.Resource(vc.Name) != core.Resource(vme.Name) {
		t.Error("vector core and VME do not share hardware")
	}
	if core.Resource("mme") == core.Resource("vme") {
		t.Error("MME and VME share hardware")
	}
	for name, got := range map[string]float64{
		"L1": s.L1.BandwidthBytesPerSecond / 512e9, "LLB": s.LLB.BandwidthBytesPerSecond / 256e9,
		"DDR": s.DDR.BandwidthBytesPerSecond / 108e9, "core link": s.CoreLink.BandwidthBytesPerSecond / 64e9,
		"clock": s.ClockHz / 1e9,
	} {
		if got != 1 {
			t.Errorf("%s is %g times the figure that was chosen", name, got)
		}
	}
}

// The two presets are one machine but for the L1.
func TestSTCP920Paper(t *testing.T) {
	vendor, paper := load(t, "stcp920"), load(t, "stcp920-paper")
	if paper.L1.SizeBytes != 64<<10 || paper.L1WeightBytes != 0 {
		t.Errorf("L1 has %v and %v for weights, want 64KiB and none", paper.L1.SizeBytes, paper.L1WeightBytes)
	}
	paper.Name, paper.Description = vendor.Name, vendor.Description
	paper.L1.SizeBytes, paper.L1WeightBytes = vendor.L1.SizeBytes, vendor.L1WeightBytes
	if !reflect.DeepEqual(vendor, paper) {
		t.Errorf("they differ beyond the L1:\n%s\n%s", vendor.Describe(), paper.Describe())
	}
}

// The figures of the other machines that are published, and the shape that the
// GraphTurbo paper gives them in Fig. 1.
func TestOtherMachines(t *testing.T) {
	for _, c := range []struct {
		name            string
		clusters, cores int
		tflops          map[string]float64 // of two operations per MAC
		local, shared   Bytes              // per core and per cluster
		ddr             float64
	}{
		{"goya", 1, 9, nil, 80 << 10, 50_600_000, 42.7e9},
		{"ascend910", 1, 32, map[string]float64{"f16": 256, "i8": 512}, 1 << 20, 32 << 20, 1.2e12},
		{"ascend910-abstract", 1, 8, map[string]float64{"f16": 64, "i8": 128}, 1 << 20, 8 << 20, 0.3e12},
		{"ipu", 2, 1216, map[string]float64{"f16": 2 * 124.5, "f32": 2 * 31.1}, 256 << 10, 0, 32e9},
		{"a100", 1, 108, map[string]float64{"f16": 312, "i8": 624}, 164 << 10, 40 << 20, 1555e9},
		{"v100", 1, 80, map[string]float64{"f16": 125, "i8": 62}, 96 << 10, 6 << 20, 900e9},
		{"inferentia2", 2, 1, map[string]float64{"bf16": 2 * 92, "i8": 2 * 184, "f32": 2 * 23}, 24 << 20, 0, 820e9},
		{"trainium1", 2, 1, map[string]float64{"bf16": 2 * 92, "i8": 2 * 184, "f32": 2 * 23}, 24 << 20, 0, 820e9},
		{"wormhole-n150", 1, 64, map[string]float64{"f8": 262, "bf16": 65.5}, 1464 << 10, 0, 267e9},
		{"ascend310p", 1, 8, map[string]float64{"f16": 69.5, "i8": 139}, 1 << 20, 16 << 20, 144e9},
		{"ascend910a", 1, 32, map[string]float64{"f16": 262, "i8": 524}, 1 << 20, 32 << 20, 1.02e12},
		{"a100-80gb", 1, 108, map[string]float64{"bf16": 312, "f32": 156}, 292 << 10, 40 << 20, 1740e9},
		{"h100", 1, 132, map[string]float64{"bf16": 989, "i8": 1979, "f32": 495}, 356 << 10, 50 << 20, 3080e9},
		{"h200", 1, 132, map[string]float64{"bf16": 989, "i8": 1979, "f32": 495}, 356 << 10, 50 << 20, 4413e9},
		{"mi210", 1, 104, map[string]float64{"f16": 149}, 320 << 10, 8 << 20, 1530e9},
		{"t4", 1, 40, map[string]float64{"f16": 65, "i8": 130}, 192 << 10, 4 << 20, 260e9},
		{"ipu-mk2", 1, 1472, map[string]float64{"f16": 280, "f8": 560, "f32": 70}, 624 << 10, 0, 32e9},
		{"gaudi2", 1, 26, map[string]float64{"bf16": 433, "f8": 866, "f32": 116}, 80 << 10, 48_000_000, 2450e9},
		{"tpu-v3", 2, 1, map[string]float64{"bf16": 123}, 16 << 20, 0, 900e9},
	} {
		s := load(t, c.name)
		if s.Clusters != c.clusters || s.Cores() != c.cores {
			t.Errorf("%s: %d clusters of %d cores, want %d of %d", c.name, s.Clusters, s.Cores(), c.clusters, c.cores)
		}
		for dtype, want := range c.tflops {
			if got := 2 * s.PeakMACsPerSecond(dtype) / 1e12; math.Abs(got/want-1) > 0.03 {
				t.Errorf("%s: peak of %s is %g TFLOPS, want about %g", c.name, dtype, got, want)
			}
		}
		if got := s.L1.SizeBytes + s.L1WeightBytes; got != c.local {
			t.Errorf("%s: a core has %v, want %v", c.name, got, c.local)
		}
		shared := Bytes(0)
		if s.LLB != nil {
			shared = s.LLB.SizeBytes
		}
		if shared != c.shared {
			t.Errorf("%s: a cluster shares %v, want %v", c.name, shared, c.shared)
		}
		if s.DDR.BandwidthBytesPerSecond != c.ddr {
			t.Errorf("%s: memory of %g B/s, want %g", c.name, s.DDR.BandwidthBytesPerSecond, c.ddr)
		}
	}
	// 15 000 ResNet-50 images/s are published for Goya: 123 TOPS at 4.1 G MACs each.
	if got := 2 * load(t, "goya").PeakMACsPerSecond("i8"); got < 123e12 {
		t.Errorf("goya: peak of %g operations/s can't give the published throughput", got)
	}
}

// Each figure of a preset says where it is from, in its line or in a comment
// above it, with no other comment or empty line between.
func TestPresetsGiveSources(t *testing.T) {
	marks := []string{"published", "second hand", "single source", "derived", "recalled", "ESTIMATE", "fitted", "measured",
		"contained in", "the paper tells", "Published"}
	marked := func(line string) bool {
		_, comment, ok := strings.Cut(line, "#")
		return ok && slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(comment, m) })
	}
	for _, name := range Presets() {
		data, err := PresetYAML(name)
		if err != nil {
			t.Fatal(err)
		}
		above := false
		for i, line := range strings.Split(string(data), "\n") {
			text := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(text, "#"):
				above = above || marked(line)
				continue
			case strings.HasPrefix(text, "rate:"), strings.HasPrefix(text, "cycles_per_op:"):
				above = marked(line)
				continue
			}
			field, _, _ := strings.Cut(text, "#")
			_, value, _ := strings.Cut(field, ":")
			if strings.ContainsAny(value, "0123456789") && !strings.Contains(field, "name:") &&
				!strings.HasPrefix(field, "description:") && !marked(line) && !above {
				t.Errorf("%s:%d: no source: %s", name, i+1, text)
			}
			if text == "" || strings.Contains(line, "#") {
				above = false
			}
		}
	}
}

func TestIPULike(t *testing.T) {
	s := load(t, "testdata/ipu.yaml")
	if s.LLB != nil {
		t.Error("GB is not nil")
	}
	if got, want := s.L1TotalBytes(), Bytes(304<<20); got != want {
		t.Errorf("LBTotalBytes() = %v, want %v", got, want)
	}
	if got, want := s.PeakMACsPerSecond("f16"), 124.5e12; math.Abs(got/want-1) > 0.01 { // two chips
		t.Errorf("PeakMACsPerSecond(f16) = %g, want about %g", got, want)
	}
	if c := s.CoreTypes[0]; c.Resource("alu") != "amp" || c.Resource("amp") != "amp" {
		t.Errorf("units occupy %s and %s, want amp", c.Resource("alu"), c.Resource("amp"))
	}
	if got, want := s.L1.LatencySeconds, 6/1.6e9; got != want {
		t.Errorf("LB latency = %g, want %g", got, want)
	}
	if got, want := s.CoreLink.BandwidthBytesPerSecond, 6.4e9; got != want {
		t.Errorf("core link = %g, want %g", got, want)
	}
	if s.DDRLink.BandwidthBytesPerSecond != 16e9 {
		t.Errorf("DDR link = %g, want 16e9", s.DDRLink.BandwidthBytesPerSecond)
	}
}

func TestGoyaLike(t *testing.T) {
	s := load(t, "testdata/goya.yaml")
	if s.Cores() != 9 || s.CoresWith(Vector) != 8 || s.CoresWith(Matrix) != 1 || s.CoresWith(Special) != 0 {
		t.Errorf("%d cores, %d vector, %d matrix, %d special, want 9, 8, 1, 0",
			s.Cores(), s.CoresWith(Vector), s.CoresWith(Matrix), s.CoresWith(Special))
	}
	if got, want := s.L1TotalBytes(), Bytes(8*80<<10); got != want {
		t.Errorf("LBTotalBytes() = %v, want %v: the matrix engine has none", got, want)
	}
	if !s.CoreTypes[0].HasL1 || s.CoreTypes[1].HasL1 {
		t.Errorf("HasLB = %v, %v, want true, false", s.CoreTypes[0].HasL1, s.CoreTypes[1].HasL1)
	}
	if got, want := s.PeakMACsPerSecond("i8"), 256*256*1.5e9; got != want {
		t.Errorf("PeakMACsPerSecond(i8) = %g, want %g: the vector cores do not add to it", got, want)
	}
	// The matrix engine has no FP32.
	if got, want := s.PeakMACsPerSecond("f32"), 8*64*1.5e9; got != want {
		t.Errorf("PeakMACsPerSecond(f32) = %g, want %g, on the vector cores", got, want)
	}
	if got := s.PeakMACsPerSecond("bf16"); got != 0 {
		t.Errorf("PeakMACsPerSecond(bf16) = %g, want 0", got)
	}
	if s.LLB.SizeBytes != 50_600_000 {
		t.Errorf("GB has %d bytes, want 50600000", s.LLB.SizeBytes)
	}
	if s.DDRLink.BandwidthBytesPerSecond != 0 {
		t.Errorf("DDR link = %g, want 0 for unlimited", s.DDRLink.BandwidthBytesPerSecond)
	}
	if u, ok := s.UnitOf(Matrix); !ok || u.Name != "mme" {
		t.Errorf("UnitOf(Matrix) = %v, %v", u.Name, ok)
	}
	if _, ok := s.UnitOf(Special); ok {
		t.Error("UnitOf(Special) found one")
	}
}

// The example that the package comment and the documents name is complete.
func TestExample(t *testing.T) { load(t, "testdata/example.yaml") }

func TestResource(t *testing.T) {
	unit := func(name, shares string) Unit { return Unit{Name: name, SharesWith: shares} }
	for _, tc := range []struct {
		name  string
		units []Unit
		want  []string
	}{
		{"apart", []Unit{unit("a", ""), unit("b", "")}, []string{"a", "b"}},
		{"pair", []Unit{unit("a", "b"), unit("b", "")}, []string{"a", "a"}},
		{"both ways", []Unit{unit("a", "b"), unit("b", "a"), unit("c", "")}, []string{"a", "a", "c"}},
		{"through another", []Unit{unit("a", "c"), unit("b", "c"), unit("c", "")}, []string{"a", "a", "a"}},
		{"chain", []Unit{unit("a", ""), unit("b", "d"), unit("c", "a"), unit("d", "c")}, []string{"a", "a", "a", "a"}},
		{"two groups", []Unit{unit("a", "d"), unit("b", "c"), unit("c", ""), unit("d", "")}, []string{"a", "b", "b", "a"}},
	} {
		core := CoreType{Units: tc.units}
		for i, u := range tc.units {
			if got := core.Resource(u.Name); got != tc.want[i] {
				t.Errorf("%s: Resource(%s) = %s, want %s", tc.name, u.Name, got, tc.want[i])
			}
		}
	}
}

func TestPeakOfSharingUnits(t *testing.T) {
	m := func(name, shares string, rows int) Unit {
		return Unit{Name: name, Kind: Matrix, SharesWith: shares, Rows: rows, Cols: 1, Rate: map[string]float64{"f16": 1}}
	}
	s := &Spec{ClockHz: 1e9, Clusters: 2, CoreTypes: []CoreType{{Count: 3, Units: []Unit{
		m("a", "", 8), m("b", "a", 16), m("c", "", 4),
	}}}}
	if got, want := s.PeakMACsPerSecond("f16"), (16.0+4)*3*2*1e9; got != want {
		t.Errorf("PeakMACsPerSecond = %g, want %g: a and b take turns", got, want)
	}
}

func TestOpsPerCycle(t *testing.T) {
	s := load(t, "stcp920")
	vme, _ := s.UnitOf(Vector)
	vc, _ := s.UnitOf(Special)
	mme, _ := s.UnitOf(Matrix)
	for _, tc := range []struct {
		unit         Unit
		class, dtype string
		want         float64
	}{
		{vme, OpSimple, "f16", 64},
		{vme, OpSimple, "f32", 32},
		{vme, OpSpecial, "f16", 0},
		{vc, OpSpecial, "f16", 16},
		{vc, OpMove, "f64", 0},
		{mme, OpSimple, "f16", 0},
	} {
		if got := tc.unit.OpsPerCycle(tc.class, tc.dtype); got != tc.want {
			t.Errorf("%s: OpsPerCycle(%s, %s) = %g, want %g", tc.unit.Name, tc.class, tc.dtype, got, tc.want)
		}
	}
	if got := mme.MACsPerCycle("i8"); got != 2*64*32 {
		t.Errorf("MACsPerCycle(i8) = %g, want %d", got, 2*64*32)
	}
	if mme.Supports("f32") || !mme.Supports("f16") {
		t.Error("the MME should support f16 and not f32")
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	huge := write("huge.yaml", []byte("name: x\n"+strings.Repeat("# filler\n", MaxFileBytes/9)))
	empty := write("empty.yaml", nil)
	for _, tc := range []struct {
		name, path string
		is         error
		want       string
	}{
		{"unknown preset", "stcp921", ErrUnknownPreset,
			`unknown accelerator "stcp921" (did you mean stcp920?)`},
		{"empty name", "", ErrUnknownPreset, `unknown accelerator "": `},
		{"preset with a newline", "a\nb", ErrUnknownPreset, `unknown accelerator "a\nb": `},
		{"missing file", filepath.Join(dir, "no.yaml"), fs.ErrNotExist,
			filepath.Join(dir, "no.yaml") + ": no such file or directory"},
		{"missing file without extension", filepath.Join(dir, "no"), fs.ErrNotExist, "no such file or directory"},
		{"missing .yml", "no.yml", fs.ErrNotExist, "no.yml: no such file or directory"},
		{"directory", dir, nil, dir + ": no regular file but a folder"},
		{"huge", huge, nil, huge + ": found more than 1MiB, expected a description of an accelerator"},
		{"empty", empty, nil, empty + ":1: found an empty file, expected a description of an accelerator"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Load(tc.path)
			if err == nil {
				t.Fatalf("no error but %v", s)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v is not %v", err, tc.is)
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %v", err, tc.want)
			}
		})
	}
}

func TestPresetYAMLIsNoPath(t *testing.T) {
	for _, name := range []string{"../presets/stcp920", "./stcp920", ".", "", "stcp920.yaml"} {
		if _, err := PresetYAML(name); !errors.Is(err, ErrUnknownPreset) {
			t.Errorf("PresetYAML(%q): %v", name, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	got := load(t, "stcp920").Describe()
	const want = `name        stcp920
description Stream Computing STCP920 with the vendor's L1 (1 MiB of data and 256 KiB of weights)
clock       1GHz
clusters    4, each with:
  cores     8 x core
    unit    mme (matrix): 64 x 32; rate f16 1 i8 2; fill 25cycles
    unit    vme (vector): 64 lanes; rate f32 0.5 f16 1 i8 1 u8 1 i16 1 i32 0.5 bool 1; fill
              10cycles; cycles per operation simple 1 move 1
    unit    vector-core (special, shares hardware with vme): 64 lanes; rate f32 0.5 f16 1 i8 1 u8 1
              i16 1 i32 0.5 bool 1; fill 20cycles; cycles per operation simple 1 special 4 move 1
L1          1MiB, 512GB/s, latency 0ns, and 256KiB for weights (per core)
LLB         8MiB, 256GB/s, latency 0ns (per cluster)
DDR         16GiB, 108GB/s, latency 150ns, for activations at 0.69 of it (chip)
core link   64GB/s per direction with broadcast, latency 76ns
DDR link    unlimited, latency 0ns
launch      20.5us
sync        100ns
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(got, "peak f32    1.024TMAC/s, on vector units\npeak f16    65.536TMAC/s\n") {
		t.Errorf("which units the peaks are of is not said:\n%s", got)
	}
	if goya := load(t, "testdata/goya.yaml").Describe(); !strings.Contains(goya, "1 x gemm, no L1\n") {
		t.Errorf("the matrix engine is not said to lack an L1:\n%s", goya)
	}
	if h100 := load(t, "h100").Describe(); !strings.Contains(h100, "\nstart       1.08us more before a layer") {
		t.Errorf("the start of the matrix unit is not said:\n%s", h100)
	}
	if ipu := load(t, "testdata/ipu.yaml").Describe(); !strings.Contains(ipu, "LLB         none") {
		t.Errorf("the LLB is not said to be missing:\n%s", ipu)
	}
}

// Units of one kind are the same in all core types, so that which type comes first changes nothing.
func TestUnitsOfOneKindAreAlike(t *testing.T) {
	s := load(t, "stcp920")
	small := s.Clone().CoreTypes[0]
	small.Name = "small"
	s.CoreTypes = append(s.CoreTypes, small)
	if err := s.Validate(); err != nil {
		t.Errorf("two types with the same units: %v", err)
	}
	for i, u := range small.Units {
		if u.Kind == Vector {
			small.Units[i].Lanes = 16
		}
	}
	for range 2 {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "expected the same unit in all core types") {
			t.Errorf("two types with other vector units: %v", err)
		}
		slices.Reverse(s.CoreTypes)
	}
}
