package plots

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func sampleSpeedups() []Speedups {
	return []Speedups{{
		Title: "ResNet-50, batch 32", Baseline: "tvm", Series: []string{"llb", "l1", "ordering", "cross-layer"},
		Groups: []SpeedupGroup{
			{Name: "stcp920", Values: []float64{1.1, 1.2, 4.5, 5.5}, Published: 7.9},
			{Name: "ascend910-abstract", Values: []float64{0.7, 0.8, 1.3, 1.5}},
		},
	}, {
		Title: "BERT-128, batch 32", Baseline: "tvm", Series: []string{"llb", "l1", "ordering", "cross-layer"},
		Groups: []SpeedupGroup{{Name: "a100", Values: []float64{1, 1, 0.3, 17}}},
	}}
}

func TestSpeedupBars(t *testing.T) {
	var first []byte
	for i := 0; i < 2; i++ {
		fig, err := SpeedupBars(sampleSpeedups())
		if err != nil {
			t.Fatal(err)
		}
		svg, err := fig.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = svg
		}
		if !bytes.Equal(svg, first) {
			t.Error("the same data give other bytes")
		}
		// The axis holds the least and the greatest value, 0.3 and 17.
		for _, want := range []string{"1/4×", ">1×<", "32×", "ResNet-50, batch 32", "cross-layer", ">ascend<", ">910<",
			">-abstract<", ">stcp920<", "Speedup over tvm", "published in the paper"} {
			if !strings.Contains(string(svg), want) {
				t.Errorf("%q is not in the figure", want)
			}
		}
		if strings.Contains(string(svg), "1/8×") {
			t.Error("the axis goes further down than any bar")
		}
	}
	list := sampleSpeedups()
	list[0].Groups[0].Published = 0
	fig, err := SpeedupBars(list)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := fig.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(svg), "published") {
		t.Error("the legend names published figures where there are none")
	}
}

func TestSpeedupErrors(t *testing.T) {
	change := func(f func(*Speedups)) []Speedups {
		list := sampleSpeedups()
		f(&list[1])
		return list
	}
	for _, c := range []struct {
		list []Speedups
		want string
	}{
		{nil, "plots: there is no network to draw"},
		{change(func(s *Speedups) { s.Groups = nil }), "plots: BERT-128, batch 32 has no groups"},
		{change(func(s *Speedups) { s.Series = make([]string, 5) }),
			"plots: BERT-128, batch 32 has 5 series, expected 1 to 4"},
		{change(func(s *Speedups) { s.Series = []string{"a", "b", "c", "d"} }),
			`plots: BERT-128, batch 32 has the series ["a" "b" "c" "d"], expected ["llb" "l1" "ordering" "cross-layer"] as in ResNet-50, batch 32`},
		{change(func(s *Speedups) { s.Groups[0].Values = []float64{1} }),
			"plots: BERT-128, batch 32, a100: 1 values for 4 series"},
		{change(func(s *Speedups) { s.Groups[0].Values[2] = 0 }),
			"plots: BERT-128, batch 32, a100: a speedup is 0, expected a number above zero"},
		{change(func(s *Speedups) { s.Groups[0].Published = math.NaN() }),
			"plots: BERT-128, batch 32, a100: a speedup is NaN, expected a number above zero"},
	} {
		if _, err := SpeedupBars(c.list); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
