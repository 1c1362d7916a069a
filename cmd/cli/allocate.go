package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/allocate"
	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/internal/safefile"
)

// maxPlan bounds files of memory plans.
const maxPlan = 64 << 20

// placeNodes bounds the search of --spill for the offsets of what stays: a second or two for some hundred buffers.
const placeNodes = 100_000

func newAllocate() *cobra.Command {
	cmd := command("solve allocate")
	cmd.Args = oneArg("FILE.csv", "give the path of a file of buffers, as MiniMalloc reads them")
	cmd.ValidArgsFunction = completeFile("csv")
	methods := allocate.Methods()
	for _, m := range allocate.SpillMethods() {
		if !hasMethod(methods, m.Name) {
			m.Description += " (--spill)"
			methods = append(methods, m)
		}
	}
	f := &fileSolver{addSolver(cmd, methods, "`file` to write with the offsets found"),
		cmd.Flags().String("start", "", "placement `file` to start from (written by -o)"), new(uint32), &outFile{}}
	capacity := addNumber(cmd, "capacity", 0, 0, "bytes of the memory")
	cmd.Flags().Lookup("capacity").DefValue = ""
	minimize := cmd.Flags().Bool("minimize", false, "find the least capacity that suffices")
	spill := cmd.Flags().Bool("spill", false, "choose what leaves the memory if not all fits")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, given := args[0], cmd.Flags().Changed
		switch {
		case !given("capacity") && !*minimize:
			return usagef("the capacity is missing: give --capacity N, or --minimize for the least one")
		case *spill && *minimize:
			return usagef("--spill and --minimize exclude each other: with the least capacity that suffices nothing is spilled")
		case *spill && !hasMethod(allocate.SpillMethods(), f.method.value):
			return usagef("--method %s does not say what to spill, expected longest-lifetime, largest-first, ilp or search",
				f.method.value)
		case !*spill && !hasMethod(allocate.Methods(), f.method.value):
			return usagef("--method %s says what to spill and not where: give --spill", f.method.value)
		case *spill && given("start"):
			return usagef("--start is not for --spill")
		}
		p := try(allocate.ReadCSV(file, try(safefile.Read(file))))
		if *spill {
			return f.spills(cmd, p, capacity.value)
		}
		answer := placement{File: file}
		answer.Result = solveFile(cmd, f, func(file string) ([]int64, error) { return loadOffsets(file, p), nil },
			func(ctx context.Context, method string, opts allocate.Options) (*allocate.Result, error) {
				switch {
				case !*minimize:
					return allocate.Solve(ctx, p, capacity.value, method, opts)
				case given("capacity"):
					return allocate.Tighten(ctx, p, capacity.value, method, opts)
				}
				return allocate.Solve(ctx, p, allocate.NoLimit, method, opts)
			})
		if f.out.name != "" && answer.Status.HasValues() {
			answer.Out = try(writePlacement(f.out.name, p, answer.Offsets))
		}
		return finish(cmd, answer, func(b *bytes.Buffer) { answer.write(b, f.out.name) }, nil)
	}
	return cmd
}

// hasMethod reports whether there is a method of a name.
func hasMethod(methods []solve.Method, name string) bool {
	return slices.ContainsFunc(methods, func(m solve.Method) bool { return m.Name == name })
}

// loadOffsets reads where a file places the buffers of p.
func loadOffsets(file string, p *allocate.Problem) []int64 {
	placed := try(allocate.ReadCSV(file, try(safefile.ReadUpTo(file, maxPlan))))
	at := map[string]*int64{}
	for _, b := range placed.Buffers {
		at[b.ID] = b.Offset
	}
	offsets := make([]int64, len(p.Buffers))
	for i, b := range p.Buffers {
		if at[b.ID] == nil {
			check(fmt.Errorf("%s: buffer %q has no offset, expected one for each buffer of %s", file, b.ID, p.Name))
		}
		offsets[i] = *at[b.ID]
	}
	return offsets
}

// spills compares choices of what leaves the memory: by the method given, or by the rules and an exact one.
func (f *solverFlags) spills(cmd *cobra.Command, p *allocate.Problem, capacity int64) error {
	show := newStatus(cmd, *f.quiet)
	defer show.end()
	opts := allocate.SpillOptions{Place: true, PlaceNodes: placeNodes}
	opts.TimeLimit, opts.WorkLimit, opts.Progress = f.timeLimit(cmd), *f.program.work, show.solve("spill", decimal)
	methods := []string{string(allocate.SpillLongestLifetime), string(allocate.SpillLargest), "ilp"}
	given := cmd.Flags().Changed("method")
	if given {
		methods = []string{f.method.value}
	}
	var err error
	opts.Solver, err = solverFor(allocate.SpillMethods(), methods[len(methods)-1])
	switch {
	case errors.Is(err, highs.ErrUnavailable) && !given:
		methods[len(methods)-1] = "search"
	case err != nil:
		return err
	}
	all := try(allocate.CompareSpills(cmd.Context(), p, capacity, methods, opts))
	show.end()
	return writeSpills(cmd, p, capacity, all, f.out.name)
}

// A placement is an answer of 'solve allocate', and the file that has it. Other solvers' answers have the same fields.
type placement struct {
	File string `json:"file"`
	*allocate.Result
	Out *string `json:"out"` // null: nothing was written
}

func (a placement) write(b *bytes.Buffer, out string) {
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
		row(b, "reason", "in [%d, %d) %s in use are %s too many: %s", o.Lower, o.Upper, plural(len(o.Buffers), "buffer"),
			plural(int(o.MissingBytes), "byte"), printable(firstOf(o.Buffers, reasonNames)))
	}
	if a.Out != nil {
		row(b, "written", "%s", printable(*a.Out))
	} else if out != "" {
		row(b, "written", "nothing: there is no placement to write")
	}
}

// reasonNames is the number of names a reason lists.
const reasonNames = 8

// firstOf lists at most n names, and says how many more there are.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

func writePlacement(path string, p *allocate.Problem, offsets []int64) (*string, error) {
	_, err := writeFile(path, func(w io.Writer) error { return allocate.WriteCSV(w, p, offsets) })
	return &path, err
}

// writeSpills prints choices of what to spill, and writes the last one's placement.
func writeSpills(cmd *cobra.Command, p *allocate.Problem, capacity int64, all []*allocate.SpillResult,
	out string) error {
	answer := struct {
		File     string                  `json:"file"`
		Buffers  int                     `json:"buffers"`
		Capacity int64                   `json:"capacity"`
		Spills   []*allocate.SpillResult `json:"spills"`
		Out      *string                 `json:"out"`
	}{File: p.Name, Buffers: len(p.Buffers), Capacity: capacity, Spills: all}
	last, kept := all[len(all)-1], 0
	if out != "" && last.Offsets != nil {
		rest, offsets := last.Kept(p)
		kept = len(rest.Buffers)
		answer.Out = try(writePlacement(out, rest, offsets))
	}
	return finish(cmd, answer, func(b *bytes.Buffer) {
		list(b, "", "<method|<status|spilled|bytes moved|bound|<placement|time", all,
			func(_ int, s *allocate.SpillResult) []any {
				moved := "-"
				if s.Spilled != nil {
					moved = fmt.Sprint(s.Cost)
				}
				return []any{s.Method, s.Status, len(s.Names), moved, s.Bound, s.Placement, duration(s.Seconds)}
			})
		if answer.Out != nil {
			fmt.Fprintf(b, "\n%s: %s\n", printable(*answer.Out), plural(kept, "buffer"))
		} else if out != "" {
			b.WriteString("\nnothing is written: there is no placement\n")
		}
	}, nil)
}
