package model

import (
	"errors"
	"fmt"
)

// registerMatrix lists convolutions and matrix products.
func registerMatrix() {
	// Convolutions. Inputs: X [N,C,spatial], W [Cout,Cin/group,kernel], bias [Cout].
	register(&KindInfo{Kind: "Conv", Class: MatrixClass, Doc: "convolution, with optional bias", minIn: 2, maxIn: 3,
		infer:  inferConv,
		access: convAccess,
		macs:   convMACs,
		vector: biasWork,
	})
	register(&KindInfo{Kind: "ConvTranspose", Class: MatrixClass, Doc: "transposed convolution, with optional bias",
		minIn: 2, maxIn: 3,
		infer:  inferConvTranspose,
		access: convTransposeAccess,
		macs:   convTransposeMACs,
		vector: biasWork,
		work: func(op *Op, in []*Tensor, r Region) Work {
			_, macs := transposed(op, in, apart(r))
			return Work{macs, biasWork(op, in, nil).times(r.Elements())}
		},
	})
	// Matrix products.
	register(&KindInfo{Kind: "MatMul", Class: MatrixClass,
		Doc: "batched matrix product with broadcast over leading dimensions", minIn: 2, maxIn: 2,
		infer:  inferMatMul,
		access: matMulAccess,
		macs:   func(op *Op, in []*Tensor, _ Shape) int64 { s := in[0].Shape; return s[len(s)-1] },
	})
	register(&KindInfo{Kind: "Gemm", Class: MatrixClass,
		Doc: "two-dimensional matrix product with optional transposes and bias", minIn: 2, maxIn: 3,
		infer:  inferGemm,
		access: gemmAccess,
		macs:   gemmMACs,
		vector: biasWork,
	})
}

func convAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	x, w := in[0].Shape, in[1].Shape
	if idx != 0 {
		return paramAccess(in[idx].Shape, 1)
	}
	acc := make([]Access, len(x))
	acc[0], acc[1] = identity(0), channelsOfGroup(op.Attr.Group, w[1], out[1]/op.Attr.Group)
	for i := range w[2:] {
		acc[2+i] = window(2+i, op.Attr.Strides[i], w[2+i], op.Attr.Dilations[i], op.Attr.Pads[i])
	}
	return acc
}

func convMACs(_ *Op, in []*Tensor, _ Shape) int64 { return in[1].Shape[1:].Elements() }

func convTransposeAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	x, w := in[0].Shape, in[1].Shape
	switch idx {
	case 0:
		acc := make([]Access, len(x))
		acc[0] = identity(0)
		acc[1] = channelsOfGroup(op.Attr.Group, w[0]/op.Attr.Group, w[1])
		for i := range w[2:] {
			// Output o reads inputs ceil((o+pad-reach)/stride) to (o+pad)/stride; A is
			// for the first output of a block of stride, B for the last.
			s, reach := op.Attr.Strides[i], (w[2+i]-1)*op.Attr.Dilations[i]
			acc[2+i] = Access{Out: 2 + i, Num: 1, Den: s,
				A: -floorDiv(reach-op.Attr.Pads[i], s), B: floorDiv(op.Attr.Pads[i]+s-1, s)}
		}
		return acc
	case 1: // W [Cin, Cout/group, kernel]
		acc := paramAccess(w, -1)
		if op.Attr.Group == 1 {
			acc[1] = identity(1)
		} else {
			acc[0] = blocks(1, w[0]/op.Attr.Group, w[1])
		}
		return acc
	default:
		return paramAccess(in[idx].Shape, 1)
	}
}

// convTransposeMACs is the most that an output element takes.
func convTransposeMACs(op *Op, in []*Tensor, _ Shape) int64 {
	w := in[1].Shape
	n := w[0] / op.Attr.Group
	for i, d := range w[2:] {
		n *= ceilDiv(d, op.Attr.Strides[i]/GCD(op.Attr.Strides[i], op.Attr.Dilations[i]))
	}
	return n
}

func matMulAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	s := in[idx].Shape
	acc := make([]Access, len(s))
	if len(s) == 1 {
		acc[0] = full()
		return acc
	}
	// Leading dimensions align at the right with the output's leading ones.
	lead := len(out)
	if len(in[0].Shape) > 1 {
		lead--
	}
	if len(in[1].Shape) > 1 {
		lead--
	}
	shift := lead - (len(s) - 2)
	for k := range s[:len(s)-2] {
		if s[k] == 1 && out[k+shift] != 1 {
			acc[k] = full()
		} else {
			acc[k] = identity(k + shift)
		}
	}
	if idx == 0 {
		acc[len(s)-2] = identity(lead)
		acc[len(s)-1] = full()
	} else {
		acc[len(s)-2] = full()
		acc[len(s)-1] = identity(len(out) - 1)
	}
	return acc
}

func gemmAccess(op *Op, in []*Tensor, out Shape, _, idx int) []Access {
	switch {
	case idx == 0 && op.Attr.TransA:
		return []Access{full(), identity(0)}
	case idx == 0:
		return []Access{identity(0), full()}
	case idx == 1 && op.Attr.TransB:
		return []Access{identity(1), full()}
	case idx == 1:
		return []Access{full(), identity(1)}
	default:
		return broadcastAccess(in[2].Shape, out)
	}
}

func gemmMACs(op *Op, in []*Tensor, _ Shape) int64 {
	if op.Attr.TransA {
		return in[0].Shape[0]
	}
	return in[0].Shape[1]
}

func biasWork(_ *Op, in []*Tensor, _ Shape) VectorWork {
	if len(in) > 2 {
		return VectorWork{Simple: 1}
	}
	return VectorWork{}
}

// channelsOfGroup: an output channel reads the input channels of its group.
func channelsOfGroup(groups, in, out int64) Access {
	if groups == 1 {
		return full()
	}
	return blocks(1, in, out)
}

// maxWindow bounds kernels, strides, dilations and pads: beyond any real network, and far from overflow.
const maxWindow = int64(1) << 30

func checkKernel(kernel Shape) error {
	if err := kernel.Check(); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	for _, k := range kernel {
		if k > maxWindow {
			return fmt.Errorf("kernel %v has an extent above 2^30", kernel)
		}
	}
	return nil
}

var errSpatial = errors.New("strides, dilations and pads do not fit the spatial dimensions")

func checkSpatial(a *Attr, n int, kernel Shape) error {
	if len(a.Strides) != n || len(a.Dilations) != n || len(a.Pads) != 2*n {
		return errSpatial
	}
	for i := 0; i < n; i++ {
		if a.Strides[i] < 1 || a.Dilations[i] < 1 || a.Pads[i] < 0 || a.Pads[i+n] < 0 {
			return fmt.Errorf(
				"stride %d, dilation %d, pads %d and %d of spatial dimension %d, expected positive strides and dilations and no negative pads", a.Strides[i], a.Dilations[i], a.Pads[i], a.Pads[i+n], i)
		}
		if max(a.Strides[i], a.Dilations[i], a.Pads[i], a.Pads[i+n]) > maxWindow {
			return fmt.Errorf("stride, dilation or pad of spatial dimension %d is above 2^30", i)
		}
	}
	return checkKernel(kernel)
}

func windowExtent(n, kernel, stride, dilation, pads int64, ceil bool) int64 {
	span := n + pads - ((kernel-1)*dilation + 1)
	if span < 0 {
		return 0
	}
	if ceil {
		return (span+stride-1)/stride + 1
	}
	return span/stride + 1
}

func inferConv(op *Op, in []*Tensor) ([]Shape, error) {
	x, w := in[0].Shape, in[1].Shape
	if len(x) < 3 || len(w) != len(x) {
		return nil, fmt.Errorf("input %v and weights %v, expected [N,C,spatial] and [Cout,Cin/group,kernel]", x, w)
	}
	a := op.Attr
	if a.Group < 1 || w[1] > x[1] || w[1]*a.Group != x[1] || w[0]%a.Group != 0 {
		return nil, fmt.Errorf("input %v and weights %v do not fit %d groups", x, w, a.Group)
	}
	n := len(x) - 2
	if err := checkSpatial(a, n, w[2:]); err != nil {
		return nil, err
	}
	if len(in) > 2 && !in[2].Shape.Equal(Shape{w[0]}) {
		return nil, fmt.Errorf("bias %v, expected [%d]", in[2].Shape, w[0])
	}
	s := Shape{x[0], w[0]}
	for i := range n {
		pads := a.Pads[i] + a.Pads[i+n]
		if s = append(s, windowExtent(x[2+i], w[2+i], a.Strides[i], a.Dilations[i], pads, false)); s[2+i] == 0 {
			return nil, fmt.Errorf("kernel %d is larger than the input, %d with %d of padding", (w[2+i]-1)*a.Dilations[i]+1,
				x[2+i], pads)
		}
	}
	return []Shape{s}, nil
}

func inferConvTranspose(op *Op, in []*Tensor) ([]Shape, error) {
	x, w := in[0].Shape, in[1].Shape
	if len(x) < 3 || len(w) != len(x) || w[0] != x[1] || op.Attr.Group < 1 || w[0]%op.Attr.Group != 0 {
		return nil, fmt.Errorf("input %v and weights %v, expected [N,Cin,spatial] and [Cin,Cout/group,kernel]", x, w)
	}
	n := len(x) - 2
	a := op.Attr
	if err := checkSpatial(a, n, w[2:]); err != nil {
		return nil, err
	}
	if len(in) > 2 && !in[2].Shape.Equal(Shape{w[1] * a.Group}) {
		return nil, fmt.Errorf("bias %v, expected [%d]", in[2].Shape, w[1]*a.Group)
	}
	if len(a.OutputPadding) != 0 && len(a.OutputPadding) != n {
		return nil, errSpatial
	}
	s := Shape{x[0], w[1] * a.Group}
	for i := 0; i < n; i++ {
		if x[2+i] > maxWindow {
			return nil, fmt.Errorf("spatial dimension %d of input %v is above 2^30", i, x)
		}
		if len(a.OutputPadding) == n && (a.OutputPadding[i] < 0 || a.OutputPadding[i] > maxWindow) {
			return nil, fmt.Errorf("output padding %d of spatial dimension %d is out of range", a.OutputPadding[i], i)
		}
		out := (x[2+i]-1)*a.Strides[i] + (w[2+i]-1)*a.Dilations[i] + 1 - a.Pads[i] - a.Pads[i+n]
		if len(a.OutputPadding) == n {
			out += a.OutputPadding[i]
		}
		s = append(s, out)
	}
	return []Shape{s}, nil
}

func inferMatMul(_ *Op, in []*Tensor) ([]Shape, error) {
	a, b := in[0].Shape, in[1].Shape
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("cannot multiply %v by %v", a, b)
	}
	ka := a[len(a)-1]
	kb := b[0]
	if len(b) > 1 {
		kb = b[len(b)-2]
	}
	if ka != kb {
		return nil, fmt.Errorf("cannot multiply %v by %v: inner extents %d and %d differ", a, b, ka, kb)
	}
	la, lb := a[:max(0, len(a)-2)], b[:max(0, len(b)-2)]
	s, err := Broadcast(la, lb)
	if err != nil {
		return nil, err
	}
	if len(a) > 1 {
		s = append(s, a[len(a)-2])
	}
	if len(b) > 1 {
		s = append(s, b[len(b)-1])
	}
	return []Shape{s}, nil
}

func inferGemm(op *Op, in []*Tensor) ([]Shape, error) {
	a, b := in[0].Shape, in[1].Shape
	if len(a) != 2 || len(b) != 2 {
		return nil, fmt.Errorf("cannot multiply %v by %v: expected two dimensions each", a, b)
	}
	m, k := a[0], a[1]
	if op.Attr.TransA {
		m, k = k, m
	}
	kb, n := b[0], b[1]
	if op.Attr.TransB {
		kb, n = n, kb
	}
	if k != kb {
		return nil, fmt.Errorf("cannot multiply %v by %v (transposed: %t, %t): inner extents %d and %d differ", a, b,
			op.Attr.TransA, op.Attr.TransB, k, kb)
	}
	s := Shape{m, n}
	if len(in) > 2 {
		if t, err := Broadcast(s, in[2].Shape); err != nil || !t.Equal(s) {
			return nil, fmt.Errorf("bias %v does not broadcast to %v", in[2].Shape, s)
		}
	}
	return []Shape{s}, nil
}
