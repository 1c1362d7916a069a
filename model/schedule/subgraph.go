package schedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// Unsplittable is the factor of a sub-graph that no dimension can split to fit.
const Unsplittable = int64(math.MaxInt64)

// SplitInfo is one element of the paper's SplitInfo (Algorithm 1): how a sub-graph may be split.
type SplitInfo struct {
	Ops    int   // n_d: operators that the dimension splits
	Factor int64 // f_d, dividing the output
	Least  int64 // f_d as Eq. (1) compares it, at most Factor; 0: Factor
	Dim    int   // dimension of the output tensor
	Depth  int   // d: its position in the output's loop nest, 0 the outermost
}

// Compared is the factor that Eq. (1) compares.
func (s SplitInfo) Compared() int64 {
	if s.Least > 0 {
		return s.Least
	}
	return s.Factor
}

// SubGraph is a group of operators that becomes one kernel.
type SubGraph struct {
	ID      int
	Name    string
	Ops     []model.OpID     // in execution order
	Inputs  []model.TensorID // activations from outside, ascending
	Outputs []model.TensorID // tensors read outside, ascending
	// Split is the chosen way to split. Factor Unsplittable means that no
	// dimension makes an instance fit; then there is one instance all the same.
	Split     SplitInfo
	PeakBytes int64 // of the whole sub-graph, unsplit
}

// Factor is the number of instances.
func (s *SubGraph) Factor() int64 {
	if s.Split.Factor == Unsplittable || s.Split.Factor < 1 {
		return 1
	}
	return s.Split.Factor
}

// SplitDim is the dimension that instances divide, or -1 for a single instance.
func (s *SubGraph) SplitDim() int {
	if s.Factor() == 1 {
		return -1
	}
	return s.Split.Dim
}

// Grouping is a partition of the graph's operators into sub-graphs, listed in topological order.
type Grouping struct {
	Groups []*SubGraph
	// Events lists the merges that were made or refused, and by which rule; for explanations only.
	Events []MergeEvent
}

// MergeEvent is one decision of the grouping algorithm.
type MergeEvent struct {
	Round    int      `json:"round"`
	Pattern  string   `json:"pattern"`        // "straight", "diamond", "branch"
	Parts    []string `json:"parts"`          // by their last operators
	Factors  []int64  `json:"factors"`        // of the parts
	Merged   int64    `json:"merged_factor"`  // of the result
	Rule     string   `json:"rule,omitempty"` // that was asked, with the factors that it compared
	Accepted bool     `json:"accepted"`
	Reason   string   `json:"reason,omitempty"` // of a refusal
}

// Boundary computes Inputs and Outputs of a set of operators.
func Boundary(g *model.Graph, ops []model.OpID) (inputs, outputs []model.TensorID) {
	in := make(map[model.OpID]bool, len(ops))
	for _, id := range ops {
		in[id] = true
	}
	seen := map[model.TensorID]bool{}
	for _, id := range ops {
		for _, t := range g.Op(id).Inputs {
			u := g.Tensor(t)
			if u.Role != model.Constant && (u.Producer == model.NoOp || !in[u.Producer]) && !seen[t] {
				seen[t] = true
				inputs = append(inputs, t)
			}
		}
		for _, t := range g.Op(id).Outputs {
			outside := g.IsOutput(t)
			for _, c := range g.Tensor(t).Consumers {
				outside = outside || !in[c]
			}
			if outside {
				outputs = append(outputs, t)
			}
		}
	}
	slices.Sort(inputs)
	slices.Sort(outputs)
	return inputs, outputs
}

// Partition says where the sub-graphs do not partition the operators, or run one before another that it reads.
func (gr *Grouping) Partition(g *model.Graph, say Say) {
	var lists [][]model.OpID
	for _, sg := range gr.Groups {
		lists = append(lists, sg.Ops)
	}
	owner := make([]int, len(g.Ops))
	partition(g, make([]int, len(g.Ops)), owner, 0, lists,
		func(k int) string { return fmt.Sprintf("groups[%d].operators", k) }, say)
	for id, k := range owner {
		if k == 0 {
			say("groups", "operator %d (%s) is in none", id, g.Ops[id].Name)
		}
	}
}

// CheckGrouping verifies that the sub-graphs partition the operators, run in order (every input is made by an earlier
// sub-graph), have correct boundaries, and that each factor leaves something of every output for each instance.
func CheckGrouping(g *model.Graph, gr *Grouping) error {
	if err := first(func(say Say) { gr.Partition(g, say) }); err != nil {
		return err
	}
	for k, sg := range gr.Groups {
		if sg.ID != k {
			return fmt.Errorf("sub-graph %q has ID %d at position %d", sg.Name, sg.ID, k)
		}
		in, out := Boundary(g, sg.Ops)
		if !slices.Equal(in, sg.Inputs) || !slices.Equal(out, sg.Outputs) {
			return fmt.Errorf("sub-graph %q records inputs %v and outputs %v, found %v and %v", sg.Name, sg.Inputs,
				sg.Outputs, in, out)
		}
		if d := sg.SplitDim(); d >= 0 {
			for _, o := range sg.Outputs {
				if n := g.Tensor(o).Shape[d]; model.Pieces(n, sg.Factor()) != sg.Factor() {
					return fmt.Errorf("sub-graph %q: extent %d of %q is not cut into %d pieces, of which the last is the shortest",
						sg.Name, n, g.Tensor(o).Name, sg.Factor())
				}
			}
		}
	}
	return nil
}
