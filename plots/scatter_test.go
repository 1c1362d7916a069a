package plots

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg/draw"
)

func TestRooflines(t *testing.T) {
	good := Roofline{Title: "t", XLabel: "intensity", YLabel: "rate",
		Clouds: []Cloud{{"one", []float64{0.01, 1, 100}, []float64{0.005, 0.5, 0.9}},
			{"two", []float64{0, 2}, []float64{0.1, 0.3}}}}
	glyphs := map[draw.GlyphStyle]bool{}
	for i := range 2 * len(cloudColours) {
		glyphs[cloudGlyph(i)] = true
	}
	if len(glyphs) < 2*len(cloudColours) {
		t.Errorf("%d kinds of points, expected %d", len(glyphs), 2*len(cloudColours))
	}
	f, err := Rooflines(good, good)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.SVG(); err != nil || !bytes.Equal(svg, again) {
		t.Errorf("the same figure twice differs (%v)", err)
	}
	for _, want := range []string{">one<", ">two<", ">0.01<", ">100<", ">intensity<", ">rate<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the figure has no %s", want)
		}
	}
	for name, clouds := range map[string][]Cloud{
		"no cloud":       nil,
		"missing value":  {{"one", []float64{1}, nil}, {"two", nil, nil}},
		"nothing":        {{"one", []float64{0}, []float64{1}}, {"two", nil, nil}},
		"too many":       slices.Repeat(good.Clouds[:1], 2*len(cloudColours)+1),
		"not as many as": {{"one", []float64{1}, []float64{1}}},
	} {
		panels := []Roofline{{Title: name, Clouds: clouds}}
		if name == "not as many as" {
			panels = []Roofline{good, panels[0]}
		}
		if _, err := Rooflines(panels...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Rooflines(); err == nil {
		t.Error("no panel: no error")
	}
}
