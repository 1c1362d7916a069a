package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/heuristics/astitch"
	"github.com/dsasched/dsasched/heuristics/graphturbo"
	"github.com/dsasched/dsasched/heuristics/tvm"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// Groups are the kernels that a network is cut into, each with the way in which it is split.
type Groups []Cut

// A Cut is a group with the way in which it is split.
type Cut struct {
	Ops   []model.OpID
	Split schedule.SplitInfo
}

// A piece names a group whose instances are all of a kind, whatever groups stand beside it.
type piece struct {
	first, last model.OpID
	ops         int
	dim         int
	factor      int64
}

func (c *Cut) piece() piece {
	return piece{c.Ops[0], c.Ops[len(c.Ops)-1], len(c.Ops), c.Split.Dim, c.Split.Factor}
}

func takeGroups(d *Draft, _ bool) Decision {
	var list Groups
	for _, sg := range d.Grouping.Groups {
		list = append(list, Cut{sg.Ops, sg.Split})
	}
	return list
}

// Stage names the row, which holds the split as well.
func (list Groups) Stage() string { return "group" }

// Apply makes the groups.
func (list Groups) Apply(_ context.Context, d *Draft) error {
	d.Grouping, d.Layers = list.grouping(d.Graph), nil
	return nil
}

// Key has the operators and splits.
func (list Groups) Key(b *Key, _ *Decisions) {
	for i := range list {
		c := &list[i]
		b.Add(int64(len(c.Ops)), int64(c.Split.Dim), c.Split.Factor)
		for _, id := range c.Ops {
			b.Add(int64(id))
		}
	}
	b.Add(-1)
}

func (list Groups) grouping(g *model.Graph) *schedule.Grouping {
	gr := &schedule.Grouping{Groups: make([]*schedule.SubGraph, len(list))}
	for k, c := range list {
		sg := &schedule.SubGraph{ID: k, Name: "g" + strconv.Itoa(k), Ops: c.Ops, Split: c.Split}
		sg.Inputs, sg.Outputs = schedule.Boundary(g, c.Ops)
		gr.Groups[k] = sg
	}
	return gr
}

// same reports whether others are the same groups, split in the same way.
func (list Groups) same(others Groups) bool {
	return slices.EqualFunc(list, others, func(a, b Cut) bool { return a.piece() == b.piece() })
}

var unsplitGroups = []Pick{{"split", "none"}}

var layerKernels = Strategy{Name: "layers", Description: "a layer is a kernel", Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = tvm.Group(d.Graph, graphturbo.ExecutionOrder(d.Graph))
		return nil
	}}

var fusedOps = Strategy{Name: "fuse-ops", Description: "operators that TVM's pass FuseOps makes one kernel",
	Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = tvm.GroupOps(d.Graph, graphturbo.ExecutionOrder(d.Graph))
		return nil
	}}

var convPairs = Strategy{Name: "conv-pairs", Description: "a layer is a kernel, or two convolutions are",
	Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		d.Grouping, d.Layers = tvm.PairConvolutions(d.Graph, graphturbo.ExecutionOrder(d.Graph))
		return nil
	}}

var stitchedKernels = Strategy{Name: "stitch", Description: "memory-intensive operators together, as AStitch",
	Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		plan := astitch.Group(d.Graph, graphturbo.ExecutionOrder(d.Graph), nil, d.Machine.Cores)
		d.Grouping, d.Layers = plan.Grouping, plan.Layers
		return nil
	}}

var stitchedOps = Strategy{Name: "stitch-ops", Description: "stitch, of the kernels of fuse-ops", Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error {
		order := graphturbo.ExecutionOrder(d.Graph)
		plan := astitch.Group(d.Graph, order, tvm.FuseOps(d.Graph, order), d.Machine.Cores)
		d.Grouping, d.Layers = plan.Grouping, plan.Layers
		return nil
	}}

var algorithm2 = Strategy{Name: "alg2", Description: "Algorithm 2 of the paper",
	Decide: func(ctx context.Context, d *Draft) (err error) {
		d.Grouping, err = graphturbo.GroupContext(ctx, d.Graph, d.Machine)
		return err
	}}

var algorithm2Divisors = Strategy{Name: "alg2-divisors",
	Description: "alg2 where Eq. (1) compares factors that divide the output",
	Decide: func(ctx context.Context, d *Draft) error {
		d.Machine.Divisors = true
		return algorithm2.Decide(ctx, d)
	}}

const inPlaceGroups = "alg2-in-place"

var algorithm2InPlace = Strategy{Name: inPlaceGroups,
	Description: "alg2 with element-wise operators that overwrite their input",
	Decide: func(ctx context.Context, d *Draft) error {
		d.Machine.InPlace, d.Options.InPlace = true, true
		return algorithm2.Decide(ctx, d)
	}}

const layerGroups = "alg2-layers"

var algorithm2Layers = Strategy{Name: layerGroups,
	Description: "alg2 where tensors inside a layer take no room (4.1)",
	Decide: func(ctx context.Context, d *Draft) error {
		d.Machine.Layers = true
		return algorithm2.Decide(ctx, d)
	}}

// InPlace says whether a recipe has element-wise operators overwrite their input whatever
// Options.InPlace says.
func (r Recipe) InPlace() bool { return r.Pick("group") == inPlaceGroups }

func checkGroups(s *schedule.Schedule) error {
	if s.Grouping == nil {
		return errors.New("there are no groups")
	}
	for _, sg := range s.Grouping.Groups {
		if sg == nil {
			return errors.New("a group is nil")
		}
		if d := sg.SplitDim(); sg.Factor() > 1 && (d < 0 || len(sg.Outputs) == 0 ||
			d >= len(s.Graph.Tensor(sg.Outputs[0]).Shape)) {
			return fmt.Errorf("%s is split in %d along dimension %d, which its output does not have", sg.Name, sg.Factor(), d)
		}
	}
	return schedule.CheckGrouping(s.Graph, s.Grouping)
}

// keepGroups copies the groups so that splitting the copy leaves the original alone.
func keepGroups(to, from *schedule.Schedule) {
	if from.Grouping == nil {
		return
	}
	groups := *from.Grouping
	groups.Groups = slices.Clone(groups.Groups)
	for i, sg := range groups.Groups {
		if sg != nil {
			again := *sg
			groups.Groups[i] = &again
		}
	}
	to.Grouping, to.Layers = &groups, from.Layers
}

const apartGroups = "alg2-apart"

var algorithm2Apart = Strategy{Name: apartGroups,
	Description: "alg2, on the graph of strategy one where that has group normalisations in passes",
	Decide: func(ctx context.Context, d *Draft) error {
		splits := splitsNorm(d.Graph, d.Spec)
		if !d.Options.Lines &&
			slices.ContainsFunc(d.Graph.Ops, func(op *model.Op) bool { return op.Kind == "GroupNorm" && splits(op) }) {
			if err := d.rewrite(false); err != nil {
				return err
			}
		}
		return algorithm2.Decide(ctx, d)
	}}

var oneKernel = Strategy{Name: "one", Description: "the whole network is a kernel", Sets: unsplitGroups,
	Decide: func(_ context.Context, d *Draft) error { return d.unite(false) }}

var slicedKernel = Strategy{Name: "one-sliced",
	Description: "one, with hidden columns of feed-forwards in slices where they fit neither the L1s nor the LLB",
	Sets:        unsplitGroups,
	Decide:      func(_ context.Context, d *Draft) error { return d.unite(true) }}

// unite makes the whole network a kernel.
func (d *Draft) unite(sliced bool) error {
	if err := d.rewrite(sliced); err != nil {
		return err
	}
	g := d.Graph
	layers := layersWith(g, d.Options.Lines)
	sg := &schedule.SubGraph{Name: "all", Split: schedule.SplitInfo{Ops: len(g.Ops), Factor: 1, Dim: -1}}
	for _, l := range layers {
		sg.Ops = append(sg.Ops, l.Ops...)
	}
	for _, t := range g.Inputs {
		if len(g.Tensor(t).Consumers) > 0 {
			sg.Inputs = append(sg.Inputs, t)
		}
	}
	for _, t := range g.Outputs {
		if g.Tensor(t).Producer != model.NoOp {
			sg.Outputs = append(sg.Outputs, t)
		}
	}
	slices.Sort(sg.Inputs)
	slices.Sort(sg.Outputs)
	sg.Inputs, sg.Outputs = slices.Compact(sg.Inputs), slices.Compact(sg.Outputs)
	d.Grouping, d.Layers = &schedule.Grouping{Groups: []*schedule.SubGraph{sg}}, [][]schedule.Layer{layers}
	return nil
}

// layersWith are the layers of a graph, each behind those that it reads of. What is to run together is one, and so are
// light operators whose paths meet, unless layers are to be lines.
func layersWith(g *model.Graph, lines bool) []schedule.Layer {
	order := graphturbo.ExecutionOrder(g)
	switch {
	case lines && len(g.Together) == 0:
		return movedLayers(g, order)
	case len(g.Together) == 0:
		return joinLight(g, movedLayers(g, order))
	}
	var made []schedule.Layer
	of := map[model.OpID]int{}
	for i, ops := range g.Together {
		made = append(made, schedule.NewLayer(g, ops))
		for _, id := range ops {
			of[id] = i
		}
	}
	rest := slices.DeleteFunc(slices.Clone(order), func(id model.OpID) bool { _, ok := of[id]; return ok })
	for _, l := range joinLight(g, movedLayers(g, rest)) {
		for _, id := range l.Ops {
			of[id] = len(made)
		}
		made = append(made, l)
	}
	var layers []schedule.Layer
	done := make([]bool, len(made))
	var visit func(i int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		for _, t := range made[i].Inputs {
			if p := g.Tensor(t).Producer; p != model.NoOp {
				visit(of[p])
			}
		}
		layers = append(layers, made[i])
	}
	for _, id := range order {
		visit(of[id])
	}
	return layers
}

// movedLayers are layers whose operators run tile by tile of their product. The layer of a product on the matrix unit
// ends in front of an operator that moves elements, unless it is a transposition that keeps their order. Reshapes in
// front of it that change the order leave with it. The layer also ends in front of an operator that spreads the results
// over a larger tensor, since each core would need all of them. That operator joins the product of its larger operand,
// if it alone reads it. An attention merges its heads in its own layer: the cores divide whole heads.
func movedLayers(g *model.Graph, ops []model.OpID) (made []schedule.Layer) {
	of := map[model.TensorID]int{} // the layer that makes a result
	for _, l := range schedule.Layers(g, ops) {
		for ops := l.Ops; len(ops) > 0; {
			n := inTiles(g, ops)
			l := schedule.NewLayer(g, ops[:n])
			for _, t := range l.Outputs {
				of[t] = len(made)
			}
			made = append(made, l)
			if ops = ops[n:]; len(ops) == 0 {
				break
			}
			if k := productOf(g, made, of, ops[0]); k >= 0 {
				ops = slices.Concat(made[k].Ops, ops)
				made[k] = schedule.Layer{}
			}
		}
	}
	return slices.DeleteFunc(made, func(l schedule.Layer) bool { return len(l.Ops) == 0 })
}

// inTiles counts the operators at the head of a line that make a layer of [movedLayers].
func inTiles(g *model.Graph, ops []model.OpID) int {
	anchor := g.Op(ops[0])
	if !g.OnMatrixUnit(anchor) {
		return len(ops)
	}
	all := g.Tensor(anchor.Outputs[0]).Shape.Elements()
	turns := func(id model.OpID, class model.Class) bool {
		return anchor.Kind != "Attention" && g.Op(id).Class() == class && !g.KeepsOrder(g.Op(id))
	}
	for n := 1; n < len(ops); n++ {
		if g.Tensor(g.Op(ops[n]).Outputs[0]).Shape.Elements() > all {
			return n
		}
		if turns(ops[n], model.InjectiveClass) {
			for n > 1 && turns(ops[n-1], model.ViewClass) {
				n--
			}
			return n
		}
	}
	return len(ops)
}

// productOf finds the first layer of a product on the matrix unit whose result an element-wise operator alone reads, in
// its own shape; -1: there is none. of has the layer of each result.
func productOf(g *model.Graph, layers []schedule.Layer, of map[model.TensorID]int, id model.OpID) int {
	op, first := g.Op(id), -1
	if op.Class() != model.ElementwiseClass {
		return -1
	}
	for _, t := range op.Inputs {
		k, made := of[t]
		if made && len(layers[k].Outputs) == 1 && g.OnMatrixUnit(g.Op(layers[k].Anchor)) &&
			len(g.Tensor(t).Consumers) == 1 && !g.IsOutput(t) &&
			g.Tensor(t).Shape.Equal(g.Tensor(op.Outputs[0]).Shape) && (first < 0 || k < first) {
			first = k
		}
	}
	return first
}

// joinLight makes one layer of those that have element-wise operators and such as move elements alone, where no other
// reads what is between them: paths that part and meet again, as where positions turn queries.
func joinLight(g *model.Graph, layers []schedule.Layer) (joined []schedule.Layer) {
	light := func(l *schedule.Layer) bool {
		return !slices.ContainsFunc(l.Ops, func(id model.OpID) bool {
			op := g.Op(id)
			switch op.Class() {
			case model.ElementwiseClass, model.InjectiveClass, model.ViewClass:
				return op.Kind == "Gather"
			}
			return true
		})
	}
	in := map[model.OpID]int{} // the layer that a light operator is in
	parts := make([][]int, len(layers))
	for i, l := range slices.Backward(layers) {
		at := i
		if light(&l) {
			at = onlyReader(g, &l, in, i)
			for _, id := range l.Ops {
				in[id] = at
			}
		}
		parts[at] = append(parts[at], i)
	}
	for _, list := range parts {
		var ops []model.OpID
		for _, i := range slices.Backward(list) {
			ops = append(ops, layers[i].Ops...)
		}
		if ops != nil {
			joined = append(joined, schedule.NewLayer(g, ops))
		}
	}
	return joined
}

// onlyReader is the light layer that alone reads what a layer makes, or the layer itself.
func onlyReader(g *model.Graph, l *schedule.Layer, in map[model.OpID]int, self int) int {
	at := -1
	for _, t := range l.Outputs {
		for _, reader := range g.Tensor(t).Consumers {
			to, there := in[reader]
			if !there || at >= 0 && at != to {
				return self
			}
			at = to
		}
		if g.IsOutput(t) {
			return self
		}
	}
	return max(at, self)
}

// toward returns the operators among some, in execution order, on which a tensor depends.
func toward(g *model.Graph, ops []model.OpID, t model.TensorID) (list []model.OpID) {
	needed := map[model.TensorID]bool{t: true}
	for _, id := range slices.Backward(ops) {
		if op := g.Op(id); slices.ContainsFunc(op.Outputs, func(o model.TensorID) bool { return needed[o] }) {
			list = append(list, id)
			for _, in := range op.Inputs {
				needed[in] = true
			}
		}
	}
	slices.Reverse(list)
	return list
}

// Idle reports whether a recipe has nothing that others have not: it is for slices, and a graph needs none, or takes
// room from weights, and these have a memory of their own, or values had better be in an LLB. The one whose weights
// pass all of their room has a rule for spills of its own, too.
func (r Recipe) Idle(g *model.Graph, spec *hardware.Spec) bool {
	switch buffer.named(r.Pick(buffer.Name)) {
	case schedule.WeightsPass:
		return false
	case schedule.WeightsTwelfth:
		return spec.GB != nil || spec.LBWeightBytes > 0
	}
	return r.Pick("group") == slicedKernel.Name && SlicesOf(g, spec) == nil
}
