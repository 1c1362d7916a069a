// Command command is dsasched with a variant of its own, whose order of instances is an integer program: every command
// knows the variant and the order as it knows the built-in ones.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/dsasched/dsasched/cmd/cli"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func main() {
	graphTurbo, err := recipes.Lookup("cross-layer")
	if err != nil {
		log.Fatal(err)
	}
	mine := graphTurbo.With("order", scheduler.Strategy{Name: "brief", Decide: brief, NeedsSolver: true, Exact: true,
		Description: "least bytes times positions between writer and last reader, by integer program"})
	mine.Name, mine.Description = "live-range", "cross-layer with order brief"
	cli.Main(mine)
}

// brief gives each instance a position. at[i][p] says that instance i runs at p, and alive[i] is how many positions
// later its last reader runs; bytes times alive, added up, are least. The search starts from Algorithm 3's order.
func brief(ctx context.Context, d *scheduler.Draft) error {
	if err := graphturbo.Algorithm3().Decide(ctx, d); err != nil {
		return err
	}
	n := len(d.Order)
	if n > 24 {
		d.Tell(fmt.Sprintf("order brief is Algorithm 3's: %d instances, expected 24 or fewer", n))
		return nil
	}
	m := milp.New("brief")
	at, position := make([][]milp.Var, n), make([][]milp.Term, n)
	start := make([]float64, n*n, n*n+n)
	for i := range n {
		for p := range n {
			at[i] = append(at[i], m.Binary(fmt.Sprintf("at_%d_%d", i, p), 0))
			position[i] = append(position[i], at[i][p].Times(float64(p)))
		}
		m.AddEQ(fmt.Sprint("once_", i), milp.Sum(at[i]...), 1)
		start[i*n+slices.Index(d.Order, i)] = 1
	}
	for p := range n {
		var here []milp.Var
		for i := range n {
			here = append(here, at[i][p])
		}
		m.AddEQ(fmt.Sprint("filled_", p), milp.Sum(here...), 1)
	}
	for i, readers := range d.Instances.Consumers {
		written, last := int64(0), 0
		x := &d.Instances.Instances[i]
		for _, t := range d.Grouping.Groups[x.Group].Outputs {
			written += d.Graph.Tensor(t).DType.Bytes(x.Regions[t].Elements())
		}
		alive := m.Continuous(fmt.Sprint("alive_", i), 0, float64(n), float64(written))
		for _, c := range readers {
			later := slices.Clone(position[c])
			for p, v := range at[i] {
				later = append(later, v.Times(-float64(p)))
			}
			m.AddGE(fmt.Sprintf("before_%d_%d", i, c), later, 1)
			m.AddLE(fmt.Sprintf("read_%d_%d", i, c), append(later, alive.Times(-1)), 0)
			last = max(last, slices.Index(d.Order, c)-slices.Index(d.Order, i))
		}
		start = append(start, float64(last))
	}
	found, err := d.Options.Solver.Solve(ctx, m, milp.Options{Start: start, WorkLimit: 1000})
	if err != nil {
		return err
	}
	for i := range n {
		d.Order[slices.IndexFunc(at[i], func(v milp.Var) bool { return found.Int(v) == 1 })] = i
	}
	d.OrderName = "brief"
	return nil
}
