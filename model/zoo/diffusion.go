package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// diffusion is a configuration of the U-Net of latent diffusion (Rombach et al., CVPR 2022).
type diffusion struct {
	Side     int64 // of the latent image
	Channels int64 // of it
	Widths   []int64
	// Depth is the residual blocks of a level on the way down; there is one more on the way
	// up. All levels but the last have attention behind each.
	Depth            int64
	Heads, Groups    int64
	Context, Symbols int64 // features and number of the text's vectors
}

var stableDiffusion = diffusion{Side: 64, Channels: 4, Widths: []int64{320, 640, 1280, 1280}, Depth: 2, Heads: 8,
	Groups: 32, Context: 768, Symbols: 77}

// unet adds the blocks of a U-Net to a Builder.
type unet struct {
	*sequences
	diffusion
	batch         int64
	text, moment  model.TensorID // context, embedded time after its activation
	side, channel int64          // of the image on its way
}

func (c diffusion) start(name string, opt Options) *unet {
	return &unet{sequences: &sequences{model.NewBuilder(name), opt.DType}, diffusion: c, batch: opt.Batch, side: c.Side}
}

// build is the whole network.
func (c diffusion) build(name string, opt Options) (*model.Graph, error) {
	u := c.start(name, opt)
	x := u.Input("latent", u.dtype, u.batch, c.Channels, c.Side, c.Side)
	t := u.Input("time", u.dtype, u.batch, c.Widths[0])
	u.text = u.Input("text", u.dtype, u.batch, c.Symbols, c.Context)
	t = u.Op("Silu", "time.silu", model.Attr{}, u.linear("time.up", t, 4*c.Widths[0]))
	u.moment = u.Op("Silu", "time.out", model.Attr{}, u.linear("time.down", t, 4*c.Widths[0]))
	u.channel = c.Channels
	x = u.conv("in", x, c.Widths[0], 3, 1)
	type saved struct {
		x       model.TensorID
		channel int64
	}
	skips := []saved{{x, u.channel}}
	last := len(c.Widths) - 1
	for i, width := range c.Widths {
		for k := range c.Depth {
			x = u.residual(fmt.Sprintf("down%d.residual%d", i, k), x, width)
			if i < last {
				x = u.attention(fmt.Sprintf("down%d.attention%d", i, k), x)
			}
			skips = append(skips, saved{x, u.channel})
		}
		if i < last {
			x = u.conv(fmt.Sprintf("down%d.half", i), x, width, 3, 2)
			skips = append(skips, saved{x, u.channel})
		}
	}
	x = u.residual("middle.residual0", x, c.Widths[last])
	x = u.attention("middle.attention", x)
	x = u.residual("middle.residual1", x, c.Widths[last])
	for i := last; i >= 0; i-- {
		for k := range c.Depth + 1 {
			s := skips[len(skips)-1]
			skips = skips[:len(skips)-1]
			x = u.Op("Concat", fmt.Sprintf("up%d.skip%d", i, k), model.Attr{Axis: 1}, x, s.x)
			u.channel += s.channel
			x = u.residual(fmt.Sprintf("up%d.residual%d", i, k), x, c.Widths[i])
			if i < last {
				x = u.attention(fmt.Sprintf("up%d.attention%d", i, k), x)
			}
		}
		if i > 0 {
			u.side *= 2
			x = u.Op("Resize", fmt.Sprintf("up%d.resize", i),
				model.Attr{Shape: []int64{u.batch, u.channel, u.side, u.side}, Kernel: []int64{1, 1, 1, 1}}, x)
			x = u.conv(fmt.Sprintf("up%d.double", i), x, u.channel, 3, 1)
		}
	}
	x = u.Op("Silu", "out.silu", model.Attr{}, u.groups("out.norm", x))
	u.Output(u.conv("out", x, c.Channels, 3, 1))
	return u.Build()
}

// block is the first residual block with its attention, as the network has it.
func (c diffusion) block(name string, opt Options) (*model.Graph, error) {
	u := c.start(name, opt)
	u.channel = c.Widths[0]
	x := u.Input("image", u.dtype, u.batch, u.channel, c.Side, c.Side)
	u.moment = u.Input("moment", u.dtype, u.batch, 4*c.Widths[0])
	u.text = u.Input("text", u.dtype, u.batch, c.Symbols, c.Context)
	u.Output(u.attention("attention", u.residual("residual", x, u.channel)))
	return u.Build()
}

// selfAttention is the first attention of all positions with each other.
func (c diffusion) selfAttention(name string, opt Options) (*model.Graph, error) {
	u := c.start(name, opt)
	x := u.Input("x", u.dtype, u.batch, c.Side*c.Side, c.Widths[0])
	u.Output(u.attend("attention", x, x, c.Side*c.Side, c.Side*c.Side))
	return u.Build()
}

func (u *unet) conv(name string, x model.TensorID, out, kernel, stride int64) model.TensorID {
	x = u.images().biased(name, x, square(out, kernel, stride))
	u.channel, u.side = out, u.side/stride
	return x
}

func (u *unet) groups(name string, x model.TensorID) model.TensorID {
	return u.Op("GroupNorm", name, model.Attr{Group: u.Groups}, x, u.Param(name+".scale", u.dtype, u.channel),
		u.Param(name+".bias", u.dtype, u.channel))
}

// residual is two convolutions, with the time added between, and a shortcut.
func (u *unet) residual(name string, x model.TensorID, out int64) model.TensorID {
	in := u.channel
	y := u.conv(name+".conv1", u.Op("Silu", name+".silu1", model.Attr{}, u.groups(name+".norm1", x)), out, 3, 1)
	t := u.Op("Reshape", name+".time.image", model.Attr{Shape: []int64{u.batch, out, 1, 1}},
		u.linear(name+".time", u.moment, out))
	y = u.Op("Add", name+".time.join", model.Attr{}, y, t)
	y = u.conv(name+".conv2", u.Op("Silu", name+".silu2", model.Attr{}, u.groups(name+".norm2", y)), out, 3, 1)
	if in != out {
		u.channel = in
		x = u.conv(name+".shortcut", x, out, 1, 1)
	}
	return u.Op("Add", name+".join", model.Attr{}, y, x)
}

// attention adds self-attention of the positions, attention to the text and a gated
// feed-forward, between two convolutions of 1x1.
func (u *unet) attention(name string, x model.TensorID) model.TensorID {
	n, c := u.side*u.side, u.channel
	y := u.conv(name+".in", u.groups(name+".norm", x), c, 1, 1)
	y = u.Op("Reshape", name+".flatten", model.Attr{Shape: []int64{u.batch, c, n}}, y)
	y = u.Op("Transpose", name+".rows", model.Attr{Perm: []int64{0, 2, 1}}, y)
	for _, part := range []string{".self", ".text"} {
		z, of := u.norm(name+part+".norm", y), u.text
		rows := u.Symbols
		if part == ".self" {
			of, rows = z, n
		}
		y = u.Op("Add", name+part+".residual", model.Attr{}, u.attend(name+part, z, of, n, rows), y)
	}
	ffn := name + ".ffn"
	z := u.linear(ffn+".up", u.norm(ffn+".norm", y), 8*c)
	halves := u.OpN("Split", ffn+".halves", model.Attr{Axis: 2, Splits: []int64{4 * c, 4 * c}}, z)
	if u.Err() != nil {
		return x
	}
	z = u.Op("Mul", ffn+".gated", model.Attr{}, halves[0], u.Op("Gelu", ffn+".gelu", model.Attr{}, halves[1]))
	y = u.Op("Add", ffn+".residual", model.Attr{}, u.linear(ffn+".down", z, c), y)
	y = u.Op("Transpose", name+".columns", model.Attr{Perm: []int64{0, 2, 1}}, y)
	y = u.Op("Reshape", name+".image", model.Attr{Shape: []int64{u.batch, c, u.side, u.side}}, y)
	return u.Op("Add", name+".residual", model.Attr{}, u.conv(name+".out", y, c, 1, 1), x)
}

// attend lets n rows of x attend to the rows of of.
func (u *unet) attend(name string, x, of model.TensorID, n, rows int64) model.TensorID {
	c := u.features(x)
	heads := func(what string, x model.TensorID, n int64, perm ...int64) model.TensorID {
		y := u.Op("Reshape", name+what+".heads", model.Attr{Shape: []int64{u.batch, n, u.Heads, c / u.Heads}},
			u.product(name+what, x, c))
		return u.Op("Transpose", name+what+".transpose", model.Attr{Perm: perm}, y)
	}
	q := heads(".query", x, n, 0, 2, 1, 3)
	p := u.Op("MatMul", name+".scores", model.Attr{}, q, heads(".key", of, rows, 0, 2, 3, 1))
	p = u.Op("Softmax", name+".softmax", model.Attr{Axis: 3}, u.scale(name+".scores.scale", p, name+".scale"))
	y := u.Op("MatMul", name+".context", model.Attr{}, p, heads(".value", of, rows, 0, 2, 1, 3))
	y = u.Op("Transpose", name+".context.transpose", model.Attr{Perm: []int64{0, 2, 1, 3}}, y)
	y = u.Op("Reshape", name+".context.merge", model.Attr{Shape: []int64{u.batch, n, c}}, y)
	return u.linear(name+".output", y, c)
}
