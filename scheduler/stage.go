package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Stage is a decision of the pipeline, with the strategies that can make it.
type Stage struct {
	Name        string // also of a flag, and of a key in sweeps
	Description string
	Writes      string // what its strategies write into a draft, in words of Markdown; "": it follows
	// Strategies are the rows to choose from; a recipe that names none has the first.
	// Where there is one row, the stage does what follows from the others.
	Strategies []Strategy

	keep  func(to, from *schedule.Schedule) // copies the decision; nil: it is always made anew
	check func(d *Draft) error              // judges what the stage leaves behind; nil: nothing can be wrong
	// hopeless says, before a strategy decides, that another schedule is known to be no slower; nil: none is.
	hopeless func(d *Draft, s Strategy) bool
	// judged: an exact decision goes to the simulator, beside others nearly as good and the greedy one. That of a stage
	// that is always made anew goes there when the draft is whole.
	judged bool
	// limit refuses what the stage leaves behind if it is too large, even where checks are left out; nil: nothing is.
	limit func(d *Draft) error

	// What follows is of decisions that a search changes. take is the decision of a finished schedule, as far as the
	// recipe's own strategies do not make it again at once, or all of it; nil: row heldBy has it, or it follows.
	take      func(d *Draft, all bool) Decision
	heldBy    string                              // an earlier row, which decides this one, too
	settings  [][]func(*Decisions) *Decisions     // changes of decisions: of each setting all values
	moves     []Move                              // other changes that a search tries,
	unlessNil bool                                // but not where the decision is nil
	read      func(data []byte) (Decision, error) // of a schedule file, as encoding/json has written it
	text      func(b *strings.Builder, d *Draft)  // a line for each thing decided; nil: the JSON of take
	inPlan    bool                                // the schedule file has the decision in words of its own
	own       bool                                // a caller's
}

// by is a check that looks at the schedule only.
func by(check func(*schedule.Schedule) error) func(*Draft) error {
	return func(d *Draft) error { return check(d.Schedule) }
}

// A Strategy is a method for one stage's decision.
type Strategy struct {
	Name        string
	Alias       string // another name, if any
	Description string
	NeedsSolver bool // Options.Solver must be set
	Exact       bool // looks for an optimum
	Trials      bool // simulates kernels or chunks, many times
	Common      bool // of row group: the groups are the same for all recipes that agree on Options
	Completes   bool // of row split: leaves splits that groups have
	Even        bool // of row bind: pieces differ whatever Options.Uneven says
	Tiles       bool // of row nest: takes long, so nothing that is slower already gets here
	// Places is how a strategy of row spill makes the memory plan; nil: in another way.
	Places   *Placing
	Counting schedule.Counting // of row group: how its groups and their orders count footprints and factors
	// Again decides in place of Decide on the schedules of a search; nil: these have the loops of the generator's rules.
	Again func(ctx context.Context, d *Draft) error
	// Idle, of row rewrite, reports that other strategies make the same of a graph; nil: they do not.
	Idle func(g *model.Graph, spec *hardware.Spec) bool
	// Sets are picks that a recipe gets with the strategy unless others are asked for.
	// Needs are picks, one of which there must be at each stage that they name.
	Sets, Needs []Pick
	// Decide reads what earlier stages have left in the draft, and writes its decision.
	Decide func(ctx context.Context, d *Draft) error
	// Refine, if there is one, changes the steps that follow from bindings and scopes before the memory plan is made.
	Refine func(s *schedule.Schedule)
}

func choices(list []Stage) []Stage {
	return slices.DeleteFunc(slices.Clone(list), func(st Stage) bool { return len(st.Strategies) < 2 })
}

// position is the number of a stage in the table.
func (r Recipe) position(name string) (int, error) {
	if _, err := r.stage(name); err != nil {
		return 0, err
	}
	return slices.IndexFunc(r.table(), func(st Stage) bool { return st.Name == name }), nil
}

func lookupStage(list []Stage, name string) (Stage, error) {
	var names []string
	for _, st := range list {
		if st.Name == name {
			return st, nil
		}
		names = append(names, st.Name)
	}
	return Stage{}, fmt.Errorf("unknown stage %q%s", name, suggest.Expected(name, names))
}

// Lookup finds a strategy by its name or alias.
func (st Stage) Lookup(name string) (Strategy, error) {
	if len(st.Strategies) == 0 {
		return Strategy{}, fmt.Errorf("%s is %q: no strategies are known, expected package recipes in the program", st.Name,
			name)
	}
	var names, known []string
	for _, s := range st.Strategies {
		if name == s.Name || name != "" && name == s.Alias {
			return s, nil
		}
		names = append(names, s.Name)
		if known = append(known, s.Name); s.Alias != "" {
			known = append(known, s.Alias)
		}
	}
	return Strategy{}, fmt.Errorf("%s is %q%s", st.Name, name,
		suggest.HintOr(name, known, ", expected one of "+suggest.Some(names)))
}

// A Move changes one decision of a schedule.
type Move struct {
	Name   string
	Weight float64                // how much likelier it is drawn than a move of weight 1, at first
	Make   func(*Site) *Decisions // nil: that schedule can't be changed so
}

// Placing holds the rules of a memory plan.
type Placing struct {
	Rule    string // which value is spilled first from a full memory
	Over    bool   // results may take the place of what their layer reads
	Needed  bool   // nothing leaves for the sake of weights that would pass again
	Chosen  bool   // Spilled leave
	Spilled []int  // numbers of values
}

// Moves lists the moves of the stage's row.
func (st Stage) Moves() []Move { return st.moves }

// Settings lists the changes that the settings of the row allow: of each setting all values.
func (st Stage) Settings() [][]func(*Decisions) *Decisions { return st.settings }
