package experiments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

type definition struct {
	cells  []experiments.Cell
	report experiments.Report
}

func (d definition) Cells() ([]experiments.Cell, error) { return d.cells, nil }

func (d definition) Report(results []json.RawMessage) (experiments.Report, error) {
	r := d.report
	for _, x := range results {
		r.Text += string(x) + "\n"
	}
	return r, nil
}

func TestOwnExperiment(t *testing.T) {
	runs := 0
	cell := func(key string, value int) experiments.Cell {
		return experiments.Cell{Key: key, Label: key, Inputs: value, Run: func(context.Context) (any, error) {
			runs++
			return value, nil
		}}
	}
	d := definition{cells: []experiments.Cell{cell("a", 1), cell("b", 2)},
		report: experiments.Report{Files: []experiments.File{{Name: "x.csv", Data: []byte("x\n")}}}}
	e, err := experiments.New("mine", "numbers", d)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // the second time from what the first has kept
		var out bytes.Buffer
		if err := e.Run(context.Background(), experiments.Options{Out: dir, Workers: 1, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if out.String() != "1\n2\n" {
			t.Errorf("the report is %q", out.String())
		}
	}
	if runs != 2 {
		t.Errorf("cells ran %d times, want once each", runs)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "mine", "x.csv")); err != nil || string(data) != "x\n" {
		t.Errorf("x.csv is %q (%v)", data, err)
	}
	d.cells[0] = cell("a", 3)
	if e, err = experiments.New("mine", "numbers", d); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := e.Run(context.Background(), experiments.Options{Out: dir, Stdout: &out}); err != nil ||
		out.String() != "3\n2\n" || runs != 3 {
		t.Errorf("with another input: %q after %d runs (%v), want 3 and 2 after 3", out.String(), runs, err)
	}
}

func TestOwnExperimentMistakes(t *testing.T) {
	run := func(context.Context) (any, error) { return 0, nil }
	for _, c := range []struct {
		name, experiment string
		d                definition
		want             string
	}{
		{"a path as name", "../mine", definition{}, `name is "../mine"`},
		{"a name of the registry", "fig14", definition{}, `"fig14", which is taken`},
		{"the folder of shared cells", "shared-cells", definition{}, "which is taken"},
		{"a path as key", "mine", definition{cells: []experiments.Cell{{Key: "a/b", Run: run}}}, `key is "a/b"`},
		{"equal keys", "mine", definition{cells: []experiments.Cell{{Key: "a", Run: run}, {Key: "a", Run: run}}},
			`two cells have the key "a"`},
		{"nothing to run", "mine", definition{cells: []experiments.Cell{{Key: "a"}}}, `"a" has no Run`},
		{"a path as file", "mine", definition{report: experiments.Report{Files: []experiments.File{{Name: "../x"}}}},
			`name is "../x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := experiments.New(c.experiment, "", c.d)
			if err == nil {
				err = e.Run(context.Background(), experiments.Options{Out: t.TempDir()})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

// A measurement is what scheduler.Run says, and is computed anew when the network, which
// has a name alone in common with the one before, is another.
func TestMeasure(t *testing.T) {
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var seen []string
	for _, name := range []string{"squeezenet", "alexnet"} {
		src, err := network.Open(name, network.Options{})
		if err != nil {
			t.Fatal(err)
		}
		src.Name = "net"
		c, err := experiments.Measure(src, spec, 4, v, scheduler.Options{Chunk: 1}, "images/s")
		if err != nil {
			t.Fatal(err)
		}
		e, err := experiments.New("mine", "", definition{cells: []experiments.Cell{c}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := e.Run(context.Background(), experiments.Options{Out: dir, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		var row experiments.Row
		if err := json.Unmarshal(out.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		r, err := scheduler.Run(context.Background(), src, spec, 4, v, scheduler.Options{Chunk: 1})
		if err != nil {
			t.Fatal(err)
		}
		if row.Kernels != int64(len(r.Schedule.Order)) || row.Unit != "images/s" || row.ChunkPolicy != experiments.Given ||
			row.BatchesPerCluster != 1 {
			t.Errorf("%s: the row is %+v", name, row)
		}
		seen = append(seen, out.String())
	}
	if seen[0] == seen[1] {
		t.Error("two networks of one name have one result")
	}
}
