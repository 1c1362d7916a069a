package readings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// compared are the recipes of the comparison and of the breakdown.
var compared = []string{"tvm", "astitch", "llb", "l1", "ordering", "cross-layer"}

// smallBatches are those of Table 1 at which TVM and GraphTurbo are on a par; each cluster takes its share at once.
var smallBatches = []int64{8, 16}

// stages is the network of Fig. 3 and what it may stand for, eight images on each cluster.
var stages = []string{"toy-fig3", "resnet50"}

const stageImages = 8

// run is a piece of work that published numbers are made of.
type run struct {
	network, recipe string
	batch, chunk    int64
}

// runs are the runs that a setting needs. The networks are those of the setting.
func (s setting) runs() []run {
	var list []run
	for _, c := range s.configurations() {
		for _, name := range compared {
			list = append(list, s.of(c, name))
		}
	}
	for _, name := range []string{"tvm", "cross-layer"} {
		for _, batch := range smallBatches {
			list = append(list, s.small(name, batch))
		}
		for _, network := range stages {
			list = append(list, s.stage(network, name))
		}
	}
	return list
}

// configurations are the paper's with the setting's networks.
func (s setting) configurations() []literature.Configuration {
	list := literature.Configurations()
	for i := range list {
		if other := s.Change.Networks[list[i].Label]; other != "" {
			list[i].Network = other
		}
	}
	return list
}

// of is the run of a configuration at the paper's batches per cluster.
func (s setting) of(c literature.Configuration, recipe string) run {
	r, err := recipes.Lookup(recipe)
	if err != nil {
		panic("readings: " + err.Error())
	}
	return run{s.network(c.Network, recipe), recipe, c.BatchSize, c.PaperChunk(r)}
}

// network is the name of a network as a recipe gets it.
func (s setting) network(name, recipe string) string {
	_, at := literature.ByText(cmp.Or(s.Change.Instead[recipe], recipe))
	if g := s.Change.Grains[recipe]; g != "" {
		at = g
	}
	return literature.At(name, at)
}

func (s setting) small(recipe string, batch int64) run {
	return run{s.network(literature.StandIns["B"], recipe), recipe, batch, batch / 4}
}

func (s setting) stage(network, recipe string) run {
	chunk := int64(stageImages)
	if recipe == "tvm" {
		chunk = literature.ConfigurationOf("A").TVMBatchesPerCluster
	}
	return run{s.network(network, recipe), recipe, 4 * stageImages, chunk}
}

// cell is a run's. What is in force has the cells of other experiments.
func (s setting) cell(r run, src network.Network, spec *hardware.Spec) (harness.Cell, error) {
	machine, err := s.Change.machine(spec)
	if err != nil {
		return harness.Cell{}, err
	}
	v, err := s.Change.recipe(r.recipe, r.chunk*int64(spec.Clusters) == r.batch)
	if err != nil {
		return harness.Cell{}, err
	}
	policy := harness.PaperChunks
	if s.Change.Steady {
		policy = harness.PaperInARow
	}
	cell := harness.RowCell(src, model.F16, machine, r.batch, v, s.Change.options(v, r.chunk), policy, unitOf(r.network))
	short, _ := network.At(r.network)
	cell = literature.Named(cell, short)
	cell.Label = fmt.Sprintf("%s (%s)", cell.Label, s.Name)
	compute := cell.Run
	cell.Run = func(ctx context.Context) (any, error) {
		row, err := compute(ctx)
		if scheduler.TooLarge(err) {
			return harness.Row{Notes: []string{err.Error()}}, nil // a number that is missing
		}
		return row, err
	}
	return cell, nil
}

// unitOf is a network's unit in the published table; it is a part of a cell's inputs.
func unitOf(name string) string {
	name, _ = network.At(name)
	for _, c := range literature.Configurations() {
		if c.Network == name {
			return c.Unit
		}
	}
	return "1/s"
}

// results finds the rows of a setting.
type results struct {
	setting setting
	rows    map[run]harness.Row
}

func (r results) at(label, recipe string) harness.Row {
	for _, c := range r.setting.configurations() {
		if c.Label == label {
			return r.rows[r.setting.of(c, recipe)]
		}
	}
	panic("readings: no configuration " + label)
}

// plan has each cell once, however many settings share it.
func (e experiment) plan() (*harness.Plan, error) {
	spec := harness.Accelerator(e.hardware)
	p := &harness.Plan{}
	cells, keys := map[string]int{}, map[string]bool{} // by inputs
	all := settings(e.readings)
	index := make([]map[run]int, len(all))
	networks := map[string]network.Network{}
	for i, s := range all {
		index[i] = map[run]int{}
		for _, r := range s.runs() {
			src, ok := networks[r.network]
			if !ok {
				src = harness.OpenNetwork(r.network)
				networks[r.network] = src
			}
			cell, err := s.cell(r, src, spec)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			hash, err := harness.Hash(cell.Inputs)
			if err != nil {
				return nil, err
			}
			k, ok := cells[hash]
			if !ok {
				k = len(p.Cells)
				cells[hash] = k
				// The first, which is in force, has the key that other experiments know.
				if keys[cell.Key] {
					cell.Key += "-" + hash[:8]
				}
				keys[cell.Key] = true
				p.Cells = append(p.Cells, cell)
			}
			index[i][r] = k
		}
	}
	p.Report = func(data []json.RawMessage) (*harness.Report, error) {
		rows, err := harness.Decode[harness.Row](data)
		if err != nil {
			return nil, err
		}
		var list []results
		for i, s := range all {
			m := map[run]harness.Row{}
			for r, k := range index[i] {
				row := rows[k]
				if s.Change.Steady && row.ThroughputPerSecond > 0 {
					if row.ThroughputPerSecond = row.SteadyThroughputPerSecond; row.ThroughputPerSecond == 0 {
						row.Notes = []string{"the program of batches in a row is too large"}
					}
				}
				m[r] = row
			}
			list = append(list, results{s, m})
		}
		return e.report(list)
	}
	return p, nil
}
