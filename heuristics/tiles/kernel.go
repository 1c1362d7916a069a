package tiles

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/scheduler"
)

var oneKernel = scheduler.Strategy{Name: "one", Description: "the whole network is a kernel",
	Sets: []scheduler.Pick{{Stage: "rewrite", Strategy: "parts"}, {Stage: "split", Strategy: "none"}}, Decide: unite}

// unite makes the whole network a kernel.
func unite(_ context.Context, d *scheduler.Draft) error {
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
	order := schedule.ExecutionOrder(g)
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
