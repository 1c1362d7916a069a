package plots

import (
	"bytes"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	good := Curves{Title: "t", XLabel: "x", YLabel: "y", X: []float64{0.1, 1, 10}, LogX: true, LogY: true, Line: 1,
		Series: []Series{{"one", []float64{1, 2, 30}}, {"two", []float64{0, 2, 3}}}}
	f, err := Lines(good)
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
	for _, want := range []string{">one<", ">two<", ">0.1<", ">10<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the figure has no %s", want)
		}
	}
	for name, spoil := range map[string]func(*Curves){
		"one point":     func(c *Curves) { c.X = c.X[:1] },
		"missing value": func(c *Curves) { c.Series = []Series{{"one", []float64{1}}} },
		"no series":     func(c *Curves) { c.Series = nil },
		"descending":    func(c *Curves) { c.X = []float64{1, 0.1, 10} },
		"not on a log":  func(c *Curves) { c.X = []float64{0, 1, 10} },
		"too few ticks": func(c *Curves) { c.Ticks = []string{"a"} },
		"nothing":       func(c *Curves) { c.Series = []Series{{"one", []float64{0, 0, 0}}} },
	} {
		c := good
		spoil(&c)
		if _, err := Lines(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// Words in place of numbers: all of a few, every other of many.
	many := good
	many.LogX, many.X, many.Ticks, many.Series = false, nil, nil, []Series{{"one", nil}}
	for i := range 12 {
		many.X, many.Ticks = append(many.X, float64(i)), append(many.Ticks, string(rune('a'+i))+"MiB")
		many.Series[0].Values = append(many.Series[0].Values, 1)
	}
	words := good
	words.Ticks = []string{"small", "medium", "large"}
	for _, c := range []struct {
		curves Curves
		want   []string
		not    string
	}{{words, []string{">small<", ">medium<", ">large<"}, ">0.1<"}, {many, []string{">aMiB<", ">cMiB<"}, ">bMiB<"}} {
		f, err := Lines(c.curves)
		if err != nil {
			t.Fatal(err)
		}
		if svg, err = f.SVG(); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(svg), want) {
				t.Errorf("the figure has no %s", want)
			}
		}
		if strings.Contains(string(svg), c.not) {
			t.Errorf("the figure has %s", c.not)
		}
	}
	if _, err := Lines(); err == nil {
		t.Error("nothing is drawn without an error")
	}
	good.LogX, good.LogY = false, false
	if _, err := Lines(good); err != nil {
		t.Error(err)
	}
}
