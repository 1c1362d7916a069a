package bound

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/simplify"
)

// The units that work side by side. Where special functions run on the vector unit's hardware, all is vector's.
const (
	matrix = iota
	vector
	special
	numUnits
)

var unitNames = [numUnits]string{"matrix unit", "vector unit", "special unit"}

// work is the least work of one cluster for a number of batch elements of a network.
type work struct {
	g *model.Graph
	// ops are seconds of each unit for each operator, over all instances.
	ops [][numUnits]float64
	// weights are bytes of learned and other constants that must come from the DDR once, by tensor; rows and ends those
	// of rows looked up and of the network's inputs and outputs, which pass for each chunk.
	weights       []float64
	rows, in, out float64
	// grown is the growth of the weights in bytes where the share is one chunk.
	grown float64
	// pieces and inputs are bytes that no load brings together with others: of a constant or table, of which a
	// load brings a quarter of the LLB at most, and of an input, of which it brings three quarters.
	pieces, inputs []float64
	need           []box
	turns          []*turned // what is needed beside need, where that is no box
	apart          bool      // what several readers need of a tensor is not put together
	// peak is the time of all products with every cell of the arrays at work, rowsOnly with
	// their edges idle, but without a loss between blocks.
	peak, rowsOnly float64
	links          [][]link
	reads          [][]reading
	may            layers
	hidden         []bool                // by operator: it makes hidden columns of a feed-forward in slices
	sliced         []bool                // by operator: it is the last product of such a feed-forward
	oneUnit        bool                  // vector work and special functions take turns
	uneven         []bool                // a core's part may be less than a share
	onKinds        [][][numUnits]float64 // as ops, on each kind of core of several; infinite where it can't run
	tail           []float64             // seconds behind an operator's products, or of more of them in its place
	// next operator that all paths pass, whether each ends its layer, who reads it without gaps
	next    []int
	led     []int // how many lead to each by next, itself among them: those have places behind its own
	place   []int
	ends    []bool
	readers [][]int
	row     *series // if it has been asked for
}

// measure prices a network's operators on a machine, for n batch elements, in the layers that there may be, with
// feed-forwards of cut in any number of slices; small are of fewer, 1 and 2.
func measure(g *model.Graph, m *cost.Model, n int64, may layers, cut []bool, apart bool, small ...*work) (*work,
	error) {
	w := &work{g: g, ops: make([][numUnits]float64, len(g.Ops)), weights: make([]float64, len(g.Tensors)),
		apart: apart, may: may, oneUnit: true, hidden: make([]bool, len(g.Ops)), sliced: make([]bool, len(g.Ops))}
	list := simplify.FeedForwards(g)
	for k, f := range list {
		if cut != nil && (len(list) != len(cut) || cut[k]) { // another graph: any of them
			w.sliced[f.Down] = true
			for _, id := range f.Ops {
				w.hidden[id] = true
			}
		}
	}
	w.reads = readings(g, w.sliced)
	w.need, w.turns = needs(g, apart)
	pricers := map[*cost.Model]*pricer{}
	for _, k := range m.Kinds() {
		pricers[k] = &pricer{g: g, m: k, least: map[lanes]float64{}, need: w.need}
		w.oneUnit = w.oneUnit && k.SharedVector()
	}
	for i, op := range g.Ops {
		kinds := running(m, g, op)
		if len(kinds) == 0 {
			return nil, fmt.Errorf("operator %q, which is %v, runs on no kind of core of %s", op.Name, op.Class(), m.Spec().Name)
		}
		peak, rows := math.Inf(1), math.Inf(1)
		on := slices.Repeat([][numUnits]float64{all(math.Inf(1))}, len(m.Kinds()))
		for k, kind := range kinds {
			p := pricers[kind]
			p.peak, p.rows = 0, 0
			t := p.operator(op, func(t model.TensorID) model.Region {
				if w.need[t].elements() == 0 {
					return nil
				}
				r := make(model.Region, len(w.need[t]))
				for d, s := range w.need[t] {
					r[d].Hi = s.size()
				}
				return r
			})
			on[slices.Index(m.Kinds(), kind)] = t
			perUnit := float64(kind.Units(hardware.Matrix, max(1, schedule.CoresWithL1(kind.Spec())))) * kind.Spec().ClockHz
			peak, rows = math.Min(peak, p.peak/perUnit), math.Min(rows, p.rows/perUnit)
			for u := range t {
				if k == 0 || t[u] < w.ops[i][u] {
					w.ops[i][u] = t[u]
				}
			}
		}
		w.peak, w.rowsOnly = w.peak+peak, w.rowsOnly+rows
		w.onKinds = append(w.onKinds, on)
	}
	w.link()
	for k, s := range small {
		if err := w.uniform(n, s, int64(k)+1); err != nil {
			return nil, err
		}
	}
	w.bytes(w.leastBytes(n, small))
	w.shape()
	w.commands(m)
	return w, nil
}

// running are the kinds of core that run an operator.
func running(m *cost.Model, g *model.Graph, op *model.Op) (list []*cost.Model) {
	for _, k := range m.Kinds() {
		if !k.Spec().Mixed() || schedule.Runs(k.Spec().CoreTypes, g, []model.OpID{op.ID}) {
			list = append(list, k)
		}
	}
	return list
}

// commands counts what each product takes by being some commands: of each, what it takes beside its
// blocks, and behind the last, of so many equal parts, its part of the vector work that may
// stand in the product's layer, that of the light operators behind it as well. Of several kinds of core each figure is
// that of the one where it is least, since chunks may run on any.
func (w *work) commands(m *cost.Model) {
	w.tail = make([]float64, len(w.ops))
	for i, op := range w.g.Ops {
		t := &w.ops[i]
		if t[matrix] == 0 {
			continue
		}
		least, behind, each, cores := math.Inf(1), math.Inf(1), math.Inf(1), int64(1)
		for _, k := range running(m, w.g, op) {
			product, simple, sp := k.Fills()
			clock := k.Spec().ClockHz
			row, load, gap := k.MatrixRate(w.g.Tensor(op.Inputs[0]).DType)
			least, each = math.Min(least, (product+math.Max(row, load))/clock), math.Min(each, (product-gap)/clock)
			cores = max(cores, schedule.CoresWithL1(k.Spec()))
			behind = math.Min(behind, w.fillBehind(op, simple, sp)/clock)
		}
		t[matrix], w.tail[i] = math.Max(t[matrix], least), behind
		if w.hidden[i] { // products of other slices run beside what is behind the last
			w.tail[i] = 0
			continue
		}
		if op.Kind == "Attention" { // what is behind its last command is the division of a tile
			if !op.Attr.Softmax {
				w.tail[i] = 0
			}
			continue
		}
		behind = 0
		for at := op; ; {
			behind += w.ops[at.ID][vector] + w.ops[at.ID][special]
			out := w.g.Tensor(at.Outputs[0])
			if len(at.Outputs) > 1 || len(out.Consumers) != 1 || w.g.IsOutput(out.ID) || !light(w.g.Op(out.Consumers[0])) {
				break
			}
			at = w.g.Op(out.Consumers[0])
		}
		// Of more pieces than a core has rows some have none, and take no time; then each row has a command.
		rows := float64(w.need[op.Outputs[0]].elements()) / float64(columns(w.g, op)*cores)
		w.tail[i] += math.Min(lastPart(behind, each), math.Max(0, rows-1)*each)
	}
}

// fillBehind is what the last vector command behind a product takes by being one, if there is any; simple and special
// are those of its units.
func (w *work) fillBehind(op *model.Op, simple, special float64) float64 {
	switch v := w.g.Work(op, model.Region{{Hi: 1}}).Vector; {
	case v.Simple+v.Move > 0:
		return simple
	case v.Special > 0:
		return special
	}
	return 0
}

// columns is the number of columns that one of a product's rows has at most.
func columns(g *model.Graph, op *model.Op) int64 {
	d, _ := g.MatrixDims(op, model.Whole(g.Tensor(op.Outputs[0]).Shape))
	return max(1, d.N)
}

// lastPart is the least time of one of n equal parts of some work and of n-1 commands, each of which takes so long.
func lastPart(work, command float64) float64 {
	if work == 0 || command == 0 {
		return 0
	}
	n := math.Max(1, math.Floor(math.Sqrt(work/command)))
	return math.Min(work/n+(n-1)*command, work/(n+1)+n*command)
}

// pricer gives the time of operators.
type pricer struct {
	g     *model.Graph
	m     *cost.Model
	least map[lanes]float64
	need  []box // what is needed of each tensor; nil: the boxes are where they are
	// Of all products so far, cycles of all cores: with every cell of the array at work, and
	// with rows one after the other.
	peak, rows float64
}

type lanes struct {
	class string
	dtype model.DType
}

// operator is a bound on the seconds of each unit of a cluster for an operator of whose
// outputs boxes of these extents are computed, in any number of commands, on any cores.
func (p *pricer) operator(op *model.Op, box func(model.TensorID) model.Region) (t [numUnits]float64) {
	cores := max(1, schedule.CoresWithL1(p.m.Spec()))
	seconds := func(cycles float64, kind hardware.UnitKind) float64 {
		return cycles / float64(p.m.Units(kind, cores)) / p.m.Spec().ClockHz
	}
	if op.Class() == model.ViewClass {
		return t
	}
	var v model.VectorWork
	for k, o := range op.Outputs {
		r := box(o)
		if r.Elements() == 0 {
			continue
		}
		w := p.g.Work(op, r)
		v = v.Add(w.Vector)
		if !p.g.OnMatrixUnit(op) {
			if op.Kind == "ConvTranspose" {
				_, w.MACs = p.g.Transposed(op, p.sets(o, r))
			}
			v.Simple += w.MACs
		} else if k == 0 {
			fill, _, _ := p.m.Fills()
			_, _, gap := p.m.MatrixRate(p.g.Tensor(op.Inputs[0]).DType)
			t[matrix] = seconds(p.product(op, r), hardware.Matrix) + (fill-gap)/p.m.Spec().ClockHz
		}
	}
	dt := p.g.Tensor(op.Outputs[0]).DType
	for _, o := range op.Outputs {
		if other := p.g.Tensor(o).DType; other.Bits() < dt.Bits() {
			dt = other
		}
	}
	t[vector] = seconds(float64(v.Simple)*p.lane(hardware.OpSimple, dt)+float64(v.Move)*p.lane(hardware.OpMove, dt),
		hardware.Vector)
	t[special] = seconds(float64(v.Special)*p.lane(hardware.OpSpecial, dt), hardware.Special)
	if p.m.SharedVector() {
		t[vector], t[special] = t[vector]+t[special], 0
	}
	return t
}

// product is a bound on the sum of the cycles of all commands, over all cores, of a product of
// which a box of the output is computed, without those of one command beside its blocks: rows and blocks
// add up to at least the whole's, however it is cut, since rounding up is subadditive.
func (p *pricer) product(op *model.Op, r model.Region) float64 {
	if op.Kind == "Attention" {
		return p.attention(op, r)
	}
	d, ok := p.g.MatrixDims(op, r)
	if op.Kind == "ConvTranspose" {
		d, _ = p.g.Transposed(op, p.sets(op.Outputs[0], r))
	}
	if !ok {
		return 0
	}
	row, load, gap := p.m.MatrixRate(p.g.Tensor(op.Inputs[0]).DType)
	columns := d.Reps * ceilDiv(d.N, p.m.MatrixCols())
	if op.Attr.Group > 1 {
		// Boxes across the border of groups count as so many groups of equal size.
		columns = max(d.Reps, ceilDiv(r[1].Len(), p.m.MatrixCols()))
	}
	sum := 0.0
	for _, part := range d.Parts() {
		if !p.m.HasMatrix() {
			sum += float64(d.Reps) * float64(part.Rows) * float64(d.N) * float64(part.K) * row
			continue
		}
		passes := float64(columns) * float64(ceilDiv(part.K, p.m.MatrixRows())) // of a row
		p.peak += float64(d.Reps*part.Rows) * row * float64(d.N) * float64(part.K) /
			float64(p.m.MatrixRows()*p.m.MatrixCols())
		p.rows += passes * float64(part.Rows) * row
		sum += passes * (math.Max(float64(part.Rows)*row, float64(part.Count)*load) + float64(part.Count)*gap)
	}
	return sum
}

// sets are the positions of a box of a tensor, at least as many as are needed: where they are known, they themselves.
func (p *pricer) sets(t model.TensorID, r model.Region) [][]model.Interval {
	sets := make([][]model.Interval, len(r))
	for d := range r {
		sets[d] = r[d : d+1]
		if p.need != nil && d != 1 { // of channels the fewest groups
			sets[d] = p.need[t][d]
		}
	}
	return sets
}

// attention is product of both products of an attention. With a causal mask each row passes at least the blocks of the
// keys that it sees; blocks are loaded at least for the row that sees most.
func (p *pricer) attention(op *model.Op, r model.Region) float64 {
	all := p.g.AttentionDims(op, r)
	row, load, gap := p.m.MatrixRate(p.g.Tensor(op.Inputs[0]).DType)
	if all.Products == 0 {
		return 0
	}
	if !p.m.HasMatrix() {
		return float64(all.Seen*(all.Depth+all.Width)) * row
	}
	rows, columns := p.m.MatrixRows(), p.m.MatrixCols()
	blocks := func(keys int64) (n float64) {
		return float64(ceilDiv(keys, columns)*ceilDiv(all.Depth, rows) + ceilDiv(keys, rows)*ceilDiv(all.Width, columns))
	}
	passes, n := 0.0, len(r)
	for i := range r[n-2].Len() {
		one := r.Clone()
		one[n-2] = model.Interval{Lo: r[n-2].Lo + i, Hi: r[n-2].Lo + i + 1}
		d := p.g.AttentionDims(op, one)
		passes += float64(d.Seen/d.Keys) * blocks(d.Keys)
		if !op.Attr.Causal {
			passes *= float64(r[n-2].Len())
			break
		}
	}
	p.peak += float64(all.Seen*(all.Depth+all.Width)) / float64(rows*columns) * row
	p.rows += passes * row
	most := float64(all.Products) * blocks(all.Keys)
	return math.Max(passes*row, most*load) + most*gap
}

// lane is the least time of one operation of the types that may be the widest of a layer
// with dt, of which one that its output has stands for others of equal size.
func (p *pricer) lane(class string, dt model.DType) float64 {
	least, known := p.least[lanes{class, dt}]
	if !known {
		least = p.m.LaneCycles(class, dt)
		for _, t := range p.g.Tensors {
			if t.DType.Bits() >= dt.Bits() && t.Producer != model.NoOp {
				least = math.Min(least, p.m.LaneCycles(class, t.DType))
			}
		}
		p.least[lanes{class, dt}] = least
	}
	return least
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// bytes counts what must cross the DDR's bus, with so many bytes of each constant by its name.
func (w *work) bytes(constants map[string]float64) {
	g := w.g
	for _, t := range g.Tensors {
		n := float64(t.DType.Bytes(w.need[t.ID].elements()))
		if n == 0 {
			continue
		}
		switch {
		case t.Role == model.Input:
			w.in += n
			w.inputs = append(w.inputs, n)
		case t.Role == model.Constant:
			grown := n - constants[t.Name]
			n = constants[t.Name]
			looked, read := 0.0, false
			for _, c := range t.Consumers {
				op := g.Op(c)
				if op.Kind != "Gather" || op.Inputs[0] != t.ID {
					read = true
					continue
				}
				o := op.Outputs[0]
				looked = math.Min(n, looked+float64(t.DType.Bytes(w.need[o].elements())))
			}
			if read {
				w.weights[t.ID] = n
				w.grown += grown
			} else {
				w.rows += looked
				n = looked
			}
			if n > 0 {
				w.pieces = append(w.pieces, n)
			}
		}
	}
	for k, t := range g.Outputs {
		if g.Tensor(t).Producer != model.NoOp && !slices.Contains(g.Outputs[:k], t) {
			w.out += float64(g.Tensor(t).Bytes())
		}
	}
}

// constantBytes has those that are needed of each constant, by name.
func (w *work) constantBytes() map[string]float64 {
	bytes := map[string]float64{}
	for _, t := range w.g.Tensors {
		if t.Role == model.Constant {
			bytes[t.Name] = float64(t.DType.Bytes(w.need[t.ID].elements()))
		}
	}
	return bytes
}

// leastBytes is constantBytes of the chunk of up to n elements that needs least, where small are of so many as
// they stand in the list, from 1 on: nothing of what grows otherwise than by so much for each element.
func (w *work) leastBytes(n int64, small []*work) map[string]float64 {
	least := w.constantBytes()
	var sizes []map[string]float64
	for _, s := range small {
		sizes = append(sizes, s.constantBytes())
	}
	for name, bytes := range least {
		for _, s := range sizes {
			least[name] = math.Min(least[name], s[name])
		}
		if len(sizes) == 2 && bytes-sizes[0][name] != float64(n-1)*(sizes[1][name]-sizes[0][name]) {
			least[name] = 0
		}
	}
	return least
}

// loads is the least number of loads from the DDR: in all, and in front of any of the network's results.
func (w *work) loads(spec *hardware.Spec) (all, first float64) {
	of := func(bytes, quarters float64) float64 { // of the LLB at once
		if spec.LLB == nil {
			return 1
		}
		return math.Ceil(4 * bytes / (quarters * float64(spec.LLB.SizeBytes)))
	}
	for _, bytes := range w.pieces {
		all += of(bytes, 1)
	}
	for _, bytes := range w.inputs {
		all += of(bytes, 3) // operands may gather there
	}
	first = all
	whole := w.whole()
	for _, o := range w.g.Outputs {
		p := w.g.Tensor(o).Producer
		if p == model.NoOp || len(w.g.Op(p).Outputs) > 1 {
			return all, 0
		}
		n, needed := 0.0, whole(int(p), 0, false)
		for t, bytes := range w.weights {
			if bytes > 0 && needed(model.TensorID(t)) {
				n += of(bytes, 1)
			}
		}
		first = math.Min(first, n)
	}
	return all, first
}

func (w *work) weightBytes() float64 {
	sum := 0.0
	for _, n := range w.weights {
		sum += n
	}
	return sum
}
