package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/systems/llm"
	"github.com/dsasched/dsasched/systems/llm/experts"
)

func init() {
	addOfSystem("solve", newExperts)
	addOfSystem("export", newExportRoutings)
}

func newExperts() *cobra.Command {
	cmd := command("solve experts")
	cmd.Args = oneArg("ROUTINGS.csv", "give the path of a file, such as 'dsasched export routings' writes")
	cmd.ValidArgsFunction = completeFile("csv")
	f := addSolver(cmd, experts.Methods(), "`file` to write the JSON to as well")
	mixture := addMixture(cmd)
	dtype := addNumbers(cmd)
	chips := addChips(cmd, "a chip's experts")
	worst := cmd.Flags().Bool("worst", false, "make the longest scenario least, and not the mean")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec, recipe, err := chips.open()
		if err != nil {
			return err
		}
		t, err := model.ParseDType(dtype.value)
		if err != nil {
			return err
		}
		m, err := zoo.OpenMixture(mixture.value, t)
		if err != nil {
			return err
		}
		data, err := safefile.Read(args[0])
		if err != nil {
			return err
		}
		routings, err := experts.ReadRoutings(args[0], data)
		if err != nil {
			return err
		}
		if n := len(routings.Tokens[0]); int64(n) != m.Experts() {
			return fmt.Errorf("%s: line 1: found %d experts, expected the %d of %s", args[0], n, m.Experts(), m.Name)
		}
		show, opts, err := solverOptions[*experts.Plan](cmd, f)
		if err != nil {
			return err
		}
		defer show.end()
		list, err := llm.PlaceExperts(cmd.Context(), m, spec, routings,
			[]llm.Placing{{Method: f.method.value, Worst: *worst}}, recipe, opts)
		if err != nil {
			return err
		}
		a := &list[0]
		show.end()
		a.DType = dtype.value
		return finish(cmd, *f.asJSON, a, func(b *bytes.Buffer) { writePlaced(b, a) }, f.out.writeJSON(a, "  "))
	}
	return cmd
}

func addMixture(cmd *cobra.Command) *choice {
	c := &choice{value: zoo.Mixtures()[0], kind: "MODEL", words: zoo.Mixtures()}
	addChoice(cmd, c, "model", "whose layer: "+strings.Join(c.words, ", "))
	return c
}

// shownScenarios are printed, the longest ones.
const shownScenarios = 8

func writePlaced(b *bytes.Buffer, a *llm.Placed) {
	row(b, "layer", "%s (%s) on %s of %s, %s", a.Model, a.DType, plural(int(a.Chips), "chip"), printable(a.Hardware),
		plural(len(a.Scenarios), "scenario"))
	row(b, "method", "%s", a.Method)
	row(b, "status", "%s, %s by the formulas (bound %s)", a.Status, duration(a.Objective), duration(a.Bound))
	if a.Stop != milp.Complete.String() {
		row(b, "stopped by", "%s", a.Stop)
	}
	var kernels []string
	for _, n := range a.Kernels {
		kernels = append(kernels, fmt.Sprint(n))
	}
	row(b, "kernels", "of %s tokens", strings.Join(kernels, " and "))
	row(b, "mean", "%s, of any plan at least %s", duration(a.Mean), duration(a.MeanBound))
	row(b, "longest", "%s, of any plan at least %s", duration(a.Longest), duration(a.LongestBound))
	row(b, "simulated", "%s with different work, by %s", plural(a.Simulated, "chip"), a.Variant)
	b.WriteByte('\n')
	var rows [][]string
	for d, own := range a.Experts {
		var words []string
		for _, e := range own {
			words = append(words, fmt.Sprint(e))
		}
		rows = append(rows, []string{fmt.Sprint(d), strings.Join(words, " ")})
	}
	writeTable(b, "rl", []string{"chip", "experts"}, rows)
	order := make([]int, len(a.Scenarios))
	for s := range order {
		order[s] = s
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(a.Scenarios[y].Seconds, a.Scenarios[x].Seconds) })
	rows = nil
	for _, s := range order[:min(len(order), shownScenarios)] {
		o := a.Scenarios[s]
		rows = append(rows, []string{fmt.Sprint(s + 1), fmt.Sprint(o.Weight), duration(o.Seconds), duration(o.Exchange),
			duration(o.Formula), duration(o.Bound)})
	}
	b.WriteByte('\n')
	writeTable(b, "rrrrrr", []string{"scenario", "weight", "time", "exchanges", "by formula", "at least"}, rows)
}

type routingsJSON struct {
	File      string `json:"file"`
	Model     string `json:"model"`
	Source    string `json:"source"`
	Scenarios int64  `json:"scenarios"`
	Experts   int64  `json:"experts"`
	Tokens    int64  `json:"tokens"`
	Seed      uint64 `json:"seed"`
}

func newExportRoutings() *cobra.Command {
	cmd := command("export routings")
	cmd.Args = noArgs
	asJSON := addJSON(cmd)
	mixture := addMixture(cmd)
	scenarios, tokens := &number{value: 16, min: 1}, &number{value: 512, min: 1}
	cmd.Flags().Var(scenarios, "scenarios", "how many")
	cmd.Flags().Var(tokens, "tokens", "tokens of each")
	skew := cmd.Flags().Float64("skew", 1, "standard deviation of the logarithm of an expert's share; 0: all are alike")
	seed := cmd.Flags().Uint64("seed", 1, "of all that is random")
	out := addFile(cmd, "o out", "`file` to write")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		m, err := zoo.OpenMixture(mixture.value, model.F16)
		if err != nil {
			return err
		}
		r, err := experts.Draw(scenarios.value, m.Experts(), tokens.value, m.Chosen(), *skew, *seed)
		if err != nil {
			return usageError{err}
		}
		a := routingsJSON{out.name, m.Name, m.Source, scenarios.value, m.Experts(), tokens.value, *seed}
		return out.writeText(cmd, *asJSON, "the routings themselves go", experts.WriteRoutings(r), a, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s: %s of %d tokens, %d of %d experts each\n", printable(a.File),
				plural(int(a.Scenarios), "scenario"), a.Tokens, m.Chosen(), a.Experts)
		})
	}
	return cmd
}
