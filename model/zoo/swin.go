package zoo

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/model"
)

// windowed is a configuration of the Swin family (Liu et al., section 3.3).
type windowed struct {
	Image, Patch  int64   // height and width
	Width         int64   // features of the first stage; each later one has twice as many
	Depths, Heads []int64 // blocks and attention heads per stage
	Window        int64   // height and width, in patches
	Expansion     int64   // of the feed-forwards
	Classes       int64
}

// build makes the network of a configuration, operator for operator that of torchvision (version 1), but for the
// weights of queries, keys and values, which are not joined. Between the blocks images are in N, H, W, C.
//
// Every second block shifts the windows by half of their size, around the edges; a mask, which is a constant, keeps
// what was not adjacent apart. A stage that is one window has nothing to shift. The bias of a pair of positions is
// looked up in a learned table by their distance. That lookup reads constants only, so it is the same for every batch;
// it stays in the graph because the table is what training sets.
func (c windowed) build(name string, opt Options) (*model.Graph, error) {
	b := &sequences{model.NewBuilder(name), opt.DType}
	if len(c.Depths) != len(c.Heads) {
		b.Fail(fmt.Errorf("%d stages with %d numbers of heads", len(c.Depths), len(c.Heads)))
		return b.Build()
	}
	if c.Patch < 1 || c.Image%c.Patch != 0 {
		b.Fail(fmt.Errorf("an image of %d rows does not divide into patches of %d", c.Image, c.Patch))
		return b.Build()
	}
	if c.Window < 1 {
		b.Fail(fmt.Errorf("windows of %d rows, expected at least 1", c.Window))
		return b.Build()
	}
	x := b.Input("image", opt.DType, opt.Batch, 3, c.Image, c.Image)
	x = b.patches("embeddings.patch", x, c.Width, c.Patch)
	x = b.Op("Transpose", "embeddings.transpose", model.Attr{Perm: []int64{0, 2, 3, 1}}, x)
	x = b.norm("embeddings.norm", x)
	// Of each pair of positions in a window: the row of the tables below.
	distance := b.Const("distance", model.I32, nil, c.Window*c.Window*c.Window*c.Window)
	g := grid{Batch: opt.Batch, Side: c.Image / c.Patch, Features: c.Width, Window: c.Window, Expansion: c.Expansion}
	for s, depth := range c.Depths {
		stage := fmt.Sprintf("stage%d", s+1)
		if s > 0 {
			x = b.mergePatches(stage+".merge", x, &g)
		}
		g.Heads = c.Heads[s]
		if err := g.check(); err != nil {
			b.Fail(fmt.Errorf("%s: %w", stage, err))
			return b.Build()
		}
		for i := int64(0); i < depth; i++ {
			shift := int64(0)
			if i%2 == 1 && g.Side > g.Window {
				shift = g.Window / 2
			}
			x = b.windowBlock(fmt.Sprintf("%s.block%d", stage, i), x, distance, shift, g)
		}
	}
	x = b.norm("head.norm", x)
	x = b.Op("Transpose", "head.transpose", model.Attr{Perm: []int64{0, 3, 1, 2}}, x)
	x = b.Op("GlobalAveragePool", "head.pool", model.Attr{}, x)
	x = b.Op("Reshape", "head.flatten", model.Attr{Shape: []int64{opt.Batch, g.Features}}, x)
	b.classify(x, c.Classes)
	return b.Build()
}

// grid is the tensor of a stage's blocks: Batch x Side x Side x Features.
type grid struct {
	Batch, Side, Features, Heads, Window, Expansion int64
}

func (g grid) check() error {
	if g.Side%g.Window != 0 {
		return fmt.Errorf("%d rows do not divide into windows of %d", g.Side, g.Window)
	}
	if g.Heads < 1 || g.Features%g.Heads != 0 {
		return fmt.Errorf("%d features do not divide over %d heads", g.Features, g.Heads)
	}
	return nil
}

// windowBlock is attention within windows, then a feed-forward.
func (b *sequences) windowBlock(name string, x, distance model.TensorID, shift int64, g grid) model.TensorID {
	across, size := g.Side/g.Window, g.Window*g.Window
	windows := across * across
	t := transformer{Seq: size, Hidden: g.Features, Heads: g.Heads}
	att := name + ".attention"

	y := b.norm(att+".norm", x)
	if shift > 0 {
		y = b.roll(att+".shift", y, shift)
	}
	y = b.Op("Reshape", att+".windows",
		model.Attr{Shape: []int64{g.Batch, across, g.Window, across, g.Window, g.Features}}, y)
	y = b.Op("Transpose", att+".windows.transpose", model.Attr{Perm: []int64{0, 1, 3, 2, 4, 5}}, y)
	y = b.Op("Reshape", att+".windows.flatten", model.Attr{Shape: []int64{g.Batch * windows, size, g.Features}}, y)

	p := b.scores(att, y, g.Batch*windows, t)
	span := 2*g.Window - 1
	bias := b.Op("Gather", att+".bias", model.Attr{}, b.Param(att+".bias.table", b.dtype, span*span, g.Heads), distance)
	bias = b.Op("Reshape", att+".bias.pairs", model.Attr{Shape: []int64{size, size, g.Heads}}, bias)
	bias = b.Op("Transpose", att+".bias.transpose", model.Attr{Perm: []int64{2, 0, 1}}, bias)
	p = b.Op("Add", att+".scores.bias", model.Attr{}, p, bias)
	if shift > 0 {
		p = b.Op("Reshape", att+".scores.windows", model.Attr{Shape: []int64{g.Batch, windows, g.Heads, size, size}}, p)
		p = b.Op("Add", att+".scores.mask", model.Attr{}, p, b.Const(att+".mask", b.dtype, nil, windows, 1, size, size))
		p = b.Op("Reshape", att+".scores.flatten", model.Attr{Shape: []int64{g.Batch * windows, g.Heads, size, size}}, p)
	}
	y = b.attend(att, p, y, g.Batch*windows, t)

	y = b.Op("Reshape", att+".image",
		model.Attr{Shape: []int64{g.Batch, across, across, g.Window, g.Window, g.Features}}, y)
	y = b.Op("Transpose", att+".image.transpose", model.Attr{Perm: []int64{0, 1, 3, 2, 4, 5}}, y)
	y = b.Op("Reshape", att+".image.flatten", model.Attr{Shape: []int64{g.Batch, g.Side, g.Side, g.Features}}, y)
	if shift > 0 {
		y = b.roll(att+".unshift", y, g.Side-shift)
	}
	x = b.Op("Add", att+".residual", model.Attr{}, y, x)

	y = b.norm(name+".ffn.norm", x)
	y = b.feedForward(name+".ffn", y, g.Expansion*g.Features, "Gelu")
	return b.Op("Add", name+".ffn.residual", model.Attr{}, y, x)
}

// roll moves rows and columns towards the origin by n; those that leave come in at the other end.
func (b *sequences) roll(name string, x model.TensorID, n int64) model.TensorID {
	x = b.rollAxis(name+".rows", x, 1, n)
	return b.rollAxis(name+".columns", x, 2, n)
}

func (b *sequences) rollAxis(name string, x model.TensorID, axis int, n int64) model.TensorID {
	if b.Err() != nil {
		return x
	}
	s := b.Tensor(x).Shape
	tail, head, from, steps := s.Clone(), s.Clone(), make([]int64, len(s)), slices.Repeat([]int64{1}, len(s))
	tail[axis], head[axis], from[axis] = s[axis]-n, n, n
	y := b.Op("Slice", name+".tail", model.Attr{Starts: from, Steps: steps, Shape: tail}, x)
	z := b.Op("Slice", name+".head", model.Attr{Starts: make([]int64, len(s)), Steps: steps, Shape: head}, x)
	return b.Op("Concat", name, model.Attr{Axis: int64(axis)}, y, z)
}

// mergePatches puts each square of four neighbours behind each other and halves their features, which leaves half of
// the rows and columns with twice the features.
func (b *sequences) mergePatches(name string, x model.TensorID, g *grid) model.TensorID {
	if g.Side%2 != 0 {
		b.Fail(fmt.Errorf("%s: %d rows do not halve", name, g.Side))
	}
	half := []int64{g.Batch, g.Side / 2, g.Side / 2, g.Features}
	var parts []model.TensorID
	for _, at := range [][2]int64{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
		parts = append(parts, b.Op("Slice", fmt.Sprintf("%s.slice%d%d", name, at[0], at[1]),
			model.Attr{Starts: []int64{0, at[0], at[1], 0}, Steps: []int64{1, 2, 2, 1}, Shape: half}, x))
	}
	x = b.Op("Concat", name+".concat", model.Attr{Axis: 3}, parts...)
	x = b.norm(name+".norm", x)
	x = b.product(name+".reduce", x, 2*g.Features)
	g.Side, g.Features = g.Side/2, 2*g.Features
	return x
}
