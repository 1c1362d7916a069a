package measured

import (
	"context"
	"math"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/recipes"
)

// Tiles are read with P and R along a line, those at the borders have the rest, and other texts are refused.
func TestReadMapping(t *testing.T) {
	c, err := readConvolution("c256 k720 p28 q28 r3 s3 stride1 pad267264 acc50176")
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.readMapping("L3[WIO] K45 S3 Q2 - L2[WI] N1 K16X - L1[O] R3 C16 Q7 P28 C16X - L0[W] Q2")
	if err != nil {
		t.Fatal(err)
	}
	if h, w := b.input(); h != 14 || w != 30 || b.Tile['K'] != 16 || b.Tile['S'] != 1 || b.Tile['C'] != 256 {
		t.Errorf("tiles %v of inputs of %d x %d", b.Tile, h, w)
	}
	if x := b.reductions(); len(x) != 3 || x[0] != 256 {
		t.Errorf("reductions of %v channels", x)
	}
	if got, want := b.requests(), int64(3*(14*30*4+256*3)+14*28); got != want {
		t.Errorf("%d requests, expected %d", got, want)
	}
	own, err := c.readMapping("Gemmini's own: tile R3 S3 P23 Q22 C176 K16 N1")
	if err != nil {
		t.Fatal(err)
	}
	if x := own.reductions(); len(x) != 2 || x[0] != 176 || x[1] != 80 {
		t.Errorf("reductions of %v channels", x)
	}
	if x := borders(28, 23); len(x) != 2 || x[0] != [2]int64{23, 1} || x[1] != [2]int64{5, 1} {
		t.Errorf("28 outputs in tiles of 23: %v", x)
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

// A blocking takes no less than the array's work and no less than its requests. With small tiles of columns, whose
// rows of weights make short requests, the machine is slower; so it is with short lines.
func TestCycles(t *testing.T) {
	spec, err := hardware.Load("gemmini")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tiled-llb")
	if err != nil {
		t.Fatal(err)
	}
	c := convolution{C: 256, K: 128, P: 8, Q: 8, R: 1, S: 1, Stride: 1, Scratchpad: 1 << 18, Accumulator: 1 << 16}
	cycles := func(mapping string) float64 {
		b, err := c.readMapping("L3[WIO] " + mapping + " C16 C16X - L0[W] N1")
		if err != nil {
			t.Fatal(err)
		}
		got := b.cycles(context.Background(), spec, recipe)
		tiles := float64(ceilDiv(c.K, b.Tile['K']) * ceilDiv(c.P, b.Tile['P']) * ceilDiv(c.Q, b.Tile['Q']))
		period := spec.DDR.LatencySeconds * spec.ClockHz / requests
		if least := math.Max(float64(c.C*c.K*c.P*c.Q)/256, tiles*float64(b.requests())*period); got < least {
			t.Errorf("%s: %g cycles, expected at least %g", mapping, got, least)
		}
		return got
	}
	var last float64
	for _, k := range []string{"K1 - L2[WI] N1 K16X - L1[O] K8", "K4 - L2[WI] N1 K16X - L1[O] K2",
		"K8 - L2[WI] N1 K16X - L1[O] N1"} {
		got := cycles(k + " P8 Q8")
		if got < last {
			t.Errorf("%s: %g cycles, with larger tiles %g", k, got, last)
		}
		last = got
	}
	lines, columns := cycles("Q2 - L2[WI] N1 K16X - L1[O] K8 P8 Q4"), cycles("P2 - L2[WI] N1 K16X - L1[O] K8 P4 Q8")
	if columns < 1.2*lines {
		t.Errorf("%g cycles with lines of 4, %g with lines of 8", columns, lines)
	}
}

// Layers have both of their mappings, and convolutions are kept apart on all buffers or on none.
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
		if l.apart() {
			apart++
		}
	}
	if 2*len(layers) != len(rows) || apart == 0 || apart == len(layers) {
		t.Errorf("%d layers of %d rows, %d kept apart", len(layers), len(rows), apart)
	}
}
