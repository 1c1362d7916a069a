package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// nasnet is a configuration of the NASNet-A family (Zoph et al., CVPR 2018).
type nasnet struct {
	Image   int64
	Stem    int64 // channels of the first convolution
	Filters int64 // of a convolution in the first normal cells; the last cell has 24 times as many channels
	Repeat  int64 // normal cells between reductions
	Classes int64
}

// build makes the network: a convolution, two reducing cells that grow to the width, three stacks of normal cells with
// a reducing cell between, the classifier. Every cell reads the outputs of the two cells before.
//
// Windows are padded as TensorFlow's SAME has it, for which the PyTorch port pads
// and crops. There is no auxiliary classifier.
func (c nasnet) build(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, c.Image, c.Image)
	prev := b.norm("stem.bn", b.convolve("stem.conv", x, valid(c.Stem, 3, 2)))

	// The first cell reads the same tensor twice, once without its own projection.
	x = b.squeezed("stem0.current", prev, c.Filters/4)
	x = b.reducing("stem0", x, prev)
	p := b.halved("stem1.previous", prev, c.Filters/2)
	prev, x = x, b.reducing("stem1", b.squeezed("stem1.current", x, c.Filters/2), p)

	width := c.Filters
	for s := range 3 {
		if s > 0 {
			width *= 2
			cell := fmt.Sprintf("reduction%d", s)
			p := b.squeezed(cell+".previous", prev, width)
			prev, x = x, b.reducing(cell, b.squeezed(cell+".current", x, width), p)
		}
		for i := range c.Repeat {
			cell := fmt.Sprintf("stack%d.cell%d", s+1, i)
			// Behind a reduction the cell before the last has twice the extents.
			adjust := b.squeezed
			if i == 0 {
				adjust = b.halved
			}
			p := adjust(cell+".previous", prev, width)
			prev, x = x, b.normal(cell, b.squeezed(cell+".current", x, width), p)
		}
	}
	b.classify(b.relu("head.relu", x), c.Classes)
	return b.Build()
}

// squeezed brings a cell's input to the cell's width.
func (b *images) squeezed(name string, x model.TensorID, width int64) model.TensorID {
	x = b.conv(name+".conv", b.relu(name+".relu", x), width, 1, 1)
	return b.norm(name+".bn", x)
}

// halved is squeezed for an input of twice the extents. Each of two convolutions reads one image point of four, the
// second those diagonally behind the first's; what it misses beyond the last row and column is zero.
func (b *images) halved(name string, x model.TensorID, width int64) model.TensorID {
	x = b.relu(name+".relu", x)
	even := b.conv(name+".even.conv", b.pool("AveragePool", name+".even.pool", x, 1, 2, 0), width/2, 1, 1)
	odd := b.Op("Pad", name+".odd.pad", model.Attr{Pads: []int64{0, 0, 0, 0, 0, 0, 1, 1}}, x)
	if b.Err() == nil {
		odd = b.Op("Slice", name+".odd.slice", model.Attr{Starts: []int64{0, 0, 1, 1}, Steps: []int64{1, 1, 1, 1},
			Shape: b.Tensor(x).Shape.Clone()}, odd)
	}
	odd = b.conv(name+".odd.conv", b.pool("AveragePool", name+".odd.pool", odd, 1, 2, 0), width/2, 1, 1)
	return b.norm(name+".bn", b.concat(name+".concat", even, odd))
}

// same pads a window as TensorFlow's SAME: the output has one element per stride,
// and an odd element of padding goes behind.
func (b *images) same(x model.TensorID, kernel, stride int64) []int64 {
	pads := around(0, 0)
	if b.Err() != nil {
		return pads
	}
	for i, n := range b.Tensor(x).Shape[2:] {
		out := (n + stride - 1) / stride
		all := max(0, (out-1)*stride+kernel-n)
		pads[i], pads[2+i] = all/2, all-all/2
	}
	return pads
}

// separable is ReLU, depthwise convolution, 1x1 convolution and normalisation,
// all of it twice; the stride is that of the first.
func (b *images) separable(name string, x model.TensorID, width, kernel, stride int64) model.TensorID {
	for i := range 2 {
		n := fmt.Sprintf("%s.%d", name, i+1)
		x = b.relu(n+".relu", x)
		w := depthwise(b.channels(x), kernel, stride)
		w.Pads = b.same(x, kernel, stride)
		x = b.convolve(n+".depthwise", x, w)
		x = b.norm(n+".bn", b.conv(n+".pointwise", x, width, 1, 1))
		stride = 1
	}
	return x
}

// operands makes the two sides of a cell's sums from tensors at the cell's width
// (only the first cell reads one that is not).
type operands struct {
	b     *images
	cell  string
	width int64
}

// sum adds two branches. A branch is called after the sum and its side.
func (c operands) sum(i int, left, right func(name string) model.TensorID) model.TensorID {
	name := fmt.Sprintf("%s.pair%d", c.cell, i)
	return c.b.Op("Add", name+".add", model.Attr{}, left(name+".left"), right(name+".right"))
}

func (c operands) separable(x model.TensorID, kernel, stride int64) func(string) model.TensorID {
	return func(name string) model.TensorID { return c.b.separable(name, x, c.width, kernel, stride) }
}

func (c operands) pool(kind model.Kind, x model.TensorID, stride int64) func(string) model.TensorID {
	return func(name string) model.TensorID { return c.b.padded(kind, name, x, 3, stride, c.b.same(x, 3, stride)) }
}

func (c operands) itself(x model.TensorID) func(string) model.TensorID {
	return func(string) model.TensorID { return x }
}

// normal is the cell that keeps the extents.
func (b *images) normal(name string, x, prev model.TensorID) model.TensorID {
	c := operands{b, name, b.channels(x)}
	y0 := c.sum(0, c.separable(x, 5, 1), c.separable(prev, 3, 1))
	y1 := c.sum(1, c.separable(prev, 5, 1), c.separable(prev, 3, 1))
	y2 := c.sum(2, c.pool("AveragePool", x, 1), c.itself(prev))
	y3 := c.sum(3, c.pool("AveragePool", prev, 1), c.pool("AveragePool", prev, 1))
	y4 := c.sum(4, c.separable(x, 3, 1), c.itself(x))
	return b.concat(name+".concat", prev, y0, y1, y2, y3, y4)
}

// reducing is the cell that halves the extents. Its first sum enters only through later ones.
func (b *images) reducing(name string, x, prev model.TensorID) model.TensorID {
	c := operands{b, name, b.channels(x)}
	y0 := c.sum(0, c.separable(x, 5, 2), c.separable(prev, 7, 2))
	y1 := c.sum(1, c.pool("MaxPool", x, 2), c.separable(prev, 7, 2))
	y2 := c.sum(2, c.pool("AveragePool", x, 2), c.separable(prev, 5, 2))
	y3 := c.sum(3, c.pool("AveragePool", y0, 1), c.itself(y1))
	y4 := c.sum(4, c.separable(y0, 3, 1), c.pool("MaxPool", x, 2))
	return b.concat(name+".concat", y1, y2, y3, y4)
}
