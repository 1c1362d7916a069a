package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// A Draft is a schedule in the making, of one chunk on one cluster. [Stage].Writes says what each stage writes into it.
type Draft struct {
	*schedule.Schedule
	Recipe  Recipe
	Options Options
	Cost    *cost.Model           // of commands on the machine, the caller's own included
	Machine schedule.SplitOptions // the machine as Algorithm 1 sees it
	Outputs schedule.Level        // where a layer's output should stay
	Between schedule.Level        // where results pass from kernel to kernel, if not where Outputs and scopes say (L1)
	Lower   lower.Options         // what the kernel generator may do

	state   state
	refine  func(*schedule.Schedule) // of the recipe's binding
	values  map[string]Decision      // of settings, by stage; never written to
	answers map[string]Solved        // by stage
	method  string                   // the strategy at work
	// alternatives are other answers of the exact strategy at work, among which the simulator chooses.
	alternatives []*schedule.Schedule
	// again is Continue with another answer, for strategies, which can't know the table of stages that they stand in.
	again func(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt run) (*Draft, error)
	rest  Recipe   // by greedy rules what the draft's decides exactly, or by trials
	later Recipe   // by greedy rules what the draft's decides by trials
	key   draftKey // of rest, where a decision is exact
	exact int      // the number of its stages that the recipe decides exactly
}

// Tell adds a note to the result.
func (d *Draft) Tell(note string) { d.state.tell(note) }

// Solve records the summary of an exact strategy's answer to a stage.
func (d *Draft) Solve(stage string, answer Solved) {
	// A method that is complete within its budget says its gap in the answer.
	if (answer.Status == milp.Feasible || answer.Status == milp.Limit) && answer.Stop != milp.Complete {
		d.state.tell(fmt.Sprintf("%s by %s: not proven to be the best (%s): %.4g %s, bound %.4g", stage,
			cmp.Or(answer.Method, d.method), answer.Stop, answer.Objective, answer.Unit, answer.Bound))
	}
	if d.answers == nil {
		d.answers = map[string]Solved{}
	}
	d.answers[stage] = answer
}

// Solved summarises the answer of an exact strategy.
type Solved struct {
	solve.Outcome
	Unit   string // of objective and bound
	Method string // if not the strategy at work
	Note   string
	// Measured is of an answer by measured prices, Judged of one that was simulated beside the greedy decision.
	Measured *Measured
	Judged   *Judged
	Program  *milp.Effort // of an integer program
}

// Answer returns the summary of a stage's answer, if its strategy is an exact one.
func (d *Draft) Answer(stage string) (a Solved, exact bool) {
	a, exact = d.answers[stage]
	return a, exact
}

// newDraft copies what the stages up to number last have decided.
func newDraft(from *schedule.Schedule, last int, r Recipe, opt run) (*Draft, error) {
	m, err := cost.NewWith(from.Spec, opt.Cost)
	if err != nil {
		return nil, err
	}
	opt.Uneven = opt.Uneven.Alternatives()[0]
	s := &schedule.Schedule{Graph: from.Graph, Spec: from.Spec, Whole: from.Whole, Busy: cmp.Or(opt.active, from.Busy),
		Slices: opt.Uneven.Slices(), Counting: r.Strategy("group").Counting, Memo: opt.memo}
	if opt.tiles != nil {
		s.Attentions = &opt.tiles.attentions
	}
	for i, st := range r.table() {
		if i <= last && st.keep != nil {
			st.keep(s, from)
		}
	}
	return &Draft{Schedule: s, refine: r.Strategy("bind").Refine, Recipe: r, Options: opt.Options, state: opt.state,
		Cost: m, Machine: splitOptions(s, m, opt.Options), Lower: lower.Options{Cost: opt.Cost}}, nil
}

// splitOptions are the machine and the switches as Algorithm 1 sees them.
func splitOptions(s *schedule.Schedule, m *cost.Model, opt Options) schedule.SplitOptions {
	spec, cores, dt := s.Spec, schedule.CoresWithL1(s.Spec), lower.ComputeType(s.Graph)
	split := schedule.SplitOptions{
		L1Bytes: schedule.DataBytes(spec) * cores, Cores: cores, InPlace: opt.InPlace, Uneven: opt.Uneven.Alternatives()[0],
		Counting: s.Counting, MACsPerSecond: m.PeakMACsPerSecond(dt) / float64(spec.Clusters),
		VectorOpsPerSecond: m.PeakVectorOpsPerSecond(dt) / float64(spec.Clusters),
		LLBBytesPerSecond:  spec.DDR.BandwidthBytesPerSecond / float64(spec.Clusters),
	}
	if spec.LLB != nil {
		split.LLBBytesPerSecond = spec.LLB.BandwidthBytesPerSecond
	}
	return split
}

// SplitOptions returns the options of Algorithm 1 when a schedule was made.
func (o Options) SplitOptions(s *schedule.Schedule) (schedule.SplitOptions, error) {
	m, err := o.CostModel(s)
	if err != nil {
		return schedule.SplitOptions{}, err
	}
	return splitOptions(s, m, o), nil
}

// CostModel prices commands on a schedule's machine.
func (o Options) CostModel(s *schedule.Schedule) (*cost.Model, error) {
	return cost.NewWith(s.Spec, o.Cost)
}

// instance names an instance as group/index.
func (d *Draft) instance(i int) string {
	if i < 0 {
		return "input"
	}
	inst := &d.Instances.Instances[i]
	return fmt.Sprintf("%s/%d", d.Grouping.Groups[inst.Group].Name, inst.Index)
}

func (d *Draft) names(ops []model.OpID) string {
	words := make([]string, len(ops))
	for i, id := range ops {
		words[i] = d.Graph.Op(id).Name
	}
	return strings.Join(words, " ")
}

func (d *Draft) valueText(v *schedule.Value) string {
	return fmt.Sprintf("%s of %s", d.Graph.Tensor(v.Tensor).Name, d.instance(v.Instance))
}
