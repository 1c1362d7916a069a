package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// googlenet is the BVLC release of GoogLeNet (Szegedy et al., CVPR 2015, Table 1) without its auxiliary classifiers.
// Extents are those of the ONNX model zoo's file, which rounds poolings down where Caffe rounds up: 55, 27, 13 and 6
// rows in place of 56, 28, 14 and 7.
func googlenet(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, 224, 224)
	x = b.rectified("conv1", x, square(64, 7, 2))
	x = b.lrn("norm1", b.pool("MaxPool", "pool1", x, 3, 2, 0))
	x = b.rectified("conv2.reduce", x, square(64, 1, 1))
	x = b.rectified("conv2", x, square(192, 3, 1))
	x = b.pool("MaxPool", "pool2", b.lrn("norm2", x), 3, 2, 0)
	for _, m := range []struct {
		name                                     string
		one, reduce3, three, reduce5, five, proj int64
	}{
		{"3a", 64, 96, 128, 16, 32, 32}, {"3b", 128, 128, 192, 32, 96, 64},
		{"4a", 192, 96, 208, 16, 48, 64}, {"4b", 160, 112, 224, 24, 64, 64}, {"4c", 128, 128, 256, 24, 64, 64},
		{"4d", 112, 144, 288, 32, 64, 64}, {"4e", 256, 160, 320, 32, 128, 128},
		{"5a", 256, 160, 320, 32, 128, 128}, {"5b", 384, 192, 384, 48, 128, 128},
	} {
		if m.name == "4a" || m.name == "5a" {
			x = b.pool("MaxPool", "pool"+m.name[:1], x, 3, 2, 0)
		}
		n := "inception" + m.name
		one := b.rectified(n+".1x1", x, square(m.one, 1, 1))
		three := b.rectified(n+".3x3.reduce", x, square(m.reduce3, 1, 1))
		three = b.rectified(n+".3x3", three, square(m.three, 3, 1))
		five := b.rectified(n+".5x5.reduce", x, square(m.reduce5, 1, 1))
		five = b.rectified(n+".5x5", five, square(m.five, 5, 1))
		proj := b.pool("MaxPool", n+".pool", x, 3, 1, 1)
		proj = b.rectified(n+".pool.project", proj, square(m.proj, 1, 1))
		x = b.concat(n+".concat", one, three, five, proj)
	}
	x = b.padded("AveragePool", "head.pool", x, 7, 1, []int64{0, 0, 1, 1})
	x = b.Op("Dropout", "head.dropout", model.Attr{}, x)
	x = b.linear("head.fc", b.flatten(x), 1000)
	b.Output(b.Op("Softmax", "head.softmax", model.Attr{Axis: 1}, x))
	return b.Build()
}

// inceptionV3 is the network of Szegedy et al. (CVPR 2016) as released and as torchvision has it, without the
// auxiliary classifier. Modules carry the names of the release.
func inceptionV3(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 3, 299, 299)
	x = b.normalised("conv1a", x, valid(32, 3, 2))
	x = b.normalised("conv2a", x, valid(32, 3, 1))
	x = b.normalised("conv2b", x, square(64, 3, 1))
	x = b.pool("MaxPool", "pool2", x, 3, 2, 0)
	x = b.normalised("conv3b", x, square(80, 1, 1))
	x = b.normalised("conv4a", x, valid(192, 3, 1))
	x = b.pool("MaxPool", "pool4", x, 3, 2, 0)
	for i, proj := range []int64{32, 64, 64} {
		x = b.module("mixed5"+string("bcd"[i]), x, averaged(proj), []branch{
			{square(64, 1, 1)},
			{square(48, 1, 1), square(64, 5, 1)},
			{square(64, 1, 1), square(96, 3, 1), square(96, 3, 1)},
		})
	}
	x = b.module("mixed6a", x, nil, []branch{
		{valid(384, 3, 2)},
		{square(64, 1, 1), square(96, 3, 1), valid(96, 3, 2)},
	})
	for i, n := range []int64{128, 160, 160, 192} {
		x = b.module("mixed6"+string("bcde"[i]), x, averaged(192), []branch{
			{square(192, 1, 1)},
			{square(n, 1, 1), rectangle(n, 1, 7, 1), rectangle(192, 7, 1, 1)},
			{square(n, 1, 1), rectangle(n, 7, 1, 1), rectangle(n, 1, 7, 1), rectangle(n, 7, 1, 1), rectangle(192, 1, 7, 1)},
		})
	}
	x = b.module("mixed7a", x, nil, []branch{
		{square(192, 1, 1), valid(320, 3, 2)},
		{square(192, 1, 1), rectangle(192, 1, 7, 1), rectangle(192, 7, 1, 1), valid(192, 3, 2)},
	})
	for _, n := range []string{"mixed7b", "mixed7c"} {
		x = b.expanded(n, x, true)
	}
	b.classify(x, 1000)
	return b.Build()
}

// mofangInception is the module of Mofang's Fig. 5, "InceptionV3 module", with the five convolutions that the text
// speaks of. The figure's labels are not in the text, and no module of the network has five convolutions. What the
// text says is that (a), (b) and (d) read the module's input, that only (c) is left for a second phase, that {(a),
// (d)} before {(b), (c)} is an order that the data allow, that kernels and channels differ, and that (c) alone uses a
// fifth of the device.
//
// This reading is the last module, mixed7c, on its 8x8 image, less the pairs of 1x3 and 3x1 at the ends of two
// branches: (a) is the 1x1 of 384, (b) that of 320 channels, (d) that of 448, (c) the 3x3 behind (d), and the fifth is
// the 1x1 behind the pooling. It does not account for one remark: the text widens a 1x1 to 3x3 before it merges (a),
// (b) and (d), which here have equal kernels as they stand.
func mofangInception(name string, opt Options) (*model.Graph, error) {
	b := &images{model.NewBuilder(name), opt.DType}
	x := b.Input("image", opt.DType, opt.Batch, 2048, 8, 8)
	b.Output(b.expanded("mixed7c", x, false))
	return b.Build()
}

// normalised is a convolution with normalisation and ReLU.
func (b *images) normalised(name string, x model.TensorID, w window) model.TensorID {
	x = b.norm(name+".bn", b.convolve(name+".conv", x, w))
	return b.relu(name+".relu", x)
}

// branch is a chain of normalised convolutions.
type branch []window

// averaged is the convolution behind a module's averaging pool.
func averaged(out int64) *window {
	w := square(out, 1, 1)
	return &w
}

// module is an Inception module: branches on the same input side by side, and a pooling. With a projection, the
// pooling averages and keeps the extents; without, it takes the maximum and halves them, as the branches then do.
func (b *images) module(name string, x model.TensorID, project *window, branches []branch) model.TensorID {
	var parts []model.TensorID
	for i, chain := range branches {
		y := x
		for j, w := range chain {
			y = b.normalised(fmt.Sprintf("%s.branch%d.%d", name, i, j), y, w)
		}
		parts = append(parts, y)
	}
	if project == nil {
		parts = append(parts, b.pool("MaxPool", name+".pool", x, 3, 2, 0))
	} else {
		parts = append(parts, b.projected(name+".pool", x, *project))
	}
	return b.concat(name+".concat", parts...)
}

// projected is a pooling that averages, with the border counted, and the convolution behind it.
func (b *images) projected(name string, x model.TensorID, w window) model.TensorID {
	x = b.Op("AveragePool", name, model.Attr{Kernel: []int64{3, 3}, Strides: []int64{1, 1}, Dilations: []int64{1, 1},
		Pads: around(1, 1), Variant: "count_include_pad=1"}, x)
	return b.normalised(name+".project", x, w)
}

// expanded is the module of the smallest image, whose two longer branches end in
// 1x3 and 3x1 side by side, unless these pairs are left out.
func (b *images) expanded(name string, x model.TensorID, pairs bool) model.TensorID {
	fork := func(name string, y model.TensorID) model.TensorID {
		if !pairs {
			return y
		}
		row := b.normalised(name+".1x3", y, rectangle(384, 1, 3, 1))
		column := b.normalised(name+".3x1", y, rectangle(384, 3, 1, 1))
		return b.concat(name+".concat", row, column)
	}
	one := b.normalised(name+".branch0.0", x, square(320, 1, 1))
	three := b.normalised(name+".branch1.0", x, square(384, 1, 1))
	three = fork(name+".branch1", three)
	double := b.normalised(name+".branch2.0", x, square(448, 1, 1))
	double = b.normalised(name+".branch2.1", double, square(384, 3, 1))
	double = fork(name+".branch2", double)
	pool := b.projected(name+".pool", x, square(192, 1, 1))
	return b.concat(name+".concat", one, three, double, pool)
}
