package schedule

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// A Nest is the loop nest in which the cores run a layer: what the kernel generator decides
// by fixed rules for a step without one. All cores run the same nest on their parts.
//
// What a core makes of the output, in the order of memory, is cut into Tiles tiles of rows,
// each into Pieces. Weights of a product are cut into tiles along its columns (its products,
// where there are several) and along its reduction. Text shows the loops.
type Nest struct {
	// Cores is the number of cores that each dimension of the output is spread over; nil: as the step's binding says.
	Cores Binding `json:"cores,omitempty"`
	// Rfactor, if more than one, is the number of cores that make each part of the output together: each
	// adds up its slice of a product's reduction, and the first gathers and adds what they have.
	Rfactor int64 `json:"rfactor,omitempty"`
	// Tiles is the number of tiles of rows. With several, what passes through the L1 does
	// so tile by tile, Depth of which have room at a time.
	Tiles int64 `json:"tiles"`
	Depth int64 `json:"depth"`
	// Stage, if not zero, is a stage in the LLB: inputs from the DDR gather there in so many parts, those of a tile in
	// front of its loads or, with Once, all of them in front of the loops, where they stay for all tiles of rows and
	// columns. Without, each of the parts that they arrive in passes the LLB by itself.
	Stage int64 `json:"stage,omitempty"`
	Once  bool  `json:"once,omitempty"`
	// ColumnsFirst puts the loop over columns outside of that over tiles, so that inputs
	// pass again for each tile of columns, and weights need not.
	ColumnsFirst bool `json:"columns_first,omitempty"`
	// Loads is the number of parts the inputs of a tile arrive in, Pieces how many its rows
	// are computed in, so that units overlap.
	Loads  int64 `json:"loads"`
	Pieces int64 `json:"pieces"`
	// Columns and Reduction are the extents of the tiles of weights; both are empty if the
	// layer has no product, and have one element if its second operand is no constant.
	Columns   []int64 `json:"columns,omitempty"`
	Reduction []int64 `json:"reduction,omitempty"`
	// Group is the number of tiles of weights one load brings from the DDR into the LLB, if more than one.
	Group int64 `json:"group,omitempty"`
	// Stay keeps weights in the L1 from tile to tile of rows; else they pass again.
	Stay bool `json:"stay,omitempty"`
	// Vector is the loop at whose end the vector work behind a product runs, Store that at
	// whose end results leave the L1.
	Vector Attach `json:"vector"`
	Store  Attach `json:"store"`
	// Sums, if not zero, makes the nest a blocked one: both operands of the product pass in tiles of Columns and
	// Reduction, the row operand in tiles of rows and Reduction, Depth of which have room at a time, and Sums tiles of
	// rows x columns are added up in the L1, in 4 bytes a sum. Then the reduction is the innermost loop, vector work
	// and stores are behind the tile of columns, Loads and Pieces are 1, and Stage is how many tiles of the reduction
	// one load brings from the DDR into the LLB (0: each alone), with Once for all tiles at a time. With Rfactor,
	// Reduction cuts each core's slice, and the sums of others have room for one tile.
	Sums int64 `json:"sums,omitempty"`
	// Keep, with Once, counts the first loads of a tile's reduction in a blocked nest, which stay in the LLB; the
	// others come again. 0: all stay.
	Keep int64 `json:"keep,omitempty"`
	// ColumnDepth is the room for tiles of a second operand that is no constant; 0: Depth.
	ColumnDepth int64 `json:"column_depth,omitempty"`
	// Ring is how many bytes of the L1, in front of parameters, the weights of a blocked nest pass; the stage and values
	// have what is in front of them. 0: as many as without a nest.
	Ring int64 `json:"ring,omitempty"`
	// Attention are the loops of an attention, which have no others.
	Attention *AttentionTiles `json:"attention,omitempty"`
}

// Attach is a loop to whose body work is attached.
type Attach uint8

// The loops, from the innermost outward. The tile of columns is the one of a tile of rows.
const (
	AtPiece Attach = iota
	AtColumns
	AtTile
)

var attachNames = []string{"piece", "columns", "tile"}

func (a Attach) String() string { return attachNames[a] }

// MarshalText gives the loop's name.
func (a Attach) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a loop's name.
func (a *Attach) UnmarshalText(text []byte) error {
	i := slices.Index(attachNames, string(text))
	if i < 0 {
		return fmt.Errorf("loop is %q, expected piece, columns or tile", text)
	}
	*a = Attach(i)
	return nil
}

// stageDepth is the number of tiles that have room in a stage unless a nest says otherwise.
const stageDepth = 2

// Depth is the number of tiles of the step that have room in its stage.
func (st *Step) Depth() int64 {
	if st.Nest != nil {
		return st.Nest.Depth
	}
	return stageDepth
}

// Space is the L1 space that a part of the step's stage takes, Needs what all of them take.
func (st *Step) Space(p StagePart) int64 { return p.space(max(1, st.Tiles), st.Depth()) }

func (st *Step) Needs(stage []StagePart) (bytes int64) {
	for _, p := range stage {
		bytes += st.Space(p)
	}
	return bytes
}

// Slices is the number of cores that make each part of the step's output together, see Nest.Rfactor and
// AttentionTiles.Slices.
func (st *Step) Slices() int64 {
	if st.Nest == nil {
		return 1
	}
	if t := st.Nest.Attention; t != nil {
		return t.slices()
	}
	return max(1, st.Nest.Rfactor)
}

// Active is the number of cores that take part in the step.
func (st *Step) Active() int64 { return st.Cores * st.Slices() }

// SlicesOf is the number of slices cores read a tensor in: the step's, if it is the operand of the
// product that the matrix unit's rows come from and nothing else in the layer reads it.
func (s *Schedule) SlicesOf(st *Step, t model.TensorID) int64 {
	layer := &s.Layers[s.Instances.Instances[st.Instance].Group][st.Layer]
	for _, id := range layer.Ops {
		inputs := s.Graph.Op(id).Inputs
		if id == layer.Anchor {
			if inputs[0] != t {
				return 1
			}
			inputs = inputs[1:]
		}
		if slices.Contains(inputs, t) {
			return 1
		}
	}
	return st.Slices()
}

// Follow makes step i run by a nest, in the first room that the values alive in the L1 leave for its stage. A nest
// without cores runs on those of the nest that the step has. The error says how much there is, or what is wrong with
// the binding. The schedule's slices of steps and values change in place, what they refer to does not.
func (s *Schedule) Follow(i int, n *Nest) error { return s.follow(i, n, false) }

// FollowAlone is Follow that leaves the reads of later steps as they are, for a look at step i alone.
func (s *Schedule) FollowAlone(i int, n *Nest) error { return s.follow(i, n, true) }

func (s *Schedule) follow(i int, n *Nest, alone bool) error {
	st := &s.Steps[i]
	if n.Cores == nil && st.Nest != nil && st.Nest.Cores != nil { // its file has them nowhere else
		own := *n
		own.Cores, n = st.Binding, &own
	}
	if n.Cores != nil && !n.Cores.Equal(st.Binding) {
		if err := s.rebind(i, n.Cores, alone); err != nil {
			return err
		}
	}
	was := *st
	if n.Attention != nil {
		if st.Attending == nil {
			return fmt.Errorf("has loops over queries and keys, but the step has no attention")
		}
		if err := s.CheckAttending(st, *n.Attention); err != nil {
			return err
		}
	}
	st.Nest, st.Tiles = n, n.Tiles
	st.StageBytes = st.Needs(s.Staged(st))
	end := s.DataEnd(st)
	if st.StageBytes <= was.StageBytes && was.StageBytes > 0 && st.StageAddress+st.StageBytes <= end {
		return nil
	}
	most := int64(0)
	for _, room := range s.rooms(i, end) {
		if most = max(most, room[1]-room[0]); room[1]-room[0] >= st.StageBytes {
			st.StageAddress = room[0]
			return nil
		}
	}
	need := st.StageBytes
	*st = was
	return fmt.Errorf("tiles %d of %d take %d bytes of the L1, there is room for %d", n.Tiles, n.Depth, need, most)
}

// DataEnd is the address in the L1 at which values and the stage of a step end, and its ring of weights begins.
func (s *Schedule) DataEnd(st *Step) int64 {
	if !st.Nest.Blocked() || st.Nest.Ring == 0 {
		return s.L1Capacity
	}
	return s.L1Capacity + s.RingBytes() - st.Nest.Ring
}

// CheckRing verifies that the ring of weights of a step's blocked nest has place beside the values alive.
func (s *Schedule) CheckRing(st *Step) error {
	switch ring := st.Nest.Ring; {
	case ring == 0:
	case !MovableRing(s.Spec):
		return fmt.Errorf("has a ring of %d bytes for weights, which have a memory of their own", ring)
	case ring < 0 || ring%64 != 0 || ring > s.Shared(st.ID):
		return fmt.Errorf("has a ring of %d bytes for weights, expected a multiple of 64 up to the %d that values leave",
			ring, s.Shared(st.ID))
	}
	return nil
}

// Shared is how many bytes of a core's L1 the stage of step i and its ring of weights may take together; 0: where one
// ends and the other begins is fixed.
func (s *Schedule) Shared(i int) int64 {
	if !MovableRing(s.Spec) {
		return 0
	}
	used := int64(0)
	for v := range s.Near(i) {
		if v.Level == L1 && v.Def <= i && i <= v.Last {
			used = max(used, v.Address+v.CoreBytes)
		}
	}
	return s.L1Capacity + s.RingBytes() - used
}

// rooms returns the free ranges of the L1 up to an address beside the values alive at step i.
func (s *Schedule) rooms(i int, end int64) (list [][2]int64) {
	var used [][2]int64
	for v := range s.Near(i) {
		if v.Level == L1 && v.Def <= i && i <= v.Last {
			used = append(used, [2]int64{v.Address, v.Address + v.CoreBytes})
		}
	}
	slices.SortFunc(used, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	at := int64(0)
	for _, u := range append(used, [2]int64{end, end}) {
		list = append(list, [2]int64{at, u[0]})
		at = max(at, u[1])
	}
	return list
}

// stretch is the number of steps that share a list of values in an index.
const stretch = 64

// Index lets Near answer at once, until undo is called. Levels and lifetimes must not change meanwhile.
func (s *Schedule) Index() (undo func()) {
	was := s.near
	s.near = make([][]int, len(s.Steps)/stretch+1)
	for k := range s.Values {
		if v := &s.Values[k]; v.Level != DDR {
			for at := max(0, v.Def) / stretch; at <= v.Last/stretch && at < len(s.near); at++ {
				s.near[at] = append(s.near[at], k)
			}
		}
	}
	return func() { s.near = was }
}

// Near gives values, in ascending order, among them all that are alive at step i in the L1 or the LLB.
func (s *Schedule) Near(i int) iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		if s.near == nil {
			for k := range s.Values {
				if !yield(&s.Values[k]) {
					return
				}
			}
			return
		}
		for _, k := range s.near[i/stretch] {
			if !yield(&s.Values[k]) {
				return
			}
		}
	}
}

// Room is the most that the stage of step i may take of a core's L1, beside the ring of weights that steps without a
// nest have.
func (s *Schedule) Room(i int) (bytes int64) {
	for _, room := range s.rooms(i, s.L1Capacity) {
		bytes = max(bytes, room[1]-room[0])
	}
	return bytes
}

// Text shows the nest of a layer with this output as people read and edit it:
//
//	cores n:2 h:4
//	rfactor 2                   with two cores for each part, which share its reduction
//	for tile in 4 of 2          4 tiles of rows, room for 2
//	  stage in 1                inputs gather in the LLB; in front of all loops: once
//	  bring in 2
//	  for columns in 64 64      extents of the tiles of weights
//	    for reduction in 288 288
//	      weights               "weights by 2": from the DDR two tiles at a time;
//	                            "weights stay": loaded for the first tile of rows only
//	      for piece in 2
//	        multiply
//	        vector              or behind another loop's body
//	    store
//
// A blocked nest (see Sums) has both operands in the loop over the reduction:
//
//	cores m:4 n:27
//	for tile in 4 of 2
//	  for columns in 112 112
//	    sums of 2
//	    for reduction in 64 64
//	      bring by 8              from the DDR eight tiles at a time; "bring once by 8"
//	      columns of 4            room for tiles of a second operand that is no constant
//	      ring of 49152           bytes of the L1 that weights pass
//	      weights by 8
//	      multiply
//	    vector
//	    store
//
// and that of an attention as
//
//	for queries in 1 64 in turn   tiles of products and of positions of each, which cores take in turn
//	  for keys in 128 of 1 over 4   room for one tile of keys, not for two; four cores share the keys
//	    for piece in 2            of the positions
//	      multiply
//	      vector                  of the scores
//	      multiply
//	  vector
//	  store
//
// [ParseNest] reads it back.
func (n *Nest) Text(output *model.Tensor) string {
	var b strings.Builder
	for _, l := range n.lines(output) {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", l.depth), l.text)
	}
	return b.String()
}

type nestLine struct {
	depth int
	text  string
}

func (n *Nest) lines(output *model.Tensor) (list []nestLine) {
	depth := 0
	say := func(format string, args ...any) { list = append(list, nestLine{depth, fmt.Sprintf(format, args...)}) }
	loop := func(format string, args ...any) {
		say("for "+format, args...)
		depth++
	}
	if n.Cores != nil {
		text := "cores"
		for _, d := range output.Layout {
			if n.Cores[d] > 1 {
				text += fmt.Sprintf(" %s:%d", output.DimName(d), n.Cores[d])
			}
		}
		say("%s", text)
	}
	if n.Rfactor > 0 {
		say("rfactor %d", n.Rfactor)
	}
	if t := n.Attention; t != nil {
		loop("%s", words(fmt.Sprintf("queries in %d %d", t.Products, t.Positions), t.InTurn, "in turn", false, ""))
		loop("%s", words(fmt.Sprintf("keys in %d", t.Keys), t.Single, "of 1", t.Slices > 0, fmt.Sprintf("over %d", t.Slices)))
		inKeys := depth
		if t.Pieces > 0 {
			loop("piece in %d", t.Pieces)
		}
		for _, what := range [...]string{"multiply", "vector", "multiply"} {
			say("%s", what)
		}
		depth = inKeys - 1
		say("vector")
		say("store")
		return list
	}
	columns := func() {
		if len(n.Columns) > 0 {
			loop("columns in%s", numbers(n.Columns))
		}
	}
	weights := func() { say("%s", words("weights", n.Group > 0, fmt.Sprintf("by %d", n.Group), n.Stay, "stay")) }
	at := func(a Attach) {
		if n.Vector == a {
			say("vector")
		}
		if n.Store == a {
			say("store")
		}
	}
	stage := func(once bool) {
		if n.Stage > 0 && n.Once == once {
			say("stage in %d", n.Stage)
		}
	}
	if n.Blocked() {
		tiles := func() { loop("tile in %d of %d", n.Tiles, n.Depth) }
		if !n.ColumnsFirst {
			tiles()
		}
		columns()
		if n.ColumnsFirst {
			tiles()
		}
		say("sums of %d", n.Sums)
		inside := depth
		loop("reduction in%s", numbers(n.Reduction))
		bring := words("bring", n.Once, "once", n.Stage > 0, fmt.Sprintf("by %d", n.Stage))
		say("%s", words(bring, n.Keep > 0, fmt.Sprintf("keep %d", n.Keep), false, ""))
		if n.ColumnDepth > 0 {
			say("columns of %d", n.ColumnDepth)
		}
		if n.Ring > 0 {
			say("ring of %d", n.Ring)
		}
		weights()
		say("multiply")
		depth = inside
		say("vector")
		say("store")
		return list
	}
	stage(true)
	if n.ColumnsFirst {
		columns()
	}
	loop("tile in %d of %d", n.Tiles, n.Depth)
	stage(false)
	say("bring in %d", n.Loads)
	inTile := depth
	if !n.ColumnsFirst {
		columns()
	}
	inColumns := depth
	if len(n.Columns) > 0 {
		loop("reduction in%s", numbers(n.Reduction))
		weights()
	}
	loop("piece in %d", n.Pieces)
	if len(n.Columns) > 0 {
		say("multiply")
	}
	at(AtPiece)
	depth = inColumns
	at(AtColumns)
	depth = inTile
	at(AtTile)
	return list
}

// words joins a word with those of two that are said.
func words(first string, sayA bool, a string, sayB bool, b string) string {
	if sayA {
		first += " " + a
	}
	if sayB {
		first += " " + b
	}
	return first
}

// longRun is the number of equal extents in a row from which they are written as one: 64x12.
const longRun = 4

func numbers(list []int64) (text string) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[0] {
			n++
		}
		if n < longRun {
			n = 1
		}
		text += " " + strconv.FormatInt(list[0], 10)
		if n > 1 {
			text += "x" + strconv.Itoa(n)
		}
		list = list[n:]
	}
	return text
}

// maxNestText bounds what ParseNest looks at.
const maxNestText = 1 << 16

// ParseNest reads what [Nest.Text] writes; spaces at the front of a line count relative to other lines only. An error
// names the line, what it has and what was expected. Whether a machine can run the nest is another question.
func ParseNest(text string, output *model.Tensor) (*Nest, error) {
	if len(text) > maxNestText {
		return nil, fmt.Errorf("the nest has %d bytes, expected at most %d", len(text), maxNestText)
	}
	n, a := &Nest{}, &AttentionTiles{}
	var queries, room []int64
	// The numbers behind two words of a line, one or any number, and what two words say.
	one := map[string]*int64{"rfactor ": &n.Rfactor, "tile in": &n.Tiles, "tile of": &n.Depth, "stage in": &n.Stage,
		"bring in": &n.Loads, "bring by": &n.Stage, "bring keep": &n.Keep, "sums of": &n.Sums, "piece in": &n.Pieces,
		"columns of": &n.ColumnDepth, "ring of": &n.Ring, "weights by": &n.Group, "keys in": &a.Keys, "keys over": &a.Slices}
	many := map[string]*[]int64{"columns in": &n.Columns, "reduction in": &n.Reduction, "queries in": &queries, "keys of": &room}
	said := map[string]*bool{"bring once": &n.Once, "weights stay": &n.Stay, "queries turn": &a.InTurn}
	type open struct {
		indent int
		loop   string
	}
	var loops []open
	var names []string // of all loops
	var found []nestLine
	var at []int // line numbers
	for i, raw := range strings.Split(text, "\n") {
		words := strings.Fields(raw)
		if len(words) == 0 {
			continue
		}
		indent := len(raw) - len(strings.TrimLeft(raw, " \t"))
		for len(loops) > 0 && loops[len(loops)-1].indent >= indent {
			loops = loops[:len(loops)-1]
		}
		around := ""
		if len(loops) > 0 {
			around = loops[len(loops)-1].loop
		}
		found, at = append(found, nestLine{len(loops), strings.Join(words, " ")}), append(at, i+1)
		if words[0] == "for" && len(words) > 1 {
			words = words[1:]
			loops, names = append(loops, open{indent, words[0]}), append(names, words[0])
		}
		var err error
		switch words[0] {
		case "cores":
			n.Cores, err = readCores(words[1:], output)
			words = nil
		case "tile":
			n.ColumnsFirst = around == "columns"
		case "stage":
			n.Once = around == ""
		case "queries":
			n.Attention, one["piece in"] = a, &a.Pieces
		case "vector":
			n.Vector = attachTo(around, n.ColumnsFirst)
		case "store":
			n.Store = attachTo(around, n.ColumnsFirst)
		case "rfactor", "sums", "bring", "columns", "ring", "weights", "multiply", "reduction", "piece", "keys":
		default:
			err = fmt.Errorf("found %q, expected cores, rfactor, sums, stage, bring, columns, ring, weights, multiply, "+
				"vector, store or a loop over tile, columns, reduction, piece, queries or keys", words[0])
		}
		behind := ""
		for k := 1; k < len(words) && err == nil; k++ {
			key := words[0] + " " + words[k]
			number := words[0] + " " + behind
			switch {
			case said[key] != nil:
				*said[key] = true
			case one[key] != nil || many[key] != nil:
				behind = words[k]
			case one[number] != nil:
				*one[number], err = readExtent(words[k])
			case many[number] != nil:
				*many[number], err = readExtents(*many[number], words[k])
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if n.Attention != nil {
		n.Tiles, n.Depth, n.Loads, n.Pieces, n.Vector, n.Store = 1, 1, 1, 1, AtPiece, AtTile
		a.Single = len(room) > 0
	} else if n.Blocked() {
		n.Loads, n.Pieces, n.Vector, n.Store = 1, 1, AtColumns, AtColumns
	}
	if len(queries) == 2 {
		a.Products, a.Positions = queries[0], queries[1]
	}
	if n.Tiles == 0 || n.Pieces == 0 || n.Loads == 0 || (len(n.Columns) > 0) != (len(n.Reduction) > 0) {
		return nil, fmt.Errorf("found loops over %s, expected \"for tile\", \"bring\", \"for piece\" and, for a product, "+
			"\"for columns\" and \"for reduction\"", cmp.Or(strings.Join(names, ", "), "nothing"))
	}
	want := n.lines(output)
	for i, l := range found {
		if i >= len(want) || want[i] != l {
			expected := "nothing"
			if i < len(want) {
				text := strings.ReplaceAll(want[i].text, " 0", " N") // numbers that are missing
				expected = fmt.Sprintf("%q in %d loops", text, want[i].depth)
			}
			return nil, fmt.Errorf("line %d: found %q in %d loops, expected %s", at[i], l.text, l.depth, expected)
		}
	}
	if len(want) > len(found) {
		return nil, fmt.Errorf("found the end, expected %q", want[len(found)].text)
	}
	return n, nil
}

// readExtents appends the extents of a word, of which 64x12 stands for twelve.
func readExtents(list []int64, word string) ([]int64, error) {
	word, many, run := strings.Cut(word, "x")
	x, err := readExtent(word)
	n := int64(1)
	if run && err == nil {
		n, err = readExtent(many)
	}
	if err != nil {
		return nil, err
	}
	if int64(len(list))+n > maxNestText {
		return nil, fmt.Errorf("found more than %d tiles of a loop", maxNestText)
	}
	return append(list, slices.Repeat([]int64{x}, int(n))...), nil
}

func attachTo(loop string, columnsFirst bool) Attach {
	switch {
	case loop == "piece":
		return AtPiece
	case loop == "tile" && !columnsFirst:
		return AtTile
	}
	return AtColumns
}

// maxExtent is more than any tensor of a network has.
const maxExtent = 1 << 40

func readExtent(word string) (int64, error) {
	x, err := strconv.ParseInt(word, 10, 64)
	if err != nil || x < 1 || x > maxExtent {
		return 0, fmt.Errorf("found %q, expected a number from 1 to %d", word, int64(maxExtent))
	}
	return x, nil
}

func readCores(words []string, output *model.Tensor) (Binding, error) {
	b := One(len(output.Shape))
	var names []string
	for _, d := range output.Layout {
		names = append(names, output.DimName(d))
	}
	for _, w := range words {
		name, factor, _ := strings.Cut(w, ":")
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("found dimension %q, expected one of %s", name, strings.Join(names, ", "))
		}
		x, err := readExtent(factor)
		if err != nil {
			return nil, err
		}
		b[output.Layout[i]] = x
	}
	return b, nil
}

// covered reports what cores need that reads do not have. A stride leaves out what lies between the parts of two cores,
// which a core with both parts would need.
func (b *StepBuilder) covered(layer *Layer, need []Regions, reads []Read) error {
	for c, reg := range need {
		for _, t := range layer.Inputs {
			got := int64(0)
			for k := range reads {
				if v := &b.Values[reads[k].Value]; v.Tensor == t {
					got += reg[t].Overlap(v.Region)
				}
			}
			if reg[t] != nil && got != reg[t].Elements() {
				return fmt.Errorf("core %d needs %d elements of %q, of which the step reads %d", c, reg[t].Elements(),
					b.Graph.Tensor(t).Name, got)
			}
		}
	}
	return nil
}

// Rebind spreads what step i makes over the cores in another way, and finds anew what each of them reads, and what
// readers of its results would find in their own slices. Results must not stay in the L1, where readers know their
// places; the step's stage is left as it is. After an error, all is as it was.
func (s *Schedule) Rebind(i int, to Binding) error { return s.rebind(i, to, false) }

// rebind is Rebind; alone leaves readers as they are.
func (s *Schedule) rebind(i int, to Binding, alone bool) error {
	old := s.Steps[i]
	inst := &s.Instances.Instances[old.Instance]
	layer := &s.Layers[inst.Group][old.Layer]
	region := inst.Regions[old.Output]
	b := &StepBuilder{Schedule: s, inst: inst}
	b.on(old.Kind)
	if err := CheckBinding(region, to, Forbidden(s.Graph, layer.Ops, old.Output), b.cores); err != nil {
		return err
	}
	st := old
	st.Binding, st.Cores = to, to.Cores()
	st.CoreOutput = Slice(region, to, s.Graph.Tensor(st.Output).Layout, 0)
	values := make([]Value, len(old.Writes))
	for k, w := range old.Writes {
		v := s.Values[w]
		if v.Level == L1 {
			return fmt.Errorf("%q stays in the L1, where its readers expect it", s.Graph.Tensor(v.Tensor).Name)
		}
		t := s.Graph.Tensor(v.Tensor)
		v.Binding = to
		if v.Tensor != st.Output && !to.Follows(v.Region, nil, b.cores, s.Slices) {
			v.Binding = GridBinding(v.Region, t.Layout, nil, b.grid, s.Slices)
		}
		v.CoreBytes = Align(t.DType.Bytes(Slice(v.Region, v.Binding, t.Layout, 0).Elements()))
		values[k] = v
	}
	for k, v := range values {
		s.Values[v.ID], values[k] = v, s.Values[v.ID]
	}
	need := b.needs(layer, &st)
	if err := b.covered(layer, need, old.Reads); err != nil {
		for _, v := range values {
			s.Values[v.ID] = v
		}
		return err
	}
	element := b.element(layer, &st)
	st.Params, st.Reads, st.known = nil, nil, nil
	for _, t := range layer.Constants {
		if pr := b.params(layer, t, need); pr.CoreBytes > 0 {
			st.Params = append(st.Params, pr)
		}
	}
	for _, r := range old.Reads {
		t := s.Values[r.Value].Tensor
		st.Reads = append(st.Reads, b.readOf(layer, b.read(r.Value, t, need), t, need, element))
	}
	st.Attending = b.attending(layer, st.Cores, need, LLB)
	if s.Steps[i] = st; !alone {
		s.Reread(st.Writes)
	}
	return nil
}

// Reread updates what cores lack of some values whose binding has changed, in the steps that read them. Other
// schedules may share the steps' reads.
func (s *Schedule) Reread(changed []int) {
	b := &StepBuilder{Schedule: s}
	first, last := len(b.Steps), 0
	for _, w := range changed {
		first, last = min(first, b.Values[w].Def+1), max(last, b.Values[w].Last)
	}
	for k := first; k <= min(last, len(b.Steps)-1); k++ {
		st := &b.Steps[k]
		of := func(r Read) bool { return slices.Contains(changed, r.Value) }
		if !slices.ContainsFunc(st.Reads, of) {
			continue
		}
		b.on(st.Kind)
		st.Reads = slices.Clone(st.Reads)
		need := b.needs(&b.Layers[b.Instances.Instances[st.Instance].Group][st.Layer], st)
		for i := range st.Reads {
			if r := &st.Reads[i]; of(*r) {
				now := b.read(r.Value, b.Values[r.Value].Tensor, need)
				r.RemoteBytes, r.CoreRemoteBytes = now.RemoteBytes, now.CoreRemoteBytes
			}
		}
	}
}
