package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/joint"
	"github.com/dsasched/dsasched/formulation/ordering"
)

func newOrder() *cobra.Command {
	objective := &choice{value: string(ordering.Traffic), kind: "OBJECTIVE", words: []cobra.Completion{
		cobra.CompletionWithDesc(string(ordering.Traffic), "least cost of stores and loads"),
		cobra.CompletionWithDesc(string(ordering.Peak), "least capacity without any"),
	}}
	cmd := command("solve order")
	cmd.Args = oneArg("FILE", "give the path of an ordering problem in JSON")
	f := addFileSolver(cmd, ordering.Methods(), "`file` to write the order to", "order `file` to start from (written by -o)")
	addChoice(cmd, objective, "objective", "objective to minimise: "+strings.Join(plain(objective.words), " or "))
	return fileProblem[*ordering.Problem, []int, *ordering.Result]{
		load: ordering.Load, start: loadOrder,
		solve: func(ctx context.Context, p *ordering.Problem, method string, opts ordering.Options) (
			*ordering.Result, error) {
			res, err := ordering.Solve(ctx, p, ordering.Objective(objective.value), method, opts)
			if err != nil {
				return nil, err
			}
			if _, err := ordering.Check(p, res); err != nil {
				return nil, fmt.Errorf("internal error, %s breaks a rule: %w", method, err)
			}
			return res, nil
		},
		write: func(b *bytes.Buffer, p *ordering.Problem, res *ordering.Result) { writeOrder(b, p, res, f.out.name) },
	}.run(cmd, f)
}

func newJoint() *cobra.Command {
	cmd := command("solve joint")
	cmd.Args = oneArg("FILE", "give the path of a problem of 'dsasched export joint'")
	f := addFileSolver(cmd, joint.Methods(), "`file` to write the answer to", "answer `file` to start from (written by -o)")
	return fileProblem[*joint.Problem, joint.Start, *joint.Result]{load: joint.Load, start: joint.LoadStart,
		solve: joint.Solve, write: func(b *bytes.Buffer, p *joint.Problem, r *joint.Result) {
			row(b, "problem", "%s: %s, %s, %s, %s", printable(p.Order.Name), plural(len(p.Order.Subgraphs), "sub-graph"),
				plural(len(p.Labels.Nodes), "instance"), plural(p.Labels.Size(), "label"), plural(len(p.Labels.Edges), "edge"))
			o := r.Outcome()
			row(b, "method", "%s: %s in %s", r.Method, r.Status, duration(r.Seconds))
			writeInfeasible(b, p.Order, r.Infeasible)
			if r.Choice == nil {
				return
			}
			row(b, "objective", "%s, bound %s, gap %s", duration(o.Objective), duration(o.Bound), gapText(o.Objective, o.Bound))
			row(b, "of which", "labels %s, stores and loads %s", duration(r.LabelSeconds), duration(r.MoveSeconds))
			if given, err := joint.Solve(context.Background(), p, "greedy", joint.Options{}); err == nil && given.Choice != nil {
				row(b, "greedy", "%s", duration(given.Objective))
			}
			rowWords(b, "order", strip(harness.Each(r.Steps, func(s ordering.Step) int { return s.Run[0] })), 8)
			if f.out.name != "" {
				row(b, "written", "%s", printable(f.out.name))
			}
		}}.run(cmd, f)
}

// loadOrder reads the order of the instances from a valid result.
func loadOrder(file string, p *ordering.Problem) ([]int, error) {
	res, err := ordering.LoadResult(file, p)
	if err != nil {
		return nil, err
	}
	if _, err := ordering.Check(p, res); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !res.HasOrder() {
		return nil, fmt.Errorf("%s: status %s, expected an order", file, res.Status)
	}
	g := ordering.NewGraph(p)
	return harness.Each(res.Steps, func(s ordering.Step) int { return slices.Index(g.Refs, s.Run) }), nil
}

func writeOrder(b *bytes.Buffer, p *ordering.Problem, res *ordering.Result, file string) {
	what := "cost"
	if res.Objective == ordering.Peak {
		what = "peak"
	}
	row(b, "problem", "%s: %s, %s", printable(p.Name), plural(len(p.Subgraphs), "sub-graph"),
		plural(instances(p), "instance"))
	row(b, "method", "%s, %s", res.Method, res.Objective)
	row(b, "status", "%s", res.Status)
	if res.HasOrder() {
		row(b, what, "%s (bound %s, gap %s)", costText(p, res.Objective, res.Cost), costText(p, res.Objective, res.Bound),
			gapText(res.Cost, res.Bound))
		if res.Objective == ordering.Traffic {
			row(b, "peak", "%s of %s", size(res.PeakBytes), size(p.CapacityBytes))
		}
		rowWords(b, "order", strip(harness.Each(res.Steps, func(s ordering.Step) int { return s.Run[0] })), 8)
	}
	writeInfeasible(b, p, res.Infeasible)
	row(b, "took", "%s", duration(res.Seconds))
	if file != "" {
		row(b, "written", "%s", printable(file))
	}
}

// writeInfeasible says why a problem has no order; nil: it is not known to have none.
func writeInfeasible(b *bytes.Buffer, p *ordering.Problem, e *ordering.InfeasibleError) {
	if e == nil {
		return
	}
	row(b, "reason", "instance %d of %q: what it reads, its output and its workspace are %s too many", e.Instance[1],
		printable(p.Subgraphs[e.Instance[0]].Name), plural(int(e.MissingBytes), "byte"))
	names := harness.Each(e.Tensors, func(t ordering.Ref) string {
		return fmt.Sprintf("%s[%d]", p.Subgraphs[t[0]].Name, t[1])
	})
	row(b, "tensors", "%s", printable(firstOf(names, reasonNames)))
}

// costText writes the cost of an order, which has a unit where it is of bytes.
func costText(p *ordering.Problem, o ordering.Objective, x float64) string {
	if o == ordering.Peak || p.StoreCostPerByte == 1 && p.LoadCostPerByte == 1 {
		return size(int64(x))
	}
	return decimal(x)
}

// decimal writes a number in full, without an exponent.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func instances(p *ordering.Problem) int {
	n := 0
	for _, sg := range p.Subgraphs {
		n += sg.Instances
	}
	return n
}

type checkOrderJSON struct {
	Problem   string  `json:"problem"`
	Order     string  `json:"order"`
	Status    string  `json:"status"` // as claimed
	Objective string  `json:"objective"`
	Cost      float64 `json:"cost"` // found
	PeakBytes int64   `json:"peak_bytes"`
	Stores    int     `json:"stores"`
	Loads     int     `json:"loads"`
}

func newCheckOrder() *cobra.Command {
	cmd := command("check order")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usagef("%s takes PROBLEM and ORDER, found %d: give the paths of both JSON files",
				cmd.CommandPath(), len(args))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p := try(ordering.Load(args[0]))
		res := try(ordering.LoadResult(args[1], p))
		v, err := ordering.Check(p, res)
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		a := checkOrderJSON{args[0], args[1], res.Status.String(), string(res.Objective), v.Cost,
			v.PeakBytes, v.Stores, v.Loads}
		return emit(cmd, a, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s is valid: %s, %s\n", printable(args[1]), res.Status, res.Objective)
			if res.HasOrder() {
				fmt.Fprintf(b, "cost %s, peak %s, %s, %s\n", costText(p, res.Objective, v.Cost), size(v.PeakBytes),
					plural(v.Stores, "store"), plural(v.Loads, "load"))
			}
		})
	}
	return cmd
}
