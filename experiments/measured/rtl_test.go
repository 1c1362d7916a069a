package measured

import (
	"context"
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/scheduler"
)

// Tiles cover their convolution, and what no nest says is refused by name.
func TestReadMapping(t *testing.T) {
	c, err := readConvolution("c256 k720 p28 q28 r3 s3 stride1 pad267264 acc50176")
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.readMapping("L3[WIO] K45 S3 - L2[WI] N1 K16X - L1[O] R3 C16 Q14 P28 C16X - L0[W] Q2")
	if err != nil {
		t.Fatal(err)
	}
	if b.Tile['K'] != 16 || b.Cuts['K'] != 45 || b.Tile['S'] != 1 || b.Cuts['S'] != 3 || b.Tile['C'] != 256 ||
		b.Tile['Q'] != 28 {
		t.Errorf("tiles %v, cuts %v", b.Tile, b.Cuts)
	}
	if x, w := b.operands(); x != 256*30*28 || w != 256*16*3 {
		t.Errorf("a tile has %d bytes of inputs and %d of weights", x, w)
	}
	for text, want := range map[string]error{
		"L3[WIO] C2 K45 - L2[WI] N1 K16X - L1[O] S3 R3 C8 Q14 P28 C16X - L0[W] Q2":         sumsLeave,
		"L3[WIO] K5 - L2[WI] N1 K16X - L1[O] K9 S3 R3 C16 Q14 P28 C16X - L0[W] Q2":         tooLargeA,
		"Gemmini's own: tile R1 S1 P28 Q28 C16 K32 N1":                                     tooLargeO,
		"L3[WIO] K5 C2 R3 S3 - L2[WI] N1 K16X - L1[O] K3 C8 Q14 P4 K3 C16X - L0[W] Q2 P7 ": tooLargeO,
	} {
		if _, err := c.readMapping(text); err != want {
			t.Errorf("%q: %v, expected %v", text, err, want)
		}
	}
	for _, text := range []string{"", "tile", "L3[WIO] K5 - L2[WI] N1 - L1[O] N1 - L0[W] N1", "Gemmini's own: tile X3"} {
		if _, err := c.readMapping(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if _, err := readConvolution("c256 k720 p0 q28 r3 s3 stride1 pad267264 acc50176"); err == nil {
		t.Error("a convolution without outputs was read")
	}
}

// A blocking takes no less than the array's work and no less than its requests, and with small tiles of columns, whose
// rows of weights make short requests, the machine is slower.
func TestCycles(t *testing.T) {
	spec, err := hardware.Load("gemmini")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := scheduler.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	c := convolution{C: 256, K: 128, P: 8, Q: 8, R: 1, S: 1, Stride: 1, Scratchpad: 1 << 18, Accumulator: 1 << 16}
	var last float64
	for _, k := range []string{"K1 - L2[WI] N1 K16X - L1[O] K8", "K4 - L2[WI] N1 K16X - L1[O] K2",
		"K8 - L2[WI] N1 K16X - L1[O] N1"} {
		b, err := c.readMapping("L3[WIO] " + k + " P8 Q8 C16 C16X - L0[W] N1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.cycles(context.Background(), spec, recipe)
		if err != nil {
			t.Fatal(err)
		}
		period := spec.DDR.LatencySeconds * spec.ClockHz / requests
		least := math.Max(float64(c.C*c.K*c.P*c.Q)/256, float64(b.Cuts['K']*b.requests())*period)
		if got < least || got < last {
			t.Errorf("%s: %g cycles, expected at least %g and %g", k, got, least, last)
		}
		last = got
	}
}

// Layers have both of their mappings, and every other pair of buffers is kept apart.
func TestLayersOf(t *testing.T) {
	s, err := full()
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, r := range s.rows {
		if r.Kind == rtl {
			rows = append(rows, r)
		}
	}
	layers, err := layersOf(rows, make([]rtlResult, len(rows)))
	if err != nil {
		t.Fatal(err)
	}
	apart := 0
	for _, l := range layers {
		if l.Given == nil || l.Own == nil {
			t.Errorf("%+v lacks a mapping", l.convolution)
		}
		if l.Apart {
			apart++
		}
	}
	if 2*len(layers) != len(rows) || apart == 0 || apart == len(layers) {
		t.Errorf("%d layers of %d rows, %d kept apart", len(layers), len(rows), apart)
	}
}
