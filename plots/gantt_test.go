package plots

import (
	"strings"
	"testing"
)

func sampleGantt(t testing.TB) *Figure {
	f, err := Gantt(Timeline{Title: "Units", Start: 1200, End: 1500, Rows: []TimelineRow{
		{Name: "kernel", Bars: []TimelineBar{{Start: 1200, End: 1300, Text: "g0/1"},
			{Start: 1300, End: 1302, Colour: 1, Text: "g0/0"}, {Start: 1302, End: 1500, Colour: 1, Pale: true, Text: "g1/0"}}},
		{Name: "matrix", Bars: []TimelineBar{{Start: 1210, End: 1290}, {Start: 1310, End: 1450, Colour: 1}}},
		{Name: "LB in use", Bars: []TimelineBar{{Start: 1200, End: 1350, Colour: 7, Height: 0.4},
			{Start: 1350, End: 1500, Colour: 7, Height: 0.9}}},
	}}, "Time (µs)", []string{"g0: conv", "g1: head"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func init() {
	explanations = append(explanations, []struct {
		name string
		draw func(testing.TB) *Figure
		want []string
	}{
		{"gantt", sampleGantt, []string{"g0/1", "g1/0", "matrix", "LB in use", "1200", "1350", "Time (µs)", "g1: head"}},
	}...)
}

// A bar that is too narrow for its text goes without.
func TestGanttLeavesOutWhatDoesNotFit(t *testing.T) {
	for _, b := range texts(t, sampleGantt(t)) {
		if b.text == "g0/0" {
			t.Errorf("g0/0 stands at %v", b)
		}
	}
}

func TestTicksBetween(t *testing.T) {
	for _, c := range []struct {
		start, end float64
		want       string
	}{
		{0, 7.2, "0 1 2 3 4 5 6 7"},
		{1200, 1500, "1200 1250 1300 1350 1400 1450 1500"},
		{0.1, 0.2, "0.10 0.11 0.12 0.13 0.14 0.15 0.16 0.17 0.18 0.19 0.20"},
		{0, 158, "0 20 40 60 80 100 120 140"},
	} {
		var got []string
		for _, k := range ticksBetween(c.start, c.end) {
			got = append(got, k.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("from %g to %g: %s, want %s", c.start, c.end, s, c.want)
		}
	}
}

func TestGanttErrors(t *testing.T) {
	if _, err := Gantt(Timeline{Title: "a"}, "", nil); err == nil {
		t.Error("no row is drawn")
	}
	if _, err := Gantt(Timeline{Title: "a", Rows: []TimelineRow{{Name: "b"}}}, "", nil); err == nil {
		t.Error("nothing of any length is drawn")
	}
}
