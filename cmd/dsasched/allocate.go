package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/milp"
)

// allocateJSON is the answer of allocate. Its names are those of the other solvers'
// answers: capacity, peak and bound are in the unit of the file's sizes.
type allocateJSON struct {
	File     string  `json:"file"`
	Method   string  `json:"method"`
	Buffers  int     `json:"buffers"`
	Status   string  `json:"status"`
	Capacity *int64  `json:"capacity"` // null: minimised
	Peak     *int64  `json:"peak"`     // null: no placement was found
	Bound    int64   `json:"bound"`    // no placement has a peak below it
	Seconds  float64 `json:"seconds"`
	// Overfull is a reason for infeasible; null: there is none so simple, or no need.
	Overfull *overfullJSON `json:"overfull"`
	Out      *string       `json:"out"` // null: nothing was written
}

// overfullJSON is a time at which what is in use is more than the capacity.
type overfullJSON struct {
	Lower   int64    `json:"lower"` // in use from here
	Upper   int64    `json:"upper"` // to before here
	Buffers []string `json:"buffers"`
	Missing int64    `json:"missing_bytes"`
}

// overfull is the time at which the capacity misses most bytes, nil if it misses none.
func overfull(p *allocate.Problem, capacity int64) *overfullJSON {
	s, ok := p.Fullest()
	if !ok || s.Bytes() <= capacity {
		return nil
	}
	o := &overfullJSON{Lower: s.Time.Lower, Upper: s.Time.Upper, Missing: s.Bytes() - capacity}
	for _, l := range s.Live {
		o.Buffers = append(o.Buffers, p.Buffers[l.Buffer].ID)
	}
	return o
}

// spillChoicesJSON is the answer of allocate --spill.
type spillChoicesJSON struct {
	File     string            `json:"file"`
	Buffers  int               `json:"buffers"`
	Capacity int64             `json:"capacity"`
	Spills   []spillChoiceJSON `json:"spills"`
	Out      *string           `json:"out"`
}

type spillChoiceJSON struct {
	Method  string   `json:"method"`
	Status  string   `json:"status"`
	Moved   *int64   `json:"moved_bytes"` // null: no choice was found
	Bound   int64    `json:"bound_bytes"` // no choice moves less
	Spilled []string `json:"spilled"`
	// Placement tells whether what stays has offsets: a status.
	Placement string  `json:"placement"`
	Seconds   float64 `json:"seconds"`
}

const (
	methodSearch = "search"
	methodILP    = "ilp"

	// placeNodes is how long --spill looks for the offsets of what stays: a second
	// or two for some hundred buffers.
	placeNodes = 100_000
)

func allocateMethods() []cobra.Completion {
	return []cobra.Completion{
		cobra.CompletionWithDesc(string(allocate.FirstFit), "by birth, into the lowest room"),
		cobra.CompletionWithDesc(string(allocate.BestFit), "by birth, into the smallest room"),
		cobra.CompletionWithDesc(string(allocate.LongestLifetime), "first fit, longest lifetime first"),
		cobra.CompletionWithDesc(string(allocate.LargestFirst), "first fit, largest size first"),
		cobra.CompletionWithDesc(methodILP, "exact, by integer programming (small files)"),
		cobra.CompletionWithDesc(methodSearch, "exact, by search"),
	}
}

func newAllocate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "allocate FILE.csv {--capacity N | --minimize}",
		Short: "Place buffers with known lifetimes in one memory",
		Long: `Give buffers with known lifetimes offsets in one memory. FILE.csv is a file of
MiniMalloc: columns id, lower, upper, size, and alignment, gaps, hint, offset if any.

The status is optimal if the peak is proven to be the least, feasible if it is not,
infeasible if no placement within the capacity exists, and limit if none was found;
a rule that does not fit says limit and what it needs. -o writes the file with the
offsets found.

With --spill, buffers that do not all fit leave the memory: a table compares the
rules and the optimum in bytes moved, which is the column spill_cost, or twice the
size. Rules are longest-lifetime and largest-first; placement says whether offsets
for what stays were found. -o then writes the buffers that stay, as the last method
listed places them.`,
		Example: `  dsasched allocate buffers.csv --capacity 12
  dsasched allocate buffers.csv --minimize --method largest-first --json
  dsasched allocate buffers.csv --capacity 12 -o placed.csv
  dsasched allocate buffers.csv --capacity 8 --spill`,
		Args: oneArg("FILE.csv", "give the path of a file of buffers, as MiniMalloc reads them"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	asJSON := addJSON(cmd)
	capacity := &number{}
	cmd.Flags().Var(capacity, "capacity", "bytes of the memory")
	cmd.Flags().Lookup("capacity").DefValue = ""
	completeFlag(cmd, "capacity", cobra.NoFileCompletions)
	minimize := cmd.Flags().Bool("minimize", false, "find the least capacity that suffices")
	method := &choice{value: methodSearch, kind: "METHOD", words: allocateMethods()}
	addChoice(cmd, method, "method", "how: "+strings.Join(plain(method.words), ", "))
	out := cmd.Flags().StringP("out", "o", "", "file to write with the offsets found")
	limit := cmd.Flags().Duration("time-limit", time.Minute, "end after this time with what is known; 0 is no limit")
	completeFlag(cmd, "time-limit", cobra.NoFileCompletions)
	spill := cmd.Flags().Bool("spill", false, "choose what leaves the memory if not all fits")
	quiet := addQuiet(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, given := args[0], cmd.Flags().Changed
		switch {
		case !given("capacity") && !*minimize:
			return usagef("the capacity is missing: give --capacity N, or --minimize for the least one")
		case given("capacity") && *minimize:
			return usagef("--capacity and --minimize exclude each other")
		case *spill && *minimize:
			return usagef("--spill needs --capacity: with the least capacity that suffices nothing is spilled")
		case *spill && (method.value == string(allocate.FirstFit) || method.value == string(allocate.BestFit)):
			return usagef("--method %s does not say what to spill, expected longest-lifetime, largest-first, ilp or search", method.value)
		case *limit < 0:
			return usagef("--time-limit %v, expected 0 or more", *limit)
		case given("out") && *out == "":
			return usagef("--out is empty, expected a file name")
		case *out == stdoutName:
			return usagef("-o - is not possible: give -o a file")
		case *out != "" && sameFile(file, *out):
			return usagef("%s is the file itself: give -o another one", *out)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		p, err := allocate.ReadCSV(file, data)
		if err != nil {
			return err
		}
		show := newStatus(cmd, *quiet)
		defer show.end()
		a := allocator{cmd.Context(), p, *limit, show}
		if *spill {
			methods := []string{string(allocate.SpillLongestLifetime), string(allocate.SpillLargest), methodILP}
			if _, err := highs.New(); errors.Is(err, highs.ErrUnavailable) {
				methods[2] = methodSearch
			}
			if given("method") {
				methods = []string{method.value}
			}
			return a.spills(cmd, *asJSON, methods, capacity.value, *out)
		}
		answer := allocateJSON{File: file, Method: method.value, Buffers: len(p.Buffers)}
		room := allocate.NoLimit
		if !*minimize {
			answer.Capacity, room = &capacity.value, capacity.value
		}
		begin := time.Now()
		sol, err := a.solve(method.value, room)
		if err != nil {
			return err
		}
		show.end()
		answer.Seconds = time.Since(begin).Seconds()
		answer.Status, answer.Bound = sol.Status.String(), sol.Bound
		if sol.Offsets != nil {
			answer.Peak = &sol.Peak
		}
		if sol.Status == milp.Infeasible && !*minimize {
			answer.Overfull = overfull(p, capacity.value)
		}
		if *out != "" && sol.Status.HasValues() {
			if answer.Out, err = writePlacement(*out, p, sol.Offsets); err != nil {
				return err
			}
		}
		if err := emit(cmd, *asJSON, answer, func(b *bytes.Buffer) { writeAllocation(b, answer, *out) }); err != nil {
			return err
		}
		return cmd.Context().Err() // what is known has been told
	}
	return cmd
}

func writeAllocation(b *bytes.Buffer, a allocateJSON, out string) {
	row(b, "file", "%s, %s", printable(a.File), plural(a.Buffers, "buffer"))
	row(b, "method", "%s, %s", a.Method, duration(a.Seconds))
	row(b, "status", "%s", a.Status)
	if a.Capacity != nil {
		row(b, "capacity", "%d", *a.Capacity)
	}
	if a.Peak != nil {
		row(b, "peak", "%d", *a.Peak)
	}
	row(b, "bound", "%d", a.Bound)
	if o := a.Overfull; o != nil {
		row(b, "reason", "in [%d, %d) %s in use are %s too many: %s", o.Lower, o.Upper, plural(len(o.Buffers), "buffer"), plural(int(o.Missing), "byte"), printable(firstOf(o.Buffers, reasonNames)))
	}
	if a.Out != nil {
		row(b, "written", "%s", printable(*a.Out))
	} else if out != "" {
		row(b, "written", "nothing: there is no placement to write")
	}
}

// reasonNames is how many names a reason lists.
const reasonNames = 8

// firstOf lists at most n names, and says how many more there are.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

func writePlacement(path string, p *allocate.Problem, offsets []int64) (*string, error) {
	var b bytes.Buffer
	if err := allocate.WriteCSV(&b, p, offsets); err != nil {
		return nil, err
	}
	return &path, replaceFile(path, b.Bytes())
}

// allocator runs the methods on one problem.
type allocator struct {
	ctx   context.Context
	p     *allocate.Problem
	limit time.Duration
	show  *status
}

// solve finds a placement within room, or of the least peak if that is
// memory.NoLimit.
func (a *allocator) solve(method string, room int64) (*allocate.Solution, error) {
	opts := allocate.Options{TimeLimit: a.limit, Progress: a.show.solve(method, decimal)}
	switch method {
	case methodSearch, methodILP:
		var err error
		if opts.Start, err = a.start(); err != nil {
			return nil, err
		}
	default:
		return a.byRule(allocate.Rule(method), room)
	}
	var solver milp.Solver
	if method == methodILP {
		var err error
		if solver, err = highs.New(); err != nil {
			return nil, err
		}
	}
	switch {
	case method == methodILP && room == allocate.NoLimit:
		return allocate.MinimizeILP(a.ctx, a.p, solver, opts)
	case method == methodILP:
		return allocate.FitILP(a.ctx, a.p, room, solver, opts)
	case room == allocate.NoLimit:
		return allocate.Minimize(a.ctx, a.p, opts)
	}
	return allocate.Fit(a.ctx, a.p, room, opts)
}

// start is the best placement by a rule, nil if fixed offsets allow none.
func (a *allocator) start() ([]int64, error) {
	var best []int64
	for _, rule := range allocate.Rules() {
		offsets, err := allocate.Place(a.p, rule)
		switch {
		case errors.Is(err, allocate.ErrClash):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if best == nil || a.p.Peak(offsets) < a.p.Peak(best) {
			best = offsets
		}
	}
	return best, nil
}

func (a *allocator) byRule(rule allocate.Rule, room int64) (*allocate.Solution, error) {
	sol := &allocate.Solution{Bound: a.p.Bound()}
	offsets, err := allocate.Place(a.p, rule)
	switch {
	case errors.Is(err, allocate.ErrClash):
		sol.Status = milp.Infeasible
		return sol, nil
	case err != nil:
		return nil, err
	}
	if err := allocate.Check(a.p, allocate.NoLimit, offsets); err != nil {
		return nil, err
	}
	sol.Offsets, sol.Peak = offsets, a.p.Peak(offsets)
	switch {
	case sol.Bound > room:
		sol.Status, sol.Offsets = milp.Infeasible, nil
	case sol.Peak > room:
		sol.Status = milp.Limit
	case sol.Peak == sol.Bound:
		sol.Status = milp.Optimal
	default:
		sol.Status = milp.Feasible
	}
	return sol, nil
}

// spills compares choices of what to spill, and writes the last one's placement.
func (a *allocator) spills(cmd *cobra.Command, asJSON bool, methods []string, capacity int64, out string) error {
	answer := spillChoicesJSON{File: a.p.Name, Buffers: len(a.p.Buffers), Capacity: capacity, Spills: []spillChoiceJSON{}}
	var kept *allocate.Problem
	var offsets []int64
	var start []bool // the best choice so far that has offsets
	for _, method := range methods {
		begin := time.Now()
		sol, placed, err := a.spill(method, capacity, start)
		if err != nil {
			return err
		}
		s := spillChoiceJSON{Method: method, Status: sol.Status.String(), Bound: sol.Bound, Spilled: []string{}, Placement: placed.Status.String()}
		kept, offsets = nil, nil
		if sol.Spilled != nil {
			s.Moved = &sol.Cost
			for i, out := range sol.Spilled {
				if out {
					s.Spilled = append(s.Spilled, a.p.Buffers[i].ID)
				}
			}
			kept, _ = allocate.Keep(a.p, sol.Spilled)
			offsets = placed.Offsets
			if offsets != nil && (start == nil || sol.Cost < allocate.SpillCost(a.p, start)) {
				start = sol.Spilled
			}
		}
		s.Seconds = time.Since(begin).Seconds()
		answer.Spills = append(answer.Spills, s)
	}
	a.show.end()
	// What is proven of the optimum holds for the rules' choices, too.
	bound := int64(0)
	for _, s := range answer.Spills {
		bound = max(bound, s.Bound)
	}
	for i := range answer.Spills {
		s := &answer.Spills[i]
		if s.Bound = bound; s.Moved != nil && *s.Moved == bound && s.Placement != milp.Infeasible.String() && s.Placement != milp.Limit.String() {
			s.Status = milp.Optimal.String()
		}
	}
	if out != "" && offsets != nil {
		var err error
		if answer.Out, err = writePlacement(out, kept, offsets); err != nil {
			return err
		}
	}
	err := emit(cmd, asJSON, answer, func(b *bytes.Buffer) {
		var rows [][]string
		for _, s := range answer.Spills {
			moved := "-"
			if s.Moved != nil {
				moved = fmt.Sprint(*s.Moved)
			}
			rows = append(rows, []string{s.Method, s.Status, fmt.Sprint(len(s.Spilled)), moved, fmt.Sprint(s.Bound), s.Placement, duration(s.Seconds)})
		}
		writeTable(b, "llrrrlr", []string{"method", "status", "spilled", "bytes moved", "bound", "placement", "time"}, rows)
		if answer.Out != nil {
			fmt.Fprintf(b, "\n%s: %s\n", printable(*answer.Out), plural(len(kept.Buffers), "buffer"))
		} else if out != "" {
			b.WriteString("\nnothing is written: there is no placement\n")
		}
	})
	if err != nil {
		return err
	}
	return a.ctx.Err()
}

// spill chooses by one method and places what stays. The exact ones begin with
// start, if there is one.
func (a *allocator) spill(method string, capacity int64, start []bool) (*allocate.SpillSolution, *allocate.Solution, error) {
	opts := allocate.SpillOptions{TimeLimit: a.limit, Place: true, PlaceNodes: placeNodes, Start: start, Progress: a.show.solve(method, decimal)}
	var sol *allocate.SpillSolution
	var err error
	switch method {
	case methodSearch:
		sol, err = allocate.Spill(a.ctx, a.p, capacity, opts)
	case methodILP:
		solver, missing := highs.New()
		if missing != nil {
			return nil, nil, missing
		}
		sol, err = allocate.SpillILP(a.ctx, a.p, capacity, solver, opts)
	default:
		var spilled []bool
		if spilled, err = allocate.SpillByRule(a.p, capacity, allocate.SpillRule(method)); err != nil {
			return nil, nil, err
		}
		kept, _ := allocate.Keep(a.p, spilled)
		placed, err := allocate.Fit(a.ctx, kept, capacity, allocate.Options{TimeLimit: a.limit, MaxNodes: placeNodes})
		return &allocate.SpillSolution{Status: milp.Feasible, Spilled: spilled, Cost: allocate.SpillCost(a.p, spilled)}, placed, err
	}
	if err != nil {
		return nil, nil, err
	}
	if sol.Offsets == nil {
		return sol, &allocate.Solution{Status: milp.Limit}, nil
	}
	return sol, &allocate.Solution{Status: milp.Feasible, Offsets: slices.DeleteFunc(slices.Clone(sol.Offsets), func(o int64) bool { return o < 0 })}, nil
}
