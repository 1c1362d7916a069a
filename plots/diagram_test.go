package plots

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func sampleDiagrams(t testing.TB) *Figure {
	t.Helper()
	a := Diagram{Title: "(a) Nodes and arrows", RowHeight: 30,
		Nodes: []DiagramNode{{Text: "a1", X: 0}, {Text: "a2", X: 1, Colour: 1},
			{Text: "b1: 2×3\nLB", X: 0.5, Y: 1, Colour: NoColour, Shape: Ellipse},
			{Text: "concat", X: 2.5, Y: 1, Colour: 7, Shape: Box}, {Text: "…", X: 3.5, Y: 1, Shape: Bare, Colour: NoColour}},
		Edges: []DiagramEdge{{From: 0, To: 2}, {From: 1, To: 2, Grey: true}, {From: 2, To: 3}, {From: 3, To: 4}}}
	b := Diagram{Title: "(b) Areas and bends",
		Nodes: []DiagramNode{{Text: "C", Colour: NoColour}, {Text: "R", X: 1, Colour: NoColour},
			{Text: "C", X: 2, Colour: NoColour}, {Text: "C", X: 1, Y: 1, Colour: NoColour},
			{Text: "R", X: 2, Y: 1, Colour: NoColour}},
		Edges: []DiagramEdge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 0, To: 2, Bend: 0.9}, {From: 3, To: 4}},
		Areas: []DiagramArea{{Nodes: []int{0}, Colour: 0, Text: "8"}, {Nodes: []int{1, 2, 3, 4}, Colour: 2, Text: "4"}}}
	f, err := Diagrams([]Diagram{a, b}, DiagramKey{Text: "stage 1"}, DiagramKey{Text: "stage 2", Colour: 1},
		DiagramKey{Symbol: "C", Text: "convolution"},
		DiagramKey{Edge: true, Text: "needed"}, DiagramKey{Edge: true, Grey: true, Text: "redundant"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sampleTimelines(t testing.TB) *Figure {
	t.Helper()
	line := func(title string, shift float64) Timeline {
		return Timeline{Title: title, Start: 5, Rows: []TimelineRow{
			{"MME", []TimelineBar{{Start: 6, End: 12, Text: "conv"}, {Start: 12, End: 12.01, Colour: 1}}},
			{"VME", []TimelineBar{{Start: 8 + shift, End: 13, Pale: true, Height: 0.4}}},
			{"LLB to L1", nil},
		}, Lines: []TimelineMark{{At: 8 + shift, Text: "here"}, {At: 12}}}
	}
	f, err := Timelines([]Timeline{line("(a) without", 0), line("(b) with", 2)}, "Time (µs)", 13,
		[]string{"block 1", "block 2"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func sampleProfiles(t testing.TB) *Figure {
	t.Helper()
	f, err := Profiles([]Profile{
		{Title: "Stage by stage", Blocks: []ProfileBlock{{0, 10, 1, 0, "a1"}, {10, 20, 1, 0, "a2"}, {20, 22, 0.5, 1, "b1"}}},
		{Title: "DFS", Blocks: []ProfileBlock{{0, 8, 1, 0, "a1"}, {8, 15, 1.1, 1, "b1"}}},
	}, "Time (µs)", "LB in use (%)", []string{"stage 1", "stage 2"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var explanations = []struct {
	name string
	draw func(testing.TB) *Figure
	want []string
}{
	{"diagrams", sampleDiagrams, []string{"a1", "b1: 2×3", "LB", "concat", "…", "8", "4", "(b) Areas and bends",
		"convolution", "redundant"}},
	{"timelines", sampleTimelines, []string{"MME", "LLB to L1", "conv", "here", "block 2", "(b) with", "10"}},
	{"profiles", sampleProfiles, []string{"a1", "a2", "Stage by stage", "stage 2", "25", "100", "20"}},
}

func TestExplanationsGolden(t *testing.T) {
	for _, e := range explanations {
		svg, err := e.draw(t).SVG()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", e.name+".svg")
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
		first, err := e.draw(t).PNG()
		if err != nil {
			t.Fatal(err)
		}
		second, err := e.draw(t).PNG()
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs from one time to the next (%v)", e.name, err)
		}
	}
}

func TestExplanationsText(t *testing.T) {
	for _, e := range explanations {
		fig := e.draw(t)
		boxes := texts(t, fig)
		var all []string
		for i, a := range boxes {
			all = append(all, a.text)
			if a.left < 0 || a.right > fig.width || a.bottom < 0 || a.top > fig.height {
				t.Errorf("%s: %q is not within the figure of %v x %v: %v", e.name, a.text, fig.width, fig.height, a)
			}
			for _, b := range boxes[:i] {
				if a.left < b.right && b.left < a.right && a.bottom < b.top && b.bottom < a.top {
					t.Errorf("%s: %q and %q cover each other: %v, %v", e.name, a.text, b.text, a, b)
				}
			}
		}
		for _, w := range e.want {
			if !slices.Contains(all, w) {
				t.Errorf("%s: %q is not in the figure, which has %q", e.name, w, all)
			}
		}
	}
}

// A block that is too narrow for its text goes without.
func TestProfileLeavesOutWhatDoesNotFit(t *testing.T) {
	for _, b := range texts(t, sampleProfiles(t)) {
		if b.text == "b1" && b.left < 100 {
			t.Errorf("b1 stands at %v", b)
		}
	}
	f, err := Profiles([]Profile{{Title: "p", Blocks: []ProfileBlock{{0, 1, 1, 0, "narrow"}, {1, 1000, 1, 0, "wide"}}}},
		"", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range texts(t, f) {
		if b.text == "narrow" {
			t.Error("the text of a narrow block is drawn")
		}
	}
}

func TestExplanationErrors(t *testing.T) {
	diagram := func(d Diagram) func() error {
		return func() error { _, err := Diagrams([]Diagram{d}); return err }
	}
	timeline := func(t Timeline) func() error {
		return func() error { _, err := Timelines([]Timeline{t}, "", 10, nil); return err }
	}
	profile := func(b ...ProfileBlock) func() error {
		return func() error { _, err := Profiles([]Profile{{"p", b}}, "", "", nil); return err }
	}
	one := []DiagramNode{{Text: "a"}}
	for _, test := range []struct {
		draw func() error
		want string
	}{
		{func() error { _, err := Diagrams(nil); return err }, "plots: there is no diagram to draw"},
		{diagram(Diagram{Title: "d"}), `plots: diagram "d" has no node`},
		{diagram(Diagram{Title: "d", Nodes: []DiagramNode{{Text: "a", X: -1}}}),
			`plots: diagram "d", node 0 ("a") stands at column -1 and row 0, expected zero or more`},
		{diagram(Diagram{Title: "d", Nodes: []DiagramNode{{Text: "a", Y: math.NaN()}}}),
			`plots: diagram "d", node 0 ("a") stands at column 0 and row NaN, expected zero or more`},
		{diagram(Diagram{Title: "d", Nodes: []DiagramNode{{Text: "a", Shape: 9}}}),
			`plots: diagram "d", node 0 ("a") has unknown shape 9`},
		{diagram(Diagram{Title: "d", Nodes: one, Edges: []DiagramEdge{{0, 1, false, 0}}}),
			`plots: diagram "d", arrow 0 goes from node 0 to node 1, expected two of 1`},
		{diagram(Diagram{Title: "d", Nodes: one, Areas: []DiagramArea{{}}}), `plots: diagram "d", area 0 has no node`},
		{diagram(Diagram{Title: "d", Nodes: one, Areas: []DiagramArea{{Nodes: []int{3}}}}),
			`plots: diagram "d", area 0 has node 3 of 1`},
		{func() error { _, err := Timelines(nil, "", 10, nil); return err }, "plots: there is no timeline to draw"},
		{timeline(Timeline{Title: "t"}), `plots: timeline "t" has no row`},
		{timeline(Timeline{Title: "t", Start: -1, Rows: []TimelineRow{{"r", nil}}}),
			`plots: timeline "t" starts at -1, expected zero or more`},
		{timeline(Timeline{Title: "t", Rows: []TimelineRow{{"r", nil}}}), `plots: timeline "t" has no bar of any length`},
		{timeline(Timeline{Title: "t", Rows: []TimelineRow{{"r", []TimelineBar{{Start: 2, End: 1}}}}}),
			`plots: timeline "t", row "r", bar 0 goes from 2 to 1, expected a stretch behind 0`},
		{timeline(Timeline{Title: "t", Start: 3, Rows: []TimelineRow{{"r", []TimelineBar{{Start: 2, End: 4}}}}}),
			`plots: timeline "t", row "r", bar 0 goes from 2 to 4, expected a stretch behind 3`},
		{timeline(Timeline{Title: "t", Rows: []TimelineRow{{"r", []TimelineBar{{End: 1, Height: 2}}}}}),
			`plots: timeline "t", row "r", bar 0 is 2 rows high, expected at most 1`},
		{timeline(Timeline{Title: "t", Rows: []TimelineRow{{"r", []TimelineBar{{End: 1}}}}, Lines: []TimelineMark{{At: -2}}}),
			`plots: timeline "t" has a line at -2, expected zero or more`},
		{func() error { _, err := Profiles(nil, "", "", nil); return err }, "plots: there is no profile to draw"},
		{profile(), `plots: profile "p" has no block of any length`},
		{profile(ProfileBlock{0, 1, -1, 0, ""}),
			`plots: profile "p", block 0 is -1 from 0 to 1, expected a share of zero or more over a stretch of time`},
		{profile(ProfileBlock{2, 1, 1, 0, ""}),
			`plots: profile "p", block 0 is 1 from 2 to 1, expected a share of zero or more over a stretch of time`},
	} {
		if err := test.draw(); err == nil || err.Error() != test.want {
			t.Errorf("error is %v, want %s", err, test.want)
		}
	}
}

func ExampleDiagrams() {
	f, err := Diagrams([]Diagram{{Title: "two instances",
		Nodes: []DiagramNode{{Text: "a1"}, {Text: "b1", X: 1, Colour: 1}}, Edges: []DiagramEdge{{From: 0, To: 1}}}})
	if err != nil {
		panic(err)
	}
	svg, err := f.SVG()
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(map[bool]string{true: "b1 is drawn\n",
		false: "b1 is missing\n"}[bytes.Contains(svg, []byte(">b1<"))])
	// Output: b1 is drawn
}
