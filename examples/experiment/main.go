// Command experiment measures two variants on two networks as an experiment: cells in
// parallel, kept in a folder, and a table made of all of them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// writes asks how often a tensor goes to the DDR.
type writes struct{ networks, variants []string }

func (w writes) Cells() ([]experiments.Cell, error) {
	chip, err := hardware.Load("stcp920")
	if err != nil {
		return nil, err
	}
	var cells []experiments.Cell
	for _, name := range w.networks {
		net, err := network.Open(name, network.Options{})
		if err != nil {
			return nil, err
		}
		for _, name := range w.variants {
			v, err := recipes.Lookup(name)
			if err != nil {
				return nil, err
			}
			c, err := experiments.Measure(net, chip, 8, v, scheduler.Options{Chunk: 2}, "images/s")
			if err != nil {
				return nil, err
			}
			cells = append(cells, c)
		}
	}
	return cells, nil
}

func (w writes) Report(results []json.RawMessage) (experiments.Report, error) {
	var table strings.Builder
	fmt.Fprintln(&table, "network,variant,ddr_tensor_writes")
	for _, data := range results {
		var r experiments.Row
		if err := json.Unmarshal(data, &r); err != nil {
			return experiments.Report{}, err
		}
		fmt.Fprintf(&table, "%s,%s,%d\n", r.Model, r.Variant, r.Writes.DDR)
	}
	return experiments.Report{Text: table.String(),
		Files: []experiments.File{{Name: "writes.csv", Data: []byte(table.String())}}}, nil
}

func main() {
	dir, err := os.MkdirTemp("", "results")
	check(err)
	defer os.RemoveAll(dir)

	e, err := experiments.New("writes", "tensor writes to the DDR",
		writes{[]string{"resnet18", "squeezenet"}, []string{"tvm", "cross-layer"}})
	check(err)
	check(e.Run(context.Background(), experiments.Options{Out: dir, Stdout: os.Stdout, Stderr: os.Stderr}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
