package simt

import (
	"errors"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
)

func preset(t *testing.T, name string) *Machine {
	t.Helper()
	m, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The figures that AStitch (ASPLOS 2022) publishes.
func TestPublishedWaves(t *testing.T) {
	for name, want := range map[string]int64{"v100-simt": 160, "t4-simt": 40} {
		m := preset(t, name)
		if got := m.Wave(m.Start()); got != want {
			t.Errorf("%s: a wave of %d blocks, want %d", name, got, want)
		}
	}
	m := preset(t, "v100-simt")
	if got := m.Registers(160, 1024); got != 32 {
		t.Errorf("%d registers at 160 blocks, want 32", got)
	}
	if got := m.Registers(80, 1024); got != 64 {
		t.Errorf("%d registers at 80 blocks, want 64", got)
	}
}

func TestPublishedBarriers(t *testing.T) {
	m := preset(t, "v100-simt")
	for i, us := range []float64{2.53, 2.53, 2.59, 2.59, 2.66, 2.66, 2.69, 2.72} {
		blocks := int64(20 * (i + 1))
		if got := m.Barrier(blocks) * 1e6; math.Abs(got/us-1) > 0.05 {
			t.Errorf("a barrier over %d blocks takes %.3f us, published %.2f", blocks, got, us)
		}
	}
}

func TestPublishedReductions(t *testing.T) {
	m := preset(t, "v100-simt")
	packed := Pack(750000, 32, 1024, 160)
	if packed.RowsPerTask != 32 || packed.TaskCount() != 23438 || packed.Tasks != 147 || packed.Blocks != 160 {
		t.Errorf("packed %+v, want 32 rows a task, 23438 tasks, 147 for each of 160 blocks", packed)
	}
	split := Pack(64, 30000, 1024, 160)
	if split.Parts != 2 || split.Blocks != 128 {
		t.Errorf("split %+v, want 2 parts, 128 blocks", split)
	}
	// Both are faster than a block for each row.
	for _, p := range []Mapping{packed, split} {
		plain := m.Plain(p.Rows, p.Cols)
		a, b := m.reduction(p), m.reduction(plain)
		if a.Total() >= b.Total() {
			t.Errorf("<%d,%d> takes %.1f us adapted and %.1f us plain", p.Rows, p.Cols, a.Total()*1e6, b.Total()*1e6)
		}
	}
}

// reduction is the time of a row reduction of f32.
func (m *Machine) reduction(p Mapping) Time {
	w := Work{ReadBytes: 4 * p.Rows * p.Cols, WriteBytes: 4 * p.Rows, Simple: p.Rows * p.Cols, Syncs: 2}
	if p.Parts > 1 {
		w.Atomics = p.Rows * p.Parts
	}
	b := m.Start()
	b.Threads = p.Threads
	return m.Time(Kernel{Block: b, Blocks: p.Blocks, Phases: [][]Nest{{{Mapping: p, Work: w}}}})
}

// The wave by counting: blocks are put on SMs until one resource is used up.
func TestOccupancyByCounting(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, name := range Presets() {
		m := preset(t, name)
		for range 2000 {
			b := Block{Threads: 1 + r.Int63n(m.Block.Threads), Registers: 1 + r.Int63n(m.Block.Registers),
				SharedBytes: r.Int63n(m.Block.SharedBytes)}
			n := int64(0)
			for (n+1)*b.Threads <= m.SM.Threads && (n+1)*b.Threads*b.Registers <= m.SM.Registers &&
				(n+1)*b.SharedBytes <= m.SM.SharedBytes && n < m.SM.Blocks {
				n++
			}
			if got := m.Occupancy(b); got != n {
				t.Fatalf("%s: occupancy of %+v is %d, want %d", name, b, got, n)
			}
			if n > 0 {
				if r := m.Registers(n*m.SMs, b.Threads); r < b.Registers {
					t.Fatalf("%s: %d registers at the occupancy of %+v", name, r, b)
				}
				if s := m.Shared(n * m.SMs); s < b.SharedBytes {
					t.Fatalf("%s: %d bytes of shared memory at the occupancy of %+v", name, s, b)
				}
			}
		}
		if got := m.Occupancy(Block{Threads: m.Block.Threads + 1}); got != 0 {
			t.Errorf("%s holds %d blocks with too many threads", name, got)
		}
	}
}

// Every row, or every part of one, belongs to one block, within the wave.
func TestPackCovers(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 5000 {
		rows, cols, wave := 1+r.Int63n(3000), 1+r.Int63n(5000), 1+r.Int63n(200)
		p := Pack(rows, cols, 1024, wave)
		if p.Blocks > wave {
			t.Fatalf("<%d,%d>: %d blocks of a wave of %d", rows, cols, p.Blocks, wave)
		}
		if p.Blocks*p.Tasks < p.TaskCount() || (p.Blocks-1)*p.Tasks >= p.TaskCount() {
			t.Fatalf("<%d,%d>: %d blocks of %d tasks for %d", rows, cols, p.Blocks, p.Tasks, p.TaskCount())
		}
		switch {
		case p.Parts > 1 && (p.RowsPerTask != 1 || rows*p.Parts > wave || p.RowsPerBlock() != 0):
			t.Fatalf("<%d,%d>: split %+v", rows, cols, p)
		case p.Parts == 1 && p.RowsPerTask > 1 && p.RowsPerTask*cols > 1024:
			t.Fatalf("<%d,%d>: packed %+v", rows, cols, p)
		case p.Parts == 1 && p.RowsPerBlock()*p.Blocks < rows:
			t.Fatalf("<%d,%d>: %+v leaves rows out", rows, cols, p)
		}
	}
}

// A kernel never beats its roofline, and never gets faster from more bytes.
func TestTimeIsBounded(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	m := preset(t, "v100-simt")
	for range 1000 {
		p := Pack(1+r.Int63n(1e5), 1+r.Int63n(3000), 1024, 160)
		a := m.reduction(p)
		if floor := float64(4*p.Rows*p.Cols)/m.DRAM.BytesPerSecond + m.LaunchSeconds; a.Total() < floor {
			t.Fatalf("%+v takes %g s, and its bytes alone %g", p, a.Total(), floor)
		}
		k := Kernel{Block: m.Start(), Blocks: 160,
			Phases: [][]Nest{{{Mapping: p, Work: Work{ReadBytes: 1 << 20}}}, {{Mapping: p, Work: Work{ReadBytes: 1 << 20}}}}}
		one := m.Time(k)
		if want := m.Barrier(160); one.Barrier != want {
			t.Fatalf("one barrier costs %g, want %g", one.Barrier, want)
		}
		k.Phases[1][0].Work.ReadBytes *= 100
		if more := m.Time(k); more.Total() < one.Total() {
			t.Fatalf("a hundred times the bytes take %g s, before %g", more.Total(), one.Total())
		}
	}
	// Nests that wait for each other take the sum of their latencies, others side by side.
	p := Pack(1000, 100, 1024, 160)
	n := Nest{Mapping: p, Work: Work{L2Bytes: 4}}
	dependent := n
	dependent.After = []int{0}
	side := m.Time(Kernel{Block: m.Start(), Blocks: 160, Phases: [][]Nest{{n, n}}})
	chain := m.Time(Kernel{Block: m.Start(), Blocks: 160, Phases: [][]Nest{{n, dependent}}})
	if !(chain.Work > side.Work) {
		t.Errorf("a chain takes %g s, side by side %g", chain.Work, side.Work)
	}
}

func TestTimePanics(t *testing.T) {
	m := preset(t, "v100-simt")
	for name, k := range map[string]Kernel{
		"a block that no SM can hold":            {Block: Block{Threads: 4096}},
		"a barrier over more blocks than a wave": {Block: m.Start(), Blocks: 161, Phases: make([][]Nest, 2)},
	} {
		func() {
			defer func() {
				if got := recover(); got != "simt: "+name {
					t.Errorf("panic %v, want %q", got, "simt: "+name)
				}
			}()
			m.Time(k)
		}()
	}
}

func TestLibrary(t *testing.T) {
	m := preset(t, "v100-simt")
	macs, bytes := int64(1e12), int64(1e6)
	want := 1e12/(0.7*512*80*1.53e9) + 10e-6
	if got := m.Library(macs, "f16", bytes); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("a product takes %g s, want %g", got, want)
	}
	if a, b := m.Library(macs, "i64", bytes), m.Library(macs, "f32", bytes); a != b {
		t.Errorf("an unknown type takes %g s, f32 %g", a, b)
	}
	if got, want := m.Library(1, "f16", 9e9), 10e-6+0.01; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("9 GB take %g s, want %g", got, want)
	}
}

func TestBadDescriptions(t *testing.T) {
	good, err := PresetYAML("v100-simt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"sms: 80 ", "sms: 0 ", `:13: sms: found "0", expected a whole number from 1 to 65536`},
		{"sms: 80 ", "cores: 80 ", `sms: missing`},
		{"sms: 80 ", "cores: 80 ", `:13: cores: an unknown field`},
		{"clock: 1.53GHz ", "clock: fast ", `:12: clock: found "fast", expected a clock such as 1.0GHz`},
		{"launch: 10us ", "launch: -1us ", `launch: found "-1us", expected a time from 0s to 1s`},
		{"900GB/s ", "900GB ", `dram.bandwidth: found "900GB", expected a bandwidth above zero such as`},
		{"  shared: 96KiB               # recalled", "  shared: 97KiB # recalled",
			`block.shared: found 99328B, expected at most the 98304B of sm.shared`},
		{"    f32: 64 ", "    f31: 64 ", `sm.matrix.f32: missing`},
		{"    f32: 64 ", "    f32: [1] ",
			`m.yaml: line 25: sm.matrix.f32 is a list, expected a SIMT machine, whose fields have one value each`},
		{"registers: 65536 ", "registers: 100 ",
			`sm.registers: found 100, expected at least 32 for each of the 1024 threads of a block`},
		{"library_efficiency: 0.7 ", "library_efficiency: NaN ",
			`library_efficiency: found "NaN", expected a number from 1e-06 to 1`},
		{"sms: 80 ", "sms: [80 ", `m.yaml: not valid YAML: line `},
		{"sms: 80 ", "sms: 80\nsms: 80 ", `sms is a duplicate`},
	} {
		text := strings.Replace(string(good), c.from, c.to, 1)
		if text == string(good) {
			t.Fatalf("%q does not occur", c.from)
		}
		_, err := Parse("m.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v, want %s", c.from, c.to, err, c.want)
		}
		var e *hardware.Error
		if !strings.Contains(c.want, "is a list") && !strings.Contains(c.want, "YAML") &&
			!strings.Contains(c.want, "duplicate") && !errors.As(err, &e) {
			t.Errorf("%s: %T, want a *hardware.Error", c.to, err)
		}
	}
	for _, text := range []string{"", "- 1", "a: b: c", "\x00", "name: *x"} {
		if _, err := Parse("m.yaml", []byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if _, err := Load("v100-smit"); !errors.Is(err, ErrUnknownPreset) || !strings.Contains(err.Error(), "v100-simt") {
		t.Errorf("unknown preset: %v", err)
	}
	if _, err := Load("nothere.yaml"); err == nil {
		t.Error("a file that is not there is read")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Presets() {
		data, err := PresetYAML(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("f.yaml", data)
		if err != nil {
			return
		}
		if w := m.Wave(m.Start()); w < 1 {
			t.Errorf("a wave of %d blocks", w)
		}
	})
}
