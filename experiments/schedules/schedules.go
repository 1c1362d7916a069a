// Package schedules asks of networks on machines whether greedy schedules are as fast as any: it computes the cells of
// the benchmark's kind schedules, says what they prove, and concludes.
package schedules

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/experiments/internal/optimality"
	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/certificate"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Limits of a cell's work, the same on any machine.
const (
	mostElements = 4      // of a cluster
	fewCommands  = 2_000  // of greedy's program, up to which the batch is doubled
	exactly      = 20_000 // of greedy's program, up to which exact decisions are tried
	posed        = 80_000 // of greedy's program, above which nothing else is
	measured     = 30_000 // commands that an exact decision simulates
	shrinks      = 40     // parts of a network that are tried
	much         = 1.05   // what exact decisions gain of a part
)

// A Row is a cell: a network on a machine. Times are simulated, of the batch, in picoseconds; 0: there is none.
type Row struct {
	Network, Kind, Machine string
	Batch                  int64
	Greedy                 int64  // cross-layer, by layers in tiles
	Exact                  int64  // the fastest of greedy and of exact-all and what that falls back to, at greedy's chunk
	Tiled                  int64  // the default variant
	Bound                  int64  // of all schedules whose clusters have equal shares of the batch
	Any                    int64  // of all divisions of batch or network between clusters
	By                     string // the variant of Exact
	Note                   string // why something is not there
}

var columns = []string{"network", "kind", "machine", "batch", "greedy_ps", "exact_ps", "tiled_ps", "bound_ps",
	"any_division_ps", "exact_by", "above_bound_percent", "exact_gains_percent", "tiled_gains_percent", "verdict", "note"}

// Name is the cell's.
func (r *Row) Name() string { return r.Network + "-" + r.Machine }

// above is by how many per cent greedy is above the bound, rounded up to tenths: it is within as much of the optimum.
// NaN: there is none.
func (r *Row) above() float64 {
	if r.Greedy == 0 || r.Bound == 0 {
		return math.NaN()
	}
	return float64((1000*(r.Greedy-r.Bound)+r.Bound-1)/r.Bound) / 10
}

// gain is by how many per cent greedy takes longer than another schedule; NaN: there is none.
func (r *Row) gain(other int64) float64 {
	if r.Greedy == 0 || other == 0 {
		return math.NaN()
	}
	return 100 * (float64(r.Greedy)/float64(other) - 1)
}

// Verdict says how near to optimal a row proves greedy to be, or which schedule beats it by 1 % or more.
func (r *Row) Verdict() string {
	exact, tiled := r.gain(r.Exact), r.gain(r.Tiled)
	switch {
	case r.Greedy == 0:
		return "not posed"
	case r.above() <= 5:
		return "within " + harness.Fixed(r.above(), 1) + " %"
	case exact >= 1:
		return "exact gains " + harness.Fixed(exact, 1) + " %"
	case r.above() <= 10:
		return "within " + harness.Fixed(r.above(), 1) + " %"
	case tiled >= 1:
		return "tiled gains " + harness.Fixed(tiled, 1) + " %"
	}
	return "open"
}

func (r *Row) record() []string {
	list := []string{r.Network, r.Kind, r.Machine}
	for _, n := range []int64{r.Batch, r.Greedy, r.Exact, r.Tiled, r.Bound, r.Any} {
		list = append(list, strconv.FormatInt(n, 10))
	}
	list = append(list, r.By)
	for _, p := range []float64{r.above(), r.gain(r.Exact), r.gain(r.Tiled)} {
		text := ""
		if !math.IsNaN(p) {
			text = harness.Fixed(p, 1)
		}
		list = append(list, text)
	}
	return append(list, r.Verdict(), r.Note)
}

// check reports what can't be: the bounds are below what they bound, and the exact schedule is at most greedy's.
func (r *Row) check() error {
	for _, x := range [][2]int64{{r.Bound, r.Exact}, {r.Exact, r.Greedy}, {r.Bound, r.Greedy}, {r.Any, r.Tiled},
		{r.Any, r.Bound}} {
		if x[0] < 0 || x[1] > 0 && x[0] > x[1] {
			return fmt.Errorf("%s: found %d above %d, expected bound_ps <= exact_ps <= greedy_ps and any_division_ps <= "+
				"bound_ps, tiled_ps", r.Name(), x[0], x[1])
		}
	}
	if missing := r.Greedy == 0 || r.Exact == 0 || r.Tiled == 0 || r.Bound == 0; missing != (r.Note != "") {
		return fmt.Errorf("%s: found note %q, expected one just where a time or the bound is 0", r.Name(), r.Note)
	}
	return nil
}

// Read reads the table, and refuses a row that contradicts itself.
func Read(file string, data []byte) (rows []Row, err error) {
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, f := range lines {
		if i == 0 {
			if !slices.Equal(f, columns) {
				return nil, fmt.Errorf("%s: found columns %q, expected %q", file, f, columns)
			}
			continue
		}
		r := Row{Network: f[0], Kind: f[1], Machine: f[2], By: f[9], Note: f[14]}
		for k, v := range []*int64{&r.Batch, &r.Greedy, &r.Exact, &r.Tiled, &r.Bound, &r.Any} {
			if *v, err = strconv.ParseInt(f[3+k], 10, 64); err != nil {
				return nil, fmt.Errorf("%s:%d: %s: found %q, expected a whole number", file, i+1, columns[3+k], f[3+k])
			}
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		for k, want := range r.record() {
			if f[k] != want {
				return nil, fmt.Errorf("%s:%d: %s: found %q, expected %q", file, i+1, columns[k], f[k], want)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Write is the table as a file.
func Write(rows []Row) []byte {
	t := harness.Table{Columns: harness.Columns(columns...)}
	for i := range rows {
		t.Rows = append(t.Rows, rows[i].record())
	}
	return t.CSV()
}

// A Cell is a row with the schedules behind it; nil: there is none.
type Cell struct {
	Row
	greedy, exact *scheduler.Result
	from          network.Options
}

// open is an empty cell of a row's network and machine.
func (r *Row) open() (c *Cell, net network.Network, spec *hardware.Spec, err error) {
	if spec, err = hardware.Load(r.Machine); err != nil {
		return nil, net, nil, err
	}
	c = &Cell{Row: Row{Network: r.Network, Kind: r.Kind, Machine: r.Machine},
		from: network.Options{DType: harness.Precision(spec)}}
	net, err = network.Open(r.Network, c.from)
	return c, net, spec, err
}

// Measure computes a row anew, of which it takes network, kind and machine.
func Measure(ctx context.Context, r Row) (*Cell, error) {
	c, net, spec, err := r.open()
	if err == nil {
		err = cmp.Or(c.measure(ctx, net, spec, mostElements), c.check())
	}
	return c, err
}

// lack notes why something is not there.
func (c *Cell) lack(what string, err error) {
	if err != nil {
		c.Note = strings.TrimPrefix(c.Note+"; "+what+": "+err.Error(), "; ")
	}
}

func (c *Cell) measure(ctx context.Context, net network.Network, spec *hardware.Spec, most int64) error {
	graphs, graph := map[int64]*model.Graph{}, net.Graph
	net.Graph = func(n int64) (g *model.Graph, err error) { // one for all variants, which share what they explore
		if g = graphs[n]; g == nil {
			g, err = graph(n)
			graphs[n] = g
		}
		return g, err
	}
	machine, err := scheduler.LevelAuto.Machine(spec)
	if err != nil {
		return err
	}
	opt, byText := scheduler.Options{Commands: measured}, optimality.ByText()
	for n, commands := int64(1), 0; n <= most && commands <= fewCommands; n *= 2 {
		made, err := scheduler.Run(ctx, net, spec, n*int64(machine.Clusters), harness.Recipe(recipes.Greedy, byText...), opt)
		if err != nil && c.greedy == nil {
			c.lack("greedy", err)
			return ctx.Err()
		} else if err != nil {
			break
		}
		c.greedy, commands = made, len(made.Program.Commands)
	}
	commands := len(c.greedy.Program.Commands)
	const tooMany = "found %d commands, expected at most %d"
	if commands > posed {
		c.lack("greedy", fmt.Errorf(tooMany, commands, posed))
		return nil
	}
	c.Batch, c.Greedy = c.greedy.Batch, c.greedy.Sim.TotalPs
	if commands > exactly {
		c.lack("exact", fmt.Errorf(tooMany, commands, exactly))
	} else if err := c.exactly(ctx, net, spec, opt); err != nil {
		return err
	}
	own, err := scheduler.Run(ctx, net, spec, c.Batch, harness.Recipe(recipes.Default), opt)
	if c.lack(recipes.Default, err); err == nil {
		c.Tiled = own.Sim.TotalPs
	}
	least, err := bound.AnyForm(ctx, net, machine, c.Batch)
	if c.lack("bound", err); err == nil {
		c.Bound = int64(1e12 * least.Seconds)
	}
	if any, err := bound.AnyDivision(ctx, net, machine, c.Batch); err == nil {
		c.Any = min(c.Bound, int64(1e12*any))
	}
	return ctx.Err()
}

// exactly has the fastest schedule with exact decisions, or greedy's if none is faster.
func (c *Cell) exactly(ctx context.Context, net network.Network, spec *hardware.Spec, opt scheduler.Options) error {
	opt.Chunk = c.greedy.Chunk
	opt.Share()
	c.exact, c.By = c.greedy, recipes.Greedy
	for _, name := range append([]string{"exact-all"}, harness.Recipe("exact-all").Fallback...) {
		made, err := scheduler.Run(ctx, net, spec, c.Batch, harness.Recipe(name, optimality.ByText()...), opt)
		if err == nil && made.Sim.TotalPs < c.exact.Sim.TotalPs {
			c.exact, c.By = made, name
		} else if err != nil && (ctx.Err() != nil || !scheduler.TooLarge(err)) {
			return err
		}
	}
	c.Exact = c.exact.Sim.TotalPs
	return nil
}

// Certificates are files that prove the times and bounds of the greedy and of the exact schedule, by names.
func (c *Cell) Certificates(ctx context.Context) (files []harness.File, err error) {
	for i, made := range []*scheduler.Result{c.greedy, c.exact} {
		if made == nil || c.Greedy == 0 || i > 0 && made == c.greedy {
			continue
		}
		f, err := certificate.New(ctx, c.Network, c.from, made, nil)
		if err != nil {
			return nil, err
		}
		data, err := f.Write()
		if err != nil {
			return nil, err
		}
		files = append(files, harness.File{Name: c.Name() + [...]string{".greedy", ".exact"}[i] + ".json", Data: data})
	}
	return files, nil
}

// A Part is a network from which operators were removed one after the other while exact decisions still gained 5 %.
type Part struct {
	Cell
	Operators []string
	Minimal   bool // exact decisions gain less without any one operator
}

// Smallest shrinks the network of a row, at an element for each cluster. It is an error if exact decisions gain less of
// the whole.
func Smallest(ctx context.Context, r Row) (*Part, error) {
	_, net, spec, err := r.open()
	if err != nil {
		return nil, err
	}
	g, err := net.Graph(1)
	if err != nil {
		return nil, err
	}
	p := &Part{}
	gains := func(ids []model.OpID) (bool, error) {
		c := Cell{Row: Row{Network: r.Network, Machine: r.Machine}}
		part := network.Network{Name: g.Name, Graph: func(int64) (*model.Graph, error) { return partOf(g, ids) }}
		if err := c.measure(ctx, part, spec, 1); err != nil || float64(c.Greedy) <= much*float64(c.Exact) || c.Exact == 0 {
			return false, ctx.Err() // what can't be scheduled gains nothing
		}
		p.Cell = c
		return true, nil
	}
	ids := harness.Each(g.Ops, func(op *model.Op) model.OpID { return op.ID })
	if ok, err := gains(ids); !ok {
		return nil, cmp.Or(err, fmt.Errorf("%s: exact decisions gain less than 5 %% of one element each", r.Name()))
	}
	if ids, p.Minimal, err = shrink(ids, shrinks, gains); err != nil {
		return nil, err
	}
	p.Operators = harness.Each(ids, func(id model.OpID) string {
		return fmt.Sprintf("%s %s", g.Op(id).Name, g.Tensor(g.Op(id).Outputs[0]).Shape)
	})
	return p, nil
}
