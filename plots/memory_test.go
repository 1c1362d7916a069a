package plots

import (
	"bytes"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// sampleMemory looks like ResNet-50's.
func sampleMemory() Memory {
	m := Memory{Title: "ResNet-50, batch 8, f16",
		Capacities: []Capacity{{"LBs of a cluster: 10 MiB", 10 << 20}, {"LLB: 8 MiB", 8 << 20}}}
	add := func(name string, live ...int64) {
		first := len(m.LiveBytes)
		for _, v := range live {
			m.LiveBytes = append(m.LiveBytes, v*8<<10)
		}
		m.Spans = append(m.Spans, Span{name, first, len(m.LiveBytes)})
	}
	repeat := func(n int, first, rest []int64) []int64 {
		return append(first, slices.Repeat(rest, n)...)
	}
	add("stem", 1862, 1960)
	add("stage 1", repeat(2, []int64{784, 1176, 2352, 3528}, []int64{1960, 2352, 3528})...)
	add("stage 2", repeat(3, []int64{2352, 2548, 2548, 3136}, []int64{980, 1176, 1764})...)
	add("stage 3", repeat(5, []int64{1176, 1274, 1274, 1568}, []int64{490, 588, 882})...)
	add("stage 4", repeat(2, []int64{588, 637, 637, 784}, []int64{245, 294, 441})...)
	add("head", 200, 6, 4)
	return m
}

func drawMemory(t *testing.T, m Memory) *Figure {
	t.Helper()
	f, err := MemoryInUse(m)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestMemoryGolden(t *testing.T) {
	svg, err := drawMemory(t, sampleMemory()).SVG()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "memory.svg")
	if *update {
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
}

func TestMemoryPNG(t *testing.T) {
	data, err := drawMemory(t, sampleMemory()).PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.NRGBA]int{}
	for y := 0; y < img.Bounds().Dy(); y += 2 {
		for x := 0; x < img.Bounds().Dx(); x += 2 {
			seen[color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)]++
		}
	}
	for _, c := range []color.NRGBA{liveFill, blue, vermillion, black, bandShades[0], gridGray} {
		if seen[c] < 20 {
			t.Errorf("%d dots of colour %v", seen[c], c)
		}
	}
}

func TestMemorySameBytes(t *testing.T) {
	var first [3][]byte
	fig := drawMemory(t, sampleMemory())
	for i, f := range []*Figure{fig, fig, drawMemory(t, sampleMemory())} {
		for k, write := range []func() ([]byte, error){f.SVG, f.PNG, f.PDF} {
			data, err := write()
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first[k] = data
			}
			if !bytes.Equal(data, first[k]) {
				t.Errorf("format %d differs from one time to the next", k)
			}
		}
	}
	// The time of writing is not in it, whatever the clock says.
	if pdf := first[2]; !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) ||
		!bytes.Contains(pdf, []byte("/CreationDate (D:20000101000000")) {
		t.Errorf("the document begins with %.20q and has %q", pdf, pdfDate.FindAll(pdf, -1))
	}
}

func TestMemoryText(t *testing.T) {
	many := func(n int) Memory {
		m := Memory{Title: "many"}
		for i := range n {
			m.Spans = append(m.Spans, Span{"stage " + string(rune('a'+i)), 2 * i, 2*i + 2})
			m.LiveBytes = append(m.LiveBytes, int64(1000+i), 500)
		}
		return m
	}
	for _, test := range []struct {
		name string
		m    Memory
		want []string
	}{
		{"sample", sampleMemory(), []string{"ResNet-50, batch 8, f16", "stem", "stage 1", "stage 4", "head",
			"Layers in execution order", "live activations", "LBs of a cluster: 10 MiB", "LLB: 8 MiB", "0", "50"}},
		{"one layer", Memory{Title: "one", LiveBytes: []int64{7}, Spans: []Span{{"stage 1", 0, 1}}},
			[]string{"stage 1", "6"}},
		{"no stages", Memory{Title: "none", LiveBytes: []int64{5 << 40, 1}}, []string{"none", "5"}},
		{"many stages", many(20), []string{"stage a", "stage t"}},
		{"narrow stem and head", Memory{Title: "narrow", LiveBytes: make200(),
			Spans: []Span{{"stem", 0, 1}, {"stage 1", 1, 4}, {"stage 2", 4, 190}, {"stage 3", 190, 199}, {"head", 199, 200}}},
			[]string{"stem", "stage 1", "stage 2", "stage 3", "head"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fig := drawMemory(t, test.m)
			boxes := texts(t, fig)
			var all []string
			for i, a := range boxes {
				all = append(all, a.text)
				if a.left < 0 || a.right > fig.width || a.bottom < 0 || a.top > fig.height {
					t.Errorf("%q is not within the figure of %v x %v: %v", a.text, fig.width, fig.height, a)
				}
				for _, b := range boxes[:i] {
					if a.left < b.right && b.left < a.right && a.bottom < b.top && b.bottom < a.top {
						t.Errorf("%q and %q cover each other: %v, %v", a.text, b.text, a, b)
					}
				}
			}
			for _, w := range test.want {
				if !slices.Contains(all, w) {
					t.Errorf("%q is not in the figure, which has %q", w, all)
				}
			}
		})
	}
}

func make200() []int64 { return slices.Repeat([]int64{4096, 1 << 20}, 100) }

func TestMemoryUnits(t *testing.T) {
	for _, test := range []struct {
		bytes int64
		want  string
	}{{7, "(B)"}, {1023, "(B)"}, {1024, "(KiB)"}, {3 << 20, "(MiB)"}, {5 << 30, "(GiB)"}, {5000 << 40, "(TiB)"}} {
		svg, err := drawMemory(t, Memory{Title: "a", LiveBytes: []int64{test.bytes}}).SVG()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(svg), ">Live activations "+test.want+"<") {
			t.Errorf("%d bytes are not in %s", test.bytes, test.want)
		}
	}
}

func TestMemoryErrors(t *testing.T) {
	change := func(f func(*Memory)) Memory {
		m := sampleMemory()
		f(&m)
		return m
	}
	for _, test := range []struct {
		m    Memory
		want string
	}{
		{Memory{Title: "a"}, "plots: there is no layer to draw"},
		{Memory{Title: "a", LiveBytes: []int64{0, 0}}, "plots: a has no live bytes above zero"},
		{Memory{Title: "a", LiveBytes: []int64{1, -2}}, "plots: a, layer 1 has -2 live bytes, expected zero or more"},
		{change(func(m *Memory) { m.Spans[1].First = 1 }),
			`plots: ResNet-50, batch 8, f16, "stage 1" is layers 1 to 12, expected a range behind 2 and up to 57`},
		{change(func(m *Memory) { m.Spans[5].End = 59 }),
			`plots: ResNet-50, batch 8, f16, "head" is layers 54 to 59, expected a range behind 54 and up to 57`},
		{change(func(m *Memory) { m.Spans[0].End = 0 }),
			`plots: ResNet-50, batch 8, f16, "stem" is layers 0 to 0, expected a range behind 0 and up to 57`},
		{change(func(m *Memory) { m.Capacities[1].Bytes = 0 }),
			`plots: ResNet-50, batch 8, f16, capacity "LLB: 8 MiB" is 0 bytes, expected more than zero`},
	} {
		if _, err := MemoryInUse(test.m); err == nil || err.Error() != test.want {
			t.Errorf("error is %v, want %s", err, test.want)
		}
	}
}

func TestPlaceNames(t *testing.T) {
	list, rows := placeNames([]Span{{"stem", 0, 1}, {"stage 1", 1, 2}, {"stage 2", 2, 100}}, 100, 200*vg.Length(1))
	if rows != 2 || list[0].row != 0 || list[1].row != 1 || list[2].row != 0 {
		t.Errorf("%d rows: %+v", rows, list)
	}
	for _, s := range list {
		if s.at < 0 || s.at > 1 || s.band < 0 || s.band > 1 {
			t.Errorf("%+v is not within the figure", s)
		}
	}
}
