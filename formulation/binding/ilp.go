package binding

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// unit is the model's unit of cost in seconds. Solvers take 1e-6 for nothing.
const unit = 1e-6

// A Program is the part of a model that [Problem.State] adds, with what it takes to read its solution.
type Program struct {
	Kept  [][]int      // labels, per node
	X     [][]milp.Var // of the labels kept
	p     *Problem     // with the labels kept
	model *milp.Model
	edges []edgeVars
}

type edgeVars struct {
	from, to []int // class of each label
	y        [][]milp.Var
}

// Formulate builds the model of the package's documentation.
func Formulate(p *Problem, opts Options) (*milp.Model, error) {
	pr, err := formulate(context.Background(), p, opts)
	if err != nil {
		return nil, err
	}
	return pr.model, pr.model.Err()
}

func formulate(ctx context.Context, p *Problem, opts Options) (*Program, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p.State(ctx, milp.New("binding"), false, opts.Start), nil
}

// State adds the variables and rows of a valid problem to a model whose objective is in microseconds. Of the labels it
// has those that [Problem.Prune] keeps and those of a start, which the solver could not be given otherwise.
func (p *Problem) State(ctx context.Context, m *milp.Model, sameScope bool, start []int) *Program {
	pr := &Program{Kept: p.Prune(ctx, sameScope), model: m}
	for i, l := range start {
		if at, there := slices.BinarySearch(pr.Kept[i], l); !there {
			pr.Kept[i] = slices.Insert(pr.Kept[i], at, l)
		}
	}
	pr.p = p.Restrict(pr.Kept)
	for i, n := range pr.p.Nodes {
		var vars []milp.Var
		for l := range n.Labels {
			vars = append(vars, m.Binary(fmt.Sprintf("x[%d,%d]", i, pr.Kept[i][l]), n.Cost[l]/unit))
		}
		pr.X = append(pr.X, vars)
		m.AddEQ(fmt.Sprintf("(1) one label[%d]", i), milp.Sum(vars...), 1)
	}
	for k, e := range pr.p.Edges {
		ev := classes(e.Cost)
		from, to := pr.members(e.From, ev.from), pr.members(e.To, ev.to)
		for a := range from {
			var row []milp.Var
			for b := range to {
				c := e.Cost[slices.Index(ev.from, a)][slices.Index(ev.to, b)]
				row = append(row, m.Continuous(fmt.Sprintf("y[%d,%d,%d]", k, a, b), 0, 1, c/unit))
			}
			ev.y = append(ev.y, row)
		}
		for a := range from {
			m.AddEQ(fmt.Sprintf("(2) from[%d,%d]", k, a), append(milp.Sum(ev.y[a]...), negative(from[a])...), 0)
		}
		for b := range to {
			var column []milp.Var
			for a := range from {
				column = append(column, ev.y[a][b])
			}
			m.AddEQ(fmt.Sprintf("(3) to[%d,%d]", k, b), append(milp.Sum(column...), negative(to[b])...), 0)
		}
		pr.edges = append(pr.edges, ev)
	}
	return pr
}

func negative(vars []milp.Var) []milp.Term {
	var terms []milp.Term
	for _, v := range vars {
		terms = append(terms, v.Times(-1))
	}
	return terms
}

// classes gives labels with equal rows, and labels with equal columns, one class.
// Classes are numbered by their first label.
func classes(cost [][]float64) edgeVars {
	var ev edgeVars
	number := func(lines [][]float64) []int {
		var class []int
		var first [][]float64
		for _, line := range lines {
			k := slices.IndexFunc(first, func(f []float64) bool { return slices.Equal(f, line) })
			if k < 0 {
				k = len(first)
				first = append(first, line)
			}
			class = append(class, k)
		}
		return class
	}
	ev.from = number(cost)
	columns := make([][]float64, len(cost[0]))
	for b := range columns {
		for a := range cost {
			columns[b] = append(columns[b], cost[a][b])
		}
	}
	ev.to = number(columns)
	return ev
}

// members lists the variables of node v's labels in each class.
func (pr *Program) members(v int, class []int) [][]milp.Var {
	out := make([][]milp.Var, slices.Max(class)+1)
	for l, c := range class {
		out[c] = append(out[c], pr.X[v][l])
	}
	return out
}

// Point is the solution of the model that stands for a choice of the original labels; variables of others are 0.
func (pr *Program) Point(choice []int) []float64 {
	values := make([]float64, pr.model.NumVars())
	label := make([]int, len(choice))
	for i, l := range choice {
		label[i] = slices.Index(pr.Kept[i], l)
		values[pr.X[i][label[i]]] = 1
	}
	for k, e := range pr.p.Edges {
		ev := &pr.edges[k]
		values[ev.y[ev.from[label[e.From]]][ev.to[label[e.To]]]] = 1
	}
	return values
}

// Decode reads a choice of the original labels from a solution.
func (pr *Program) Decode(sol *milp.Solution) []int {
	if !sol.Status.HasValues() {
		return nil
	}
	choice := make([]int, len(pr.X))
	for i, vars := range pr.X {
		for l, v := range vars {
			if sol.Int(v) == 1 {
				choice[i] = l
			}
		}
	}
	return original(choice, pr.Kept)
}

// ILP solves the model. It needs [Options].Solver.
func ILP(ctx context.Context, p *Problem, opts Options) (*Result, error) {
	began := time.Now()
	if err := p.begin(&opts); err != nil {
		return nil, err
	}
	ctx, cancel := opts.Begin(ctx)
	defer cancel()
	pr, err := formulate(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	settings := opts.MILP(unit)
	if opts.Start != nil {
		settings.Start = pr.Point(opts.Start)
	}
	sol, err := opts.Program(ctx, pr.model, settings, func(sol *milp.Solution) (solve.Verdict, error) {
		return solve.Verdict{Cost: p.Seconds(pr.Decode(sol)) / unit}, nil
	})
	if err != nil {
		return nil, err
	}
	if sol.Status != milp.Optimal && sol.Status != milp.Feasible && sol.Status != milp.Limit {
		return nil, fmt.Errorf("binding: the solver says %v, but every choice of labels is a solution", sol.Status)
	}
	bound := math.Max(sol.Bound*unit, p.Floor())
	if sol.Status == milp.Optimal {
		bound = math.Inf(1) // the objective: it is the least, within the solver's tolerance
	}
	r := p.finish(pr.Decode(sol), bound, sol.Stop)
	r.Method, r.Seconds, r.Effort = "ilp", time.Since(began).Seconds(), sol.Effort.In(unit, r.Objective)
	return r, nil
}
