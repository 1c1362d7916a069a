package readings

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
)

// Every choice that is not in force changes a run or a mean, and what was before is a choice.
func TestEveryChoiceMatters(t *testing.T) {
	p, err := experiment{"stcp920", readings()}.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings() {
		if len(r.Choices) < 2 || r.Name == "" || !strings.HasSuffix(r.Question, "?") || r.Source == "" ||
			r.Choices[0].Change.String() != (change{}).String() {
			t.Errorf("%q is incomplete", r.Name)
		}
		if r.Evidence != "" && !slices.ContainsFunc(r.Choices[1:], func(c choice) bool { return c.Name == r.Evidence }) {
			t.Errorf("%s: no choice %q", r.Name, r.Evidence)
		}
		if r.Before != "" && !slices.ContainsFunc(r.Choices[1:], func(c choice) bool { return c.Name == r.Before }) {
			t.Errorf("%s: no choice %q", r.Name, r.Before)
		}
		for _, c := range r.Choices[1:] {
			in := fmt.Sprintf("(%s: %s)", r.Name, c.Name)
			if !slices.ContainsFunc(p.Cells, func(x harness.Cell) bool { return strings.HasSuffix(x.Label, in) }) &&
				!c.Change.MeanOfRatios && !c.Change.GainOverTVM {
				t.Errorf("%s: %s changes nothing", r.Name, c.Name)
			}
		}
	}
}

// What is in force has the cells of fig14, fig15 and table3.
func TestCellsAreShared(t *testing.T) {
	p, err := experiment{"stcp920", readings()}.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"resnet50@framework-stcp920-b64-tvm-paper-text",
		"conformer-stcp920-b12-cross-layer-paper-text"} {
		if !slices.ContainsFunc(p.Cells, func(c harness.Cell) bool { return c.Key == key && c.Shared }) {
			t.Errorf("no cell %s", key)
		}
	}
}

func TestHeading(t *testing.T) {
	for name, want := range map[string]string{"in force": "in force",
		"grain: the framework's for all": "grain: the\nframework's\nfor all", "promotion: yes": "promotion: yes"} {
		if got := heading(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// The report can be written from rows of any content, among them missing ones.
func TestReport(t *testing.T) {
	p, err := experiment{"stcp920", readings()}.plan()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]json.RawMessage, len(p.Cells))
	for i, c := range p.Cells {
		row := harness.Row{ThroughputPerSecond: float64(100 + i), LatencySeconds: 0.01,
			Writes: harness.Levels{DDR: int64(i % 7), L1: 300}}
		if i == len(p.Cells)-1 {
			row = harness.Row{Notes: []string{c.Label + " is too large"}}
		}
		if data[i], err = json.Marshal(row); err != nil {
			t.Fatal(err)
		}
	}
	r, err := p.Report(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"is too large", "in force", "by the evidence", "C: GraphTurbo to LLB", "mean over TVM"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("%q is not in the report", want)
		}
	}
	for _, f := range r.Files {
		if f.Name == "readings.json" && (!json.Valid(f.Data) || strings.Count(string(f.Data), `"ours": null`) == 0) {
			t.Errorf("the JSON file has no missing number, or is none")
		}
	}
}

func TestErrors(t *testing.T) {
	is := func(published, ours float64) number {
		return number{unit: "x", published: published, ours: func(results) float64 { return ours }}
	}
	list := []number{is(2, 4), is(8, 1), is(5, math.NaN()), is(0, 0), is(10, 9)}
	if got, want := geometricError(list, results{}), math.Pow(2*8*10.0/9, 1.0/3); math.Abs(got-want) > 1e-12 {
		t.Errorf("error is %v, want %v", got, want)
	}
	if got := within(list, results{}); got != "1 of 4" { // 9 for 10; zero in both does not count
		t.Errorf("%s within 20 %%, want 1 of 4", got)
	}
}

// The evidence takes what readings name, all as before what
// the others had.
func TestSettings(t *testing.T) {
	list := []reading{
		{Name: "a", Choices: []choice{{Name: "x"}, {"y", change{InPlace: true}}, {"z", change{LaunchMicroseconds: 9}}},
			Before: "z"},
		{Name: "b", Choices: []choice{{Name: "x"}, {"y", change{Networks: map[string]string{"D": "bert-384"}}}},
			Evidence: "y"},
		{Name: "c", Choices: []choice{{Name: "x"}, {"y", change{Networks: map[string]string{"H": "vit-s16"}}}}, Before: "y"},
	}
	var got []string
	for _, s := range settings(list) {
		got = append(got, s.Name+" = "+s.Change.String())
	}
	want := []string{"in force = as it is", "a: y = --in-place", "a: z = launch: 9us", "b: y = D = bert-384",
		"c: y = H = vit-s16",
		"by the evidence = D = bert-384", "all as before = H = vit-s16, launch: 9us"}
	if !slices.Equal(got, want) {
		t.Errorf("settings are\n%s", strings.Join(got, "\n"))
	}
}
