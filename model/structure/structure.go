package structure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/schedule"
)

// noTensor is the entry or exit of a block that has none.
const noTensor model.TensorID = -1

// Network is a graph with its layers, blocks and stages.
type Network struct {
	Graph  *model.Graph
	Layers []schedule.Layer // in execution order
	// LiveBytes has the bytes of all live activations for each layer.
	LiveBytes []int64
	Blocks    []Block // in execution order; they partition the layers
	Types     []Type  // in the order of their first blocks
	Stages    []Stage // in execution order; they partition the blocks
}

// Block is a run of layers between two cuts.
type Block struct {
	First, End  int // layers, half-open
	Entry, Exit model.TensorID
	Type        int // index into Network.Types
	Stage       int // index into Network.Stages
	// Composite: the block has at least two matrix operators.
	Composite bool
	Use       Use
}

// Type is a class of isomorphic blocks.
type Type struct {
	Name  string `json:"type"`  // A, B, ..., Z, AA, ...
	Count int    `json:"count"` // blocks of this type
}

// Part says where in the network a stage is.
type Part uint8

// The parts.
const (
	Stem Part = iota
	Body
	Head
)

// Stage is a run of blocks whose results have the same size.
type Stage struct {
	Name       string // "stem", "stage 1", ..., "head"
	Part       Part
	First, End int            // blocks, half-open
	Exit       model.TensorID // of the last block
	Use        Use
}

// Use is the memory and work of a run of layers.
type Use struct {
	Layers    int
	Operators int
	// PeakBytes is the largest live set while one of the layers runs; what others keep alive counts too.
	PeakBytes int64
	// SumBytes adds up all activations that the layers write for others.
	SumBytes int64
	// Params are the learned parameters that no layer before has read.
	Params, ParamBytes int64
	MACs               int64
	// largest is the largest activation that the layers write for others, or NoTensor.
	Largest model.TensorID
}

// Find finds the structure of a finished graph whose operators run in this order.
// Operators that the order leaves out are not seen.
func Find(g *model.Graph, order []model.OpID) *Network {
	n := &Network{Graph: g, Layers: schedule.Layers(g, order)}
	if len(n.Layers) == 0 {
		return n
	}
	f := newFinder(n)
	n.LiveBytes = f.liveBytes()
	n.Blocks = f.twins(f.fold(f.attach(f.regions())))
	for i := range n.Blocks {
		b := &n.Blocks[i]
		b.Composite = f.matrices(*b) > 1
	}
	n.nameTypes(f)
	n.findStages(f)
	uses := f.layerUses()
	for i := range n.Blocks {
		b := &n.Blocks[i]
		b.Use = n.sum(uses[b.First:b.End])
	}
	for i := range n.Stages {
		s := &n.Stages[i]
		s.Use = n.sum(uses[n.Blocks[s.First].First:n.Blocks[s.End-1].End])
		s.Exit = n.Blocks[s.End-1].Exit
	}
	return n
}

// Total is the use of all layers.
func (n *Network) Total() Use {
	list := make([]Use, len(n.Stages))
	for i, s := range n.Stages {
		list[i] = s.Use
	}
	return n.sum(list)
}

// finder is the state of Find.
type finder struct {
	*Network
	flow    []bool // by tensor: belongs to the data flow
	at      []int  // by operator: its layer, or -1
	lastUse []int  // by tensor: the last layer that reads it, or -1
	// lastSource is the last layer where data flow begins. Before it no tensor carries all.
	lastSource int
	types      map[string]int
}

func newFinder(n *Network) *finder {
	g := n.Graph
	f := &finder{Network: n, flow: make([]bool, len(g.Tensors)), at: slices.Repeat([]int{-1}, len(g.Ops)),
		lastUse: slices.Repeat([]int{-1}, len(g.Tensors)), types: map[string]int{}}
	for i, l := range n.Layers {
		for _, id := range l.Ops {
			f.at[id] = i
			for _, t := range g.Op(id).Inputs {
				f.lastUse[t] = i
			}
		}
	}
	fromInput := make([]bool, len(g.Tensors))
	for _, op := range g.Ops { // in topological order
		product, flows, learned, input := op.Class() == model.MatrixClass, false, false, false
		for _, id := range op.Inputs {
			t := g.Tensor(id)
			product = product && t.Role != model.Constant
			flows = flows || f.flow[id]
			learned = learned || t.Learned
			input = input || t.Role == model.Input || fromInput[id]
		}
		source := input && !flows && (product || learned)
		for _, id := range op.Outputs {
			fromInput[id] = input
			f.flow[id] = flows || source
		}
		if source {
			f.lastSource = max(f.lastSource, f.at[op.ID])
		}
	}
	return f
}

// regions cuts the layers wherever one tensor of the data flow goes over.
func (f *finder) regions() []Block {
	type event struct{ begin, end []model.TensorID }
	events := make([]event, len(f.Layers))
	for i, l := range f.Layers {
		for _, t := range l.Outputs {
			if f.flow[t] && f.lastUse[t] > i {
				events[i].begin = append(events[i].begin, t)
				events[f.lastUse[t]].end = append(events[f.lastUse[t]].end, t)
			}
		}
	}
	var list []Block
	var carried []model.TensorID
	first, entry := 0, noTensor
	for i := range f.Layers {
		carried = slices.DeleteFunc(carried, func(t model.TensorID) bool { return slices.Contains(events[i].end, t) })
		carried = append(carried, events[i].begin...)
		switch {
		case i == len(f.Layers)-1:
			list = append(list, Block{First: first, End: i + 1, Entry: entry, Exit: f.result(first)})
		case len(carried) == 1 && i >= f.lastSource && f.flows(first, i+1):
			list = append(list, Block{First: first, End: i + 1, Entry: entry, Exit: carried[0]})
			first, entry = i+1, carried[0]
		}
	}
	return list
}

// flows reports whether any layer of a run belongs to the data flow. What only
// prepares a mask goes with the layers that read it.
func (f *finder) flows(first, end int) bool {
	return slices.ContainsFunc(f.Layers[first:end], func(l schedule.Layer) bool {
		return slices.ContainsFunc(l.Ops, func(id model.OpID) bool {
			return slices.ContainsFunc(f.Graph.Op(id).Outputs, func(t model.TensorID) bool { return f.flow[t] })
		})
	})
}

// result is the last tensor that leaves the layers from first to the end, or NoTensor.
func (f *finder) result(first int) model.TensorID {
	for i := len(f.Layers) - 1; i >= first; i-- {
		if out := f.Layers[i].Outputs; len(out) > 0 {
			return out[len(out)-1]
		}
	}
	return noTensor
}

func (f *finder) shape(t model.TensorID) model.Shape {
	if t == noTensor {
		return nil
	}
	return f.Graph.Tensor(t).Shape
}

func (f *finder) keepsShape(entry, exit model.TensorID) bool {
	return entry != noTensor && exit != noTensor && f.shape(entry).Equal(f.shape(exit))
}

// matrices counts the matrix operators of a block.
func (f *finder) matrices(b Block) int {
	n := 0
	for _, l := range f.Layers[b.First:b.End] {
		for _, id := range l.Ops {
			if f.Graph.Op(id).Class() == model.MatrixClass {
				n++
			}
		}
	}
	return n
}

// typesOf returns the type of each block.
func (f *finder) typesOf(blocks []Block) []int {
	list := make([]int, len(blocks))
	for i, b := range blocks {
		s := f.signature(b)
		t, ok := f.types[s]
		if !ok {
			t = len(f.types)
			f.types[s] = t
		}
		list[i] = t
	}
	return list
}

// join makes one block of several in a row.
func join(blocks []Block) Block {
	b, last := blocks[0], blocks[len(blocks)-1]
	b.End, b.Exit = last.End, last.Exit
	return b
}

// attach is rule 1: auxiliaries join the block before them, one after the other.
func (f *finder) attach(blocks []Block) []Block {
	for {
		joined := f.attachOnce(blocks)
		if len(joined) == len(blocks) {
			return blocks
		}
		blocks = joined
	}
}

func (f *finder) attachOnce(blocks []Block) []Block {
	types := f.typesOf(blocks)
	const undecided, none = -1, -2
	follower := slices.Repeat([]int{undecided}, len(f.types))
	for i := range blocks {
		next := none
		if i+1 < len(blocks) {
			if b := blocks[i+1]; b.End-b.First == 1 && f.matrices(b) == 0 && f.keepsShape(b.Entry, b.Exit) {
				next = types[i+1]
			}
		}
		if t := types[i]; follower[t] == undecided || follower[t] == next {
			follower[t] = next
		} else {
			follower[t] = none
		}
	}
	var list []Block
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		if follower[types[i]] != none {
			b = join(blocks[i : i+2])
			i++
		}
		list = append(list, b)
	}
	return list
}

// longestPeriod bounds the blocks that fold takes for one: enough for any repeated
// component, and keeps networks of thousands of layers fast.
const longestPeriod = 64

// fold is rule 2: of all sequences that repeat, the first, and of those the shortest, becomes a block.
func (f *finder) fold(blocks []Block) []Block {
	types := f.typesOf(blocks)
	var list []Block
	for i := 0; i < len(blocks); {
		period, times := f.repeats(blocks, types, i)
		if times < 2 {
			list = append(list, blocks[i])
			i++
			continue
		}
		for ; times > 0; times-- {
			list = append(list, join(blocks[i:i+period]))
			i += period
		}
	}
	return list
}

// repeats finds the shortest sequence of different blocks that stands at i at least twice.
func (f *finder) repeats(blocks []Block, types []int, i int) (period, times int) {
	// A run of one type has no period above one.
	for p := 2; p <= longestPeriod && i+2*p <= len(blocks); p++ {
		w := types[i : i+p]
		if !slices.Equal(w, types[i+p:i+2*p]) || !f.keepsShape(blocks[i].Entry, blocks[i+p-1].Exit) {
			continue
		}
		if !slices.ContainsFunc(w, func(t int) bool { return t != w[0] }) {
			return 0, 0
		}
		times = 2
		for j := i + 2*p; j+p <= len(blocks) && slices.Equal(w, types[j:j+p]); j += p {
			times++
		}
		return p, times
	}
	return 0, 0
}

// sort is the key by which rule 3 compares layers.
type sort struct {
	kind           model.Kind
	window         bool
	grouped, depth bool
}

func (f *finder) sorts(b Block) []sort {
	var list []sort
	for _, l := range f.Layers[b.First:b.End] {
		op := f.Graph.Op(l.Anchor)
		s := sort{kind: op.Kind}
		if op.Kind == "Conv" || op.Kind == "ConvTranspose" {
			w := f.shape(op.Inputs[1])
			s.window = w[2:].Elements() > 1
			s.grouped = op.Attr.Group > 1
			s.depth = s.grouped && op.Attr.Group == f.shape(op.Inputs[0])[1]
		}
		list = append(list, s)
	}
	return list
}

// twins is rule 3.
func (f *finder) twins(blocks []Block) []Block {
	var patterns [][]sort
	sorts := make([][]sort, len(blocks))
	for i, b := range blocks {
		s := f.sorts(b)
		sorts[i] = s
		varied := slices.ContainsFunc(s, func(x sort) bool { return x != s[0] })
		known := slices.ContainsFunc(patterns, func(p []sort) bool { return slices.Equal(p, s) })
		if varied && !known && f.matrices(b) > 1 {
			patterns = append(patterns, s)
		}
	}
	// Where several begin, the longest wins.
	slices.SortStableFunc(patterns, func(a, b []sort) int { return len(b) - len(a) })
	var list []Block
	for i := 0; i < len(blocks); {
		n := 1
		for _, p := range patterns {
			if k := covers(sorts[i:], p); k > 1 {
				n = k
				break
			}
		}
		list = append(list, join(blocks[i:i+n]))
		i += n
	}
	return list
}

// covers counts the lists that make up the pattern exactly; 0: they do not.
func covers(lists [][]sort, pattern []sort) int {
	for i, s := range lists {
		if len(s) > len(pattern) || !slices.Equal(s, pattern[:len(s)]) {
			return 0
		}
		pattern = pattern[len(s):]
		if len(pattern) == 0 {
			return i + 1
		}
	}
	return 0
}

func (n *Network) nameTypes(f *finder) {
	index := map[int]int{}
	for i, t := range f.typesOf(n.Blocks) {
		k, ok := index[t]
		if !ok {
			k = len(n.Types)
			index[t] = k
			n.Types = append(n.Types, Type{Name: letters(k)})
		}
		n.Types[k].Count++
		n.Blocks[i].Type = k
	}
}

// letters numbers with letters: A to Z, AA, AB, ...
func letters(i int) string {
	name := ""
	for i++; i > 0; i = (i - 1) / 26 {
		name = string(rune('A'+(i-1)%26)) + name
	}
	return name
}

// image reports whether a tensor has spatial extents.
func (f *finder) image(t model.TensorID) bool {
	s := f.shape(t)
	return len(s) >= 4 && s[2:].Elements() > 1
}

// sized is the size of a block's result that makes a stage.
func (f *finder) sized(t model.TensorID) string {
	s := f.shape(t)
	switch {
	case f.image(t):
		return fmt.Sprint("image ", s[2:])
	case len(s) >= 4:
		return "vector"
	case len(s) > 1:
		return fmt.Sprint(s[1:])
	}
	return fmt.Sprint(s)
}

// changes reports whether block i has another size of result than the one before.
func (f *finder) changes(i int) bool {
	return i == 0 || f.sized(f.Blocks[i-1].Exit) != f.sized(f.Blocks[i].Exit)
}

func (n *Network) findStages(f *finder) {
	bodyFirst, bodyEnd := f.body()
	add := func(part Part, name string, first, end int) {
		if first == end {
			return
		}
		for i := first; i < end; i++ {
			n.Blocks[i].Stage = len(n.Stages)
		}
		n.Stages = append(n.Stages, Stage{Name: name, Part: part, First: first, End: end})
	}
	add(Stem, "stem", 0, bodyFirst)
	number, first, works := 0, bodyFirst, false
	for i := bodyFirst; i < bodyEnd; i++ {
		works = works || f.matrices(n.Blocks[i]) > 0
		last := i+1 == bodyEnd
		if last || works && f.changes(i+1) {
			number++
			add(Body, fmt.Sprintf("stage %d", number), first, i+1)
			first, works = i+1, false
		}
	}
	add(Head, "head", bodyEnd, len(n.Blocks))
}

// body returns the blocks between stem and head.
func (f *finder) body() (first, end int) {
	n := len(f.Blocks)
	composite := func(b Block) bool { return b.Composite }
	firstComposite := slices.IndexFunc(f.Blocks, composite)
	if firstComposite < 0 {
		// The head follows the last image, and takes what stands before it and does no work.
		for end = n; end > 0 && !f.image(f.Blocks[end-1].Exit); end-- {
		}
		for end > 0 && end < n && f.matrices(f.Blocks[end-1]) == 0 {
			end--
		}
		end = cmp.Or(end, n)
		return 0, end
	}
	for i := range firstComposite {
		if f.changes(i) {
			first = i + 1
		}
	}
	lastComposite := n - 1
	for !f.Blocks[lastComposite].Composite {
		lastComposite--
	}
	for end = lastComposite + 1; end < n && !f.changes(end); end++ {
	}
	return first, end
}

// liveBytes follows the activations over the layers.
func (f *finder) liveBytes() []int64 {
	g := f.Graph
	n := len(f.Layers)
	delta := make([]int64, n+1)
	for _, t := range g.Tensors {
		if t.Role == model.Constant {
			continue
		}
		begin, end := 0, f.lastUse[t.ID]
		if t.Producer != model.NoOp {
			begin = f.at[t.Producer]
			// Within a layer it is never whole.
			if begin < 0 || end == begin && !g.IsOutput(t.ID) {
				continue
			}
		}
		if g.IsOutput(t.ID) {
			end = n - 1
		}
		if end < begin { // nothing reads it
			if t.Producer == model.NoOp {
				continue
			}
			end = begin
		}
		delta[begin] += t.Bytes()
		delta[end+1] -= t.Bytes()
	}
	live := make([]int64, n)
	sum := int64(0)
	for i := range live {
		sum += delta[i]
		live[i] = sum
	}
	return live
}

// layerUses returns what each layer takes.
func (f *finder) layerUses() []Use {
	g := f.Graph
	read := make([]bool, len(g.Tensors))
	list := make([]Use, len(f.Layers))
	for i, l := range f.Layers {
		u := Use{Layers: 1, Operators: len(l.Ops), PeakBytes: f.LiveBytes[i], Largest: noTensor}
		for _, t := range l.Outputs {
			x := g.Tensor(t)
			u.SumBytes += x.Bytes()
			if u.Largest == noTensor || x.Bytes() > g.Tensor(u.Largest).Bytes() {
				u.Largest = t
			}
		}
		for _, id := range l.Constants {
			if t := g.Tensor(id); t.Learned && !read[id] {
				read[id] = true
				u.Params += t.Shape.Elements()
				u.ParamBytes += t.Bytes()
			}
		}
		for _, id := range l.Ops {
			u.MACs += g.Work(g.Op(id), nil).MACs
		}
		list[i] = u
	}
	return list
}

// sum combines what several runs of layers take. Of tensors of the same size the first counts as the largest.
func (n *Network) sum(list []Use) Use {
	s := Use{Largest: noTensor}
	for _, u := range list {
		s.Layers += u.Layers
		s.Operators += u.Operators
		s.PeakBytes = max(s.PeakBytes, u.PeakBytes)
		s.SumBytes += u.SumBytes
		s.Params += u.Params
		s.ParamBytes += u.ParamBytes
		s.MACs += u.MACs
		if u.Largest != noTensor && (s.Largest == noTensor ||
			n.Graph.Tensor(u.Largest).Bytes() > n.Graph.Tensor(s.Largest).Bytes()) {
			s.Largest = u.Largest
		}
	}
	return s
}
