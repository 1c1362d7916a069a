package paperfigs

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/internal/literature"
)

// The answer follows the results, whichever machine they speak for.
func TestLocalBufferAnswer(t *testing.T) {
	published := func(hardware string, factor float64) l1Results {
		r := l1Results{Hardware: hardware}
		for _, c := range literature.Configurations() {
			w := literature.WritesOf(c.Label)
			for _, v := range []string{"tvm", "astitch", "cross-layer"} {
				row := harness.Row{Model: c.Network, Hardware: hardware, Variant: v,
					ThroughputPerSecond: c.TVMThroughputPerSecond, Writes: w.TVM}
				if v == "cross-layer" {
					row.Writes = w.GraphTurbo
					row.ThroughputPerSecond *= factor
				}
				r.Rows = append(r.Rows, row)
			}
		}
		return r
	}
	groups := func(factors ...int64) (p partition) {
		p.Images = 8
		for _, f := range factors {
			p.Groups = append(p.Groups, partGroup{Factor: f, Operators: 1, First: "a", Last: "b"})
		}
		return p
	}
	like := published("stcp920", literature.MeanSpeedup.Value)
	like.Partitions = []partition{groups(8, 4, 2, 1)}
	unlike := published("stcp920-paper", 0.5)
	unlike.Partitions = []partition{groups(16, 16, 16, 8, 8, 8, 4, 4, 2)}
	for i := range unlike.Rows {
		unlike.Rows[i].Writes = harness.Levels{DDR: 9999, LLB: 9999, L1: 9999}
	}
	unlike.Rows = unlike.Rows[:len(unlike.Rows)-1] // Conformer does not fit
	unlike.Errors = map[string]string{"conformer cross-layer": "does not fit"}

	e := lb64()
	rep, err := e.report([]l1Results{like, unlike})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rep.Files {
		if filepath.Ext(f.Name) == ".tex" {
			harnesstest.LaTeX(t, f.Name, f.Data)
		}
	}
	for _, want := range []string{
		"the factors 8, 4, 2, 1 come out only on stcp920.",
		"Of the 30 cells of Table 3 for GraphTurbo stcp920 comes within 20 % of 30, more than the other's 0.",
		"is above one only on stcp920, and within 20 % of 11.15 only on stcp920.",
		"9 sub-graphs, factors up to 16 with 8 images per cluster", "over 9 of 10 configurations",
		"16 (3 times), 8 (3 times), 4 (2 times), 2", "stcp920-paper, cross-layer: does not fit."} {
		if !strings.Contains(rep.Text, want) {
			t.Errorf("no %q in\n%s", want, rep.Text)
		}
	}
	like.Hardware, unlike.Hardware = unlike.Hardware, like.Hardware
	rep, err = e.report([]l1Results{unlike, like})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the factors 8, 4, 2, 1 come out only on stcp920-paper.",
		"stcp920-paper comes within 20 % of 30, more than the other's 0."} {
		if !strings.Contains(rep.Text, want) {
			t.Errorf("no %q in\n%s", want, rep.Text)
		}
	}
}

// Only a machine that is too small is an answer; anything else that goes wrong is not.
func TestTolerant(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{{&graphturbo.DoesNotFitError{}, true}, {&lower.TooLargeError{Program: "p", What: "run"}, true},
		{errors.New("other"), false}, {context.Canceled, false}} {
		got, err := tolerant(harness.Cell{Shared: true, Run: func(context.Context) (any, error) { return nil, c.err }}).Run(
			context.Background())
		f, ok := got.(fitted)
		if c.want != (err == nil && ok && f.Row == nil && f.Error != "") {
			t.Errorf("%v: %+v, %v", c.err, got, err)
		}
	}
	got, err := tolerant(harness.Cell{Run: func(context.Context) (any, error) {
		return harness.Row{Model: "x"},
			nil
	}}).Run(context.Background())
	if f, ok := got.(fitted); err != nil || !ok || f.Row == nil || f.Row.Model != "x" {
		t.Errorf("%+v, %v", got, err)
	}
}
