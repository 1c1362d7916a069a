package plots

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestGroupedBars(t *testing.T) {
	good := Groups{Title: "t", YLabel: "y", XLabel: "x", Categories: []string{"a", "b"}, Line: 1, Log: true,
		Series: []Series{{"one", []float64{1, 1000}}, {"two", []float64{0, math.Inf(1)}}},
		Marks:  []GroupMark{{Category: 1, Series: 1, Value: 20}},
		Spread: [][][]float64{{{0.5, 1}, {1000}}, {{}, {2, math.Inf(1)}}}}
	f, err := GroupedBars(good, good)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.SVG()
	if err != nil || !bytes.Equal(svg, again) {
		t.Errorf("the same figure twice differs (%v)", err)
	}
	for _, want := range []string{">one<", ">two<", ">published<", ">1000<", ">x<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the figure has no %s", want)
		}
	}
	for name, spoil := range map[string]func(*Groups){
		"no series":      func(g *Groups) { g.Series = nil },
		"no category":    func(g *Groups) { g.Categories = nil },
		"missing value":  func(g *Groups) { g.Series = []Series{{"one", []float64{1}}} },
		"missing spread": func(g *Groups) { g.Spread = g.Spread[:1] },
		"short spread":   func(g *Groups) { g.Spread = [][][]float64{{{1}}, {{1}, {2}}} },
		"spread of bars": func(g *Groups) { g.Log = false },
		"stray mark":     func(g *Groups) { g.Marks = []GroupMark{{Category: 2, Series: 0, Value: 1}} },
		"nothing at all": func(g *Groups) { g.Marks, g.Series = nil, []Series{{"one", []float64{0, 0}}} },
	} {
		g := good
		spoil(&g)
		if _, err := GroupedBars(g); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := GroupedBars(); err == nil {
		t.Error("nothing is drawn without an error")
	}
}

// A value that is not there is no bar of no height.
func TestNoValue(t *testing.T) {
	draw := func(v float64, log bool) string {
		f, err := GroupedBars(Groups{Title: "t", YLabel: "y", Categories: []string{"a", "b"}, Log: log,
			Series: []Series{{"one", []float64{v, 2}}}})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		return string(svg)
	}
	zero, none := draw(0, false), draw(math.NaN(), false)
	if zero == none || strings.Contains(zero, ">no value<") || !strings.Contains(none, ">no value<") {
		t.Error("no value looks like 0")
	}
	if draw(0, true) != draw(math.NaN(), true) {
		t.Error("a logarithmic axis tells 0 from no value")
	}
}

func TestTickNumber(t *testing.T) {
	for v, want := range map[float64]string{0.5: "0.5", 10: "10", 1000: "1000", 10000: "10\u2009000",
		1e6: "1\u2009000\u2009000"} {
		if got := tickNumber(v); got != want {
			t.Errorf("%g is %q, want %q", v, got, want)
		}
	}
}
