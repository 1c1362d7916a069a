package plots

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func sampleTornados() []Tornado {
	return []Tornado{
		{Title: "Mean speedup over TVM", Unit: "×", Base: 7.5, Published: 11.15,
			Names: []string{"launch", "DDR for activations", "gap of the MME"},
			Half:  []float64{7.4, 11.9, 7.6}, Double: []float64{7.7, 6.1, 7.2}},
		{Title: "Rank correlation", Base: 0.86, Names: []string{"launch"}, Half: []float64{0.86}, Double: []float64{0.9}},
	}
}

func TestTornados(t *testing.T) {
	var first []byte
	for range 2 {
		f, err := Tornados(sampleTornados())
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = svg
		}
		if !bytes.Equal(first, svg) {
			t.Error("the same data give other bytes")
		}
		for _, want := range []string{"Mean speedup over TVM", "DDR for activations", "10×", "published", "as fitted",
			"half", "double"} {
			if !strings.Contains(string(svg), want) {
				t.Errorf("%q is not in the figure", want)
			}
		}
	}
	list := sampleTornados()[1:]
	f, err := Tornados(list)
	if err != nil {
		t.Fatal(err)
	}
	if svg, err := f.SVG(); err != nil || strings.Contains(string(svg), "published") {
		t.Errorf("the legend names what is not there (%v)", err)
	}
}

func TestTornadoErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Tornado)
		want   string
	}{
		{func(t *Tornado) { t.Half = nil }, "plots: Mean speedup over TVM has 3 names, 0 values at half and 3 at double"},
		{func(t *Tornado) { t.Names, t.Half, t.Double = nil, nil, nil },
			"plots: Mean speedup over TVM has 0 names, 0 values at half and 0 at double"},
		{func(t *Tornado) { t.Double[1] = math.NaN() }, "plots: Mean speedup over TVM has a value of NaN"},
		{func(t *Tornado) { t.Base = math.Inf(1) }, "plots: Mean speedup over TVM has a value of +Inf"},
	} {
		list := sampleTornados()
		c.change(&list[0])
		if _, err := Tornados(list); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := Tornados(nil); err == nil {
		t.Error("nothing can be drawn")
	}
}

func TestBetween(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{{5.7, 12.2, "6 8 10 12"}, {0.84, 0.92, "0.84 0.86 0.88 0.90 0.92"}, {-3, 31, "0 10 20 30"},
		{1.55, 2.2, "1.6 1.8 2.0 2.2"}} {
		var got []string
		for _, k := range between(c.low, c.high+1e-9, "") {
			got = append(got, k.Label)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%g to %g: %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
