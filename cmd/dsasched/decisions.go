package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/highs"
	"github.com/dsasched/dsasched/scheduler"
)

// decisionFlags are a flag for each decision of the scheduler, which puts another
// strategy in the place of the variant's.
type decisionFlags struct{ flags []*strategyFlag }

type strategyFlag struct {
	decision scheduler.Stage
	value    string // "": the variant's own
}

func (f *strategyFlag) Type() string   { return "STRATEGY" }
func (f *strategyFlag) String() string { return f.value }

func (f *strategyFlag) Set(text string) error {
	s, err := f.decision.Lookup(text)
	if err != nil {
		return notOne(text, each(f.decision.Strategies, func(s scheduler.Strategy) string { return s.Name }))
	}
	f.value = s.Name
	return nil
}

// addDecisions adds the flags; help and completion come from the decisions' rows. For the decisions in except the
// command has another flag of that name.
func addDecisions(cmd *cobra.Command, except ...string) *decisionFlags {
	d := &decisionFlags{}
	for _, decision := range scheduler.Choices() {
		if slices.Contains(except, decision.Name) {
			continue
		}
		f := &strategyFlag{decision: decision}
		d.flags = append(d.flags, f)
		words := each(decision.Strategies, func(s scheduler.Strategy) cobra.Completion {
			return cobra.CompletionWithDesc(s.Name, s.Description)
		})
		cmd.Flags().Var(f, decision.Name, decision.Description+": "+strings.Join(plain(words), ", "))
		completeFlag(cmd, decision.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return d
}

func (d *decisionFlags) picks() []scheduler.Pick {
	var picks []scheduler.Pick
	for _, f := range d.flags {
		if f.value != "" {
			picks = append(picks, scheduler.Pick{Stage: f.decision.Name, Strategy: f.value})
		}
	}
	return picks
}

// apply replaces the decisions of a variant that the flags name.
func (d *decisionFlags) apply(v scheduler.Recipe, opt scheduler.Options) (scheduler.Recipe, scheduler.Options, error) {
	opt = withSolver(opt)
	v, err := scheduler.Replace(v, opt, d.picks()...)
	return v, opt, explainSolver(err)
}

// withSolver gives options the solver of this build, if it has one.
func withSolver(opt scheduler.Options) scheduler.Options {
	if s, err := highs.New(); err == nil {
		opt.Solver = s
	}
	return opt
}

// explainSolver says why there is no solver, if that is what is wrong, and makes
// other mistakes in the choice of strategies usage errors.
func explainSolver(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, scheduler.ErrNoSolver) {
		if _, missing := highs.New(); missing != nil {
			return fmt.Errorf("%w: %w", err, missing)
		}
	}
	return usageError{err}
}
