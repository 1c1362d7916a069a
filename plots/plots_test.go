package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

var update = flag.Bool("update", false, "write the golden files anew")

var variantNames = []string{"tvm", "llb", "l1", "ordering", "cross-layer"}

var variantTitles = []string{"TVM", "variant 1", "variant 2", "variant 3", "variant 4"}

// panel has two series of bars by variant.
func panelOf(title string, first, second []float64, marks ...GroupMark) Groups {
	g := Groups{Title: title, YLabel: "Value", Numbers: true, Marks: marks,
		Series: []Series{{Name: "matrix unit", Values: first}, {Name: "vector unit", Values: second}}}
	for i := range first {
		g.Categories = append(g.Categories, variantNames[i]+"\n"+variantTitles[i])
	}
	return g
}

// sample looks like the results of the ablation.
func sample() []Groups {
	return []Groups{
		panelOf("ResNet-50, batch 64", []float64{1131, 1707, 1879, 7365, 8745}, []float64{1735, 1755, 1914, 7365, 8745},
			GroupMark{Value: 1064}, GroupMark{Category: 4, Value: 8726, Kind: Measured}),
		panelOf("BERT-128, batch 32", []float64{749, 1928, 2062, 2950, 3406}, []float64{907, 2043, 2158, 2950, 3406},
			GroupMark{Value: 512}, GroupMark{Category: 4, Value: 4052}, GroupMark{Category: 4, Value: 4192, Kind: Measured}),
	}
}

// shares looks like their utilisations.
func shares() []Groups {
	return []Groups{
		panelOf("ResNet-50, batch 64", []float64{10.8, 11, 11.9, 46, 54.6}, []float64{2.4, 2.4, 2.6, 10.1, 12}),
		panelOf("BERT-128, batch 32", []float64{15.5, 34.8, 36.8, 50.3, 58.1}, []float64{3.1, 7.1, 7.4, 10.2, 11.8}),
	}
}

var figures = []struct {
	name string
	of   func() []Groups
}{{"throughput", sample}, {"utilization", shares}}

func TestGolden(t *testing.T) {
	for _, f := range figures {
		fig, err := GroupedBars(f.of()...)
		if err != nil {
			t.Fatal(err)
		}
		svg, err := fig.SVG()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", f.name+".svg")
		if *update {
			if err := os.MkdirAll("testdata", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, svg, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(svg, want) {
			t.Errorf("%s differs from the golden file; look at it, then go test -update", path)
		}
		dec := xml.NewDecoder(bytes.NewReader(svg))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is not well-formed: %v", path, err)
			}
		}
		if bytes.Contains(svg, []byte("font-family:Liberation Sans;")) ||
			!bytes.Contains(svg, []byte("font-family:'Liberation Sans',Arial,")) {
			t.Errorf("%s has text in a font without another in its stead", path)
		}
	}
}

func TestPNG(t *testing.T) {
	for _, f := range figures {
		fig, err := GroupedBars(f.of()...)
		if err != nil {
			t.Fatal(err)
		}
		data, err := fig.PNG()
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		size := img.Bounds().Size()
		if want := int(math.Round(float64(pageWidth / vg.Inch * pngDPI))); size.X != want || size.Y < 600 {
			t.Errorf("%s has %v dots, want a width of %d and a height above 600", f.name, size, want)
		}
		// Every third column tells enough; a line of the grid may be one row.
		var all, inked int
		seen := map[color.NRGBA]int{}
		for y := range size.Y {
			for x := 0; x < size.X; x += 3 {
				all++
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				if c != (color.NRGBA{0xff, 0xff, 0xff, 0xff}) {
					inked++
					seen[c]++
				}
			}
		}
		if share := float64(inked) / float64(all); share < 0.05 || share > 0.5 {
			t.Errorf("%s: %.0f %% of the dots are not white", f.name, 100*share)
		}
		want := []color.NRGBA{grey, sky, black, gridGray}
		if f.name == "throughput" {
			want = append(want, vermillion)
		}
		for _, c := range want {
			if seen[c] < 20 {
				t.Errorf("%s has %d dots of colour %v", f.name, seen[c], c)
			}
		}
		if corner := img.At(0, 0); color.NRGBAModel.Convert(corner) != (color.NRGBA{0xff, 0xff, 0xff, 0xff}) {
			t.Errorf("%s: the corner is %v, want white", f.name, corner)
		}
	}
}

func TestSameDataSameBytes(t *testing.T) {
	for _, f := range figures {
		var first [2][]byte
		fig, err := GroupedBars(f.of()...)
		if err != nil {
			t.Fatal(err)
		}
		again, err := GroupedBars(f.of()...)
		if err != nil {
			t.Fatal(err)
		}
		// One figure drawn twice is the same too.
		for i, g := range []*Figure{fig, fig, again} {
			p, err := g.PNG()
			if err != nil {
				t.Fatal(err)
			}
			s, err := g.SVG()
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = [2][]byte{p, s}
			}
			if !bytes.Equal(p, first[0]) || !bytes.Equal(s, first[1]) {
				t.Errorf("%s differs from one time to the next", f.name)
			}
		}
	}
}

// box is where a text stands.
type box struct {
	text                     string
	left, bottom, right, top vg.Length
}

// texts draws a figure and returns where its texts are. Those that are turned are
// left out: only the labels of the y axes are, and they have a strip of their own.
func texts(t *testing.T, fig *Figure) []box {
	t.Helper()
	var rec recorder.Canvas
	fig.draw(draw.NewCanvas(&rec, fig.width, fig.height))
	var boxes []box
	turned := 0
	var stack []int
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.Push:
			stack = append(stack, turned)
		case *recorder.Pop:
			turned, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case *recorder.Rotate:
			turned++
		case *recorder.FillString:
			if turned > 0 {
				continue
			}
			sty := textStyle(a.Size, 0, 0)
			// Digits are three quarters of the font's size high.
			boxes = append(boxes, box{a.String, a.Point.X, a.Point.Y, a.Point.X + sty.Width(a.String), a.Point.Y + a.Size*3/4})
		}
	}
	if len(boxes) == 0 {
		t.Fatal("no text is drawn")
	}
	return boxes
}

func TestNoTextCoversAnother(t *testing.T) {
	flat := []float64{1234, 1234, 1234, 1234, 1234}
	large := []float64{11064, 12345, 13456, 14567, 15678}
	all := []GroupMark{{Value: 1234}, {Category: 4, Value: 1234}, {Category: 4, Value: 1234, Kind: Measured}}
	for name, panels := range map[string][]Groups{
		"sample": sample(), "shares": shares(), "one network": sample()[:1],
		"all alike":   {panelOf("a", flat, flat, all...)},
		"five digits": {panelOf("a", large, large)},
		"tiny":        {panelOf("a", []float64{.001, .002, .003, .004, .005}, make([]float64, 5))},
	} {
		t.Run(name, func(t *testing.T) {
			fig, err := GroupedBars(panels...)
			if err != nil {
				t.Fatal(err)
			}
			boxes := texts(t, fig)
			for i, a := range boxes {
				if a.left < 0 || a.right > fig.width || a.bottom < 0 || a.top > fig.height {
					t.Errorf("%q is not within the figure: %v", a.text, a)
				}
				for _, b := range boxes[:i] {
					if a.left < b.right && b.left < a.right && a.bottom < b.top && b.bottom < a.top {
						t.Errorf("%q and %q cover each other: %v, %v", a.text, b.text, a, b)
					}
				}
			}
		})
	}
}

func TestLegendNamesWhatIsThere(t *testing.T) {
	const published, measured = "published", "measured on the chip by others"
	for name, test := range map[string]struct {
		marks     []GroupMark
		want, not []string
	}{
		"no marks":  {nil, []string{"matrix unit", "vector unit"}, []string{published, measured}},
		"published": {[]GroupMark{{Value: 1}}, []string{published}, []string{measured}},
		"measured":  {[]GroupMark{{Value: 1, Kind: Measured}}, []string{measured}, []string{published}},
	} {
		fig, err := GroupedBars(panelOf("a", []float64{1, 2, 3, 4, 5}, make([]float64, 5), test.marks...))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, b := range texts(t, fig) {
			all = append(all, b.text)
		}
		for _, w := range test.want {
			if !slices.Contains(all, w) {
				t.Errorf("%s: %q is not in the figure", name, w)
			}
		}
		for _, w := range test.not {
			if slices.Contains(all, w) {
				t.Errorf("%s: %q is in the figure", name, w)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		marks []GroupMark
		value float64
		want  string
	}{
		{nil, 0, "plots: a has nothing above zero"},
		{nil, math.Inf(1), "plots: a has nothing above zero"},
		{[]GroupMark{{Kind: 7}}, 1, "plots: a has a mark of unknown kind 7"},
		{[]GroupMark{{Category: 1}}, 1, "plots: a has a mark at category 1 and series 0"},
	} {
		_, err := GroupedBars(panelOf("a", []float64{test.value}, []float64{0}, test.marks...))
		if err == nil || err.Error() != test.want {
			t.Errorf("error is %v, want %s", err, test.want)
		}
	}
}

func TestNiceTicks(t *testing.T) {
	for _, test := range []struct {
		top  float64
		want string
	}{
		{1, "0.0 0.2 0.4 0.6 0.8 1.0"}, {66.2, "0 20 40 60"}, {5114, "0 1000 2000 3000 4000 5000"},
		{10669, "0 2000 4000 6000 8000 10000"},
		{7, "0 2 4 6"}, {0.06, "0.00 0.01 0.02 0.03 0.04 0.05 0.06"}, {120, "0 20 40 60 80 100 120"}, {0, "0"},
		{131000, "0 50000 100000"},
	} {
		var got []string
		for _, k := range niceTicks(test.top) {
			got = append(got, k.Label)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("ticks up to %g are %q, want %q", test.top, got, test.want)
		}
	}
}

func ExampleGroupedBars() {
	fig, err := GroupedBars(Groups{Title: "ResNet-50, batch 64", YLabel: "images/s", Numbers: true,
		Categories: []string{"tvm", "cross-layer"}, Series: []Series{{Name: "simulated", Values: []float64{1131, 8745}}},
		Marks: []GroupMark{{Value: 1064}}})
	if err != nil {
		panic(err)
	}
	svg, err := fig.SVG()
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(string(svg), ">8745<"))
	// Output: true
}

// An axis of logarithms has three ticks or more, however short it is.
func TestDecades(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      string
	}{
		{0.8, 1250, "1 10 100 1000"}, {3, 70, "5 10 20 50"}, {6.1, 9.3, "7 8 9"}, {40, 66, "40 45 50 55 60 65"},
		{1.02, 1.09, "1.02 1.04 1.06 1.08"}, {11000, 19000, "12\u2009000 14\u2009000 16\u2009000 18\u2009000"},
	} {
		var got []string
		for _, k := range decades(test.low, test.high) {
			got = append(got, k.Label)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("ticks from %g to %g are %q, want %q", test.low, test.high, got, test.want)
		}
	}
}

// A system has one colour whatever else a figure shows, and others never take it.
func TestOneColourForASystem(t *testing.T) {
	alone := map[string]color.NRGBA{}
	names := []string{"TVM", "AStitch", "GraphTurbo, paper's batches", "variant 1 (LLB)", "l1", "ordering", "XLA", "TensorRT",
		"over TensorFlow"}
	for _, n := range names {
		alone[n] = colours([]string{n})[0]
	}
	for i := range names {
		list := append([]string{"measured", "another"}, names[i:min(i+3, len(names))]...)
		got := colours(list)
		seen := map[color.NRGBA]string{}
		for k, n := range list {
			if want, ok := alone[n]; ok && seen[want] == "" && got[k] != want {
				t.Errorf("%q beside %q has another colour than alone", n, list)
			}
			if other, ok := seen[got[k]]; ok && k > 1 {
				t.Errorf("%q and %q have one colour", n, other)
			}
			seen[got[k]] = n
		}
	}
	if colours([]string{"cross-layer"})[0] != alone["GraphTurbo, paper's batches"] ||
		colours([]string{"llb"})[0] != alone["variant 1 (LLB)"] {
		t.Error("a recipe and its name in the paper have two colours")
	}
}
