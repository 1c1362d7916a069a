package onnx

import (
	"strings"
	"testing"
)

// A training step as the ONNX Runtime writes one: a grouped convolution, normalisation, pools, a
// product, the loss, all gradients, and the weights after descent. Counted by hand: the
// convolution, of 8 x 8 places, 2 samples, 6 filters of 2 channels and 3 x 3, has 13824
// multiply-accumulates, as many for the gradient of its weights (its input has none); the product
// of 2 samples, 6 channels and 5 classes 60, and as many for both of its gradients.
func TestTrainingStep(t *testing.T) {
	ort := func(op, name string, i, o []string, attrs ...msg) msg {
		return nodeOf("com.microsoft", op, name, i, o, attrs...)
	}
	three := parts(attrInt("group", 2), attrList("pads", 1, 1, 1, 1))
	two := parts(attrList("kernel_shape", 2, 2), attrList("strides", 2, 2))
	g, err := load(file(17, input("x", 2, 4, 8, 8), of("labels", tInt64, 2), scalar("rate", 0.1),
		weights("w", 6, 2, 3, 3), weights("scale", 6), weights("shift", 6), weights("mean", 6), weights("variance", 6),
		weights("v", 6, 5),
		node("Conv", "conv", in("x", "w"), out("a"), three...),
		ort("BatchNormInternal", "norm", in("a", "scale", "shift", "mean", "variance"), out("n", "rm", "rv", "sm", "sv"),
			attrInt("training_mode", 1)),
		node("Relu", "relu", in("n"), out("r")),
		node("MaxPool", "pool", in("r"), out("p", "where"), two...),
		node("AveragePool", "average", in("p"), out("m"), attrList("kernel_shape", 4, 4)),
		node("Flatten", "flat", in("m"), out("f")),
		node("Gemm", "product", in("f", "v"), out("s")),
		ort("SoftmaxCrossEntropyLossInternal", "loss", in("s", "labels"), out("l", "logs")),
		scalar("one", 1),
		ort("SoftmaxCrossEntropyLossInternalGrad", "loss.grad", in("one", "logs", "labels"), out("ds")),
		node("Gemm", "product.x", in("ds", "v"), out("df"), attrInt("transB", 1)),
		node("Gemm", "product.w", in("f", "ds"), out("dv"), attrInt("transA", 1)),
		node("Shape", "shape", in("m"), out("mshape")),
		node("Reshape", "flat.grad", in("df", "mshape"), out("dm")),
		node("AveragePoolGrad", "average.grad", in("dm"), out("dp"), attrList("kernel_shape", 4, 4)),
		node("MaxPoolGrad", "pool.grad", in("dp", "where"), out("dr"), two...),
		node("ReluGrad", "relu.grad", in("dr", "r"), out("dn")),
		ort("BatchNormalizationGrad", "norm.grad", in("dn", "a", "scale", "sm", "sv"), out("da", "dscale", "dshift")),
		ort("ConvGrad", "conv.grad", in("da", "x", "w"), out("", "dw"), three...),
		ort("SGDOptimizer", "w.sgd", in("rate", "w", "dw"), out("w2")),
		node("SGDOptimizer", "v.sgd", in("rate", "v", "dv"), out("v2")),
		ort("SGDOptimizer", "scale.sgd", in("rate", "scale", "dscale"), out("scale2")),
		node("SGD", "shift.sgd", in("rate", "shift", "dshift"), out("shift2")),
		output("l"), output("w2"), output("v2"), output("scale2"), output("shift2")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	macs := map[string]int64{}
	written := map[string]int64{}
	for _, op := range g.Ops {
		if n := g.Work(op, nil).MACs; n > 0 {
			macs[op.Name] = n
		}
		written[op.Name] = g.Tensor(op.Outputs[0]).Bytes()
	}
	for name, want := range map[string]int64{"conv": 13824, "conv.grad/product": 13824, "product": 60,
		"product.x": 60, "product.w": 60} {
		if macs[name] != want {
			t.Errorf("%s: %d multiply-accumulates, expected %d", name, macs[name], want)
		}
		delete(macs, name)
	}
	if len(macs) > 0 {
		t.Errorf("further multiply-accumulates: %v", macs)
	}
	image := int64(4 * 2 * 6 * 8 * 8)
	for name, want := range map[string]int64{"norm": image, "pool": image / 4, "average.grad": image / 4,
		"pool.grad": image, "relu.grad": image,
		"norm.grad/input": image, "conv.grad/weights": 4 * 6 * 2 * 9, "w.sgd/weights": 4 * 6 * 2 * 9,
		"v.sgd/weights": 4 * 30} {
		if written[name] != want {
			t.Errorf("%s writes %d bytes, expected %d", name, written[name], want)
		}
	}
	exercise(t, g)
}

// The derivative of grouped and depthwise convolutions is as much work as they are, whatever
// strides and dilations, and has the shapes of input and weights.
func TestConvGradWork(t *testing.T) {
	for _, tt := range []struct{ group, channels, filters, size, kernel, stride, pad, dilation int64 }{
		{1, 4, 6, 9, 3, 1, 1, 1}, {2, 4, 6, 9, 3, 2, 1, 1}, {4, 4, 8, 8, 3, 2, 1, 1}, {3, 9, 6, 12, 2, 3, 0, 2},
		{8, 8, 8, 7, 5, 1, 2, 1},
	} {
		places := (tt.size+2*tt.pad-tt.dilation*(tt.kernel-1)-1)/tt.stride + 1
		attrs := parts(attrInt("group", tt.group), attrList("strides", tt.stride, tt.stride),
			attrList("pads", tt.pad, tt.pad, tt.pad, tt.pad), attrList("dilations", tt.dilation, tt.dilation))
		g, err := load(file(17, input("x", 2, int(tt.channels), int(tt.size), int(tt.size)),
			input("d", 2, int(tt.filters), int(places), int(places)),
			weights("w", tt.filters, tt.channels/tt.group, tt.kernel, tt.kernel),
			nodeOf("com.microsoft", "ConvGrad", "n", in("d", "x", "w"), out("dx", "dw"), attrs...), output("dx"), output("dw")),
			Options{})
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		want := 2 * tt.filters * places * places * tt.channels / tt.group * tt.kernel * tt.kernel
		for _, op := range g.Ops {
			n := g.Work(op, nil)
			// A transposed convolution is counted by its outputs, with places of the kernel
			// rounded up to whole strides.
			if op.Kind == "Conv" && n.MACs+n.Vector.Simple != want {
				t.Errorf("%+v: %s is %d multiply-accumulates, expected %d", tt, op.Name, n.MACs+n.Vector.Simple, want)
			}
		}
		for i, shape := range []int64{2 * tt.channels * tt.size * tt.size,
			tt.filters * tt.channels / tt.group * tt.kernel * tt.kernel} {
			if n := g.Tensor(g.Outputs[i]).Shape.Elements(); n != shape {
				t.Errorf("%+v: output %d has %d elements, expected %d", tt, i, n, shape)
			}
		}
	}
}

// Exporters write operators of training into the default domain as well, optimisers without the word: they are read as
// in the domain of the ONNX Runtime.
func TestTrainingInDefaultDomain(t *testing.T) {
	for own, x := range map[string]struct {
		short string
		given []msg
		in    []string
	}{
		"GeluGrad":      {"GeluGrad", parts(input("d", 2, 6), input("x", 2, 6)), in("d", "x")},
		"FastGeluGrad":  {"FastGeluGrad", parts(input("d", 2, 6), input("x", 2, 6)), in("d", "x")},
		"SGDOptimizer":  {"SGD", parts(scalar("r", .1), weights("w", 6, 4), input("g", 6, 4)), in("r", "w", "g")},
		"AdamOptimizer": {"AdamOptimizer", nil, nil},
	} {
		if x.in == nil {
			x.in = in("r", "n", "w", "g", "m", "v")
			x.given = parts(scalar("r", .1), of("n", tInt64, 1), weights("w", 6, 4), input("g", 6, 4), input("m", 6, 4),
				input("v", 6, 4))
		}
		outputs := out("y")
		if own == "AdamOptimizer" {
			outputs = out("", "", "", "y")
		}
		read := func(domain, op string) string {
			return summary(file(17, append(x.given[:len(x.given):len(x.given)],
				nodeOf(domain, op, "n", x.in, outputs), output("y"))...), Options{})
		}
		want := read("com.microsoft", own)
		if !strings.Contains(want, "> ") {
			t.Errorf("%s: %s", own, want)
		}
		if got := read("", x.short); got != want {
			t.Errorf("%s in the default domain is read as\n%sexpected\n%s", x.short, got, want)
		}
	}
}

// Where a file tells no shape of what was padded, it comes from the shape of the gradient and the padding: the least
// input of which a pool gives such an output, with automatic padding the outputs times the strides. A value that is
// there has its own.
func TestGradientShapesFromPadding(t *testing.T) {
	three := parts(attrList("kernel_shape", 3, 3), attrList("strides", 2, 2))
	positions := of("i", tInt64, 2, 4, 4, 4)
	for _, tt := range []struct {
		op    string
		given []msg
		in    []string
		pads  msg
		want  string
	}{
		{"MaxPoolGrad", parts(positions), in("d", "i"), attrList("pads", 1, 1, 1, 1), "[2,4,7,7]"},
		{"MaxPoolGrad", parts(positions), in("d", "i"), attrList("pads", 0, 1, 0, 0), "[2,4,9,8]"},
		{"MaxPoolGrad", parts(positions), in("d", "i"), attrStr("auto_pad", "SAME_UPPER"), "[2,4,8,8]"},
		{"MaxPoolGrad", parts(input("x", 2, 4, 8, 7), node("MaxPool", "f", in("x"), out("p", "i"),
			append(three, attrList("pads", 1, 1, 1, 1))...)), in("d", "i"), attrList("pads", 1, 1, 1, 1), "[2,4,8,7]"},
		{"AveragePoolGrad", nil, in("d"), attrList("pads", 1, 1, 1, 1), "[2,4,7,7]"},
		{"AveragePoolGrad", nil, in("d"), attrStr("auto_pad", "SAME_LOWER"), "[2,4,8,8]"},
		{"ConvGrad", parts(input("x", 2, 4, 8, 7), weights("w", 4, 4, 3, 3)), in("d", "x", "w"),
			attrList("pads", 1, 1, 1, 1), "[2,4,8,7]"},
		{"ConvGrad", parts(input("x", 2, 4, 7, 8), weights("w", 4, 4, 3, 3)), in("d", "x", "w"),
			attrStr("auto_pad", "SAME_UPPER"), "[2,4,7,8]"},
	} {
		given := append(parts(input("d", 2, 4, 4, 4)), tt.given...)
		got := summary(file(17, append(given, node(tt.op, "n", tt.in, out("y"), append(three[:2:2], tt.pads)...),
			output("y"))...), Options{})
		if !strings.HasSuffix(got, tt.want+" f32\n") {
			t.Errorf("%s of %v: expected %s, read\n%s", tt.op, tt.in, tt.want, got)
		}
	}
}
