package streams

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// tiles are the sizes, rows by columns, into which the output of a matrix product is cut, the largest first. ESTIMATE:
// the vendor's library has smaller ones, too, which are slower for each multiply-accumulate.
var tiles = [][2]int64{{128, 128}, {128, 64}, {64, 64}, {64, 32}}

// Efficiency is the share of the peak that a library's kernels reach where nothing
// else is said. ESTIMATE; range 0.4 to 0.9.
const Efficiency = 0.7

// elements of a block of an operator without multiply-accumulates.
const elements = 4096

// A Device is an accelerator as what runs blocks: its cores of the kind that multiplies matrices, or else the lanes.
type Device struct {
	Machine
	// MACsPerSecond of one processor, by element type, with the efficiency.
	MACsPerSecond map[string]float64
}

// NewDevice takes an accelerator as a device. An efficiency of 0 is [Efficiency].
func NewDevice(spec *hardware.Spec, efficiency float64) (*Device, error) {
	efficiency = cmp.Or(efficiency, Efficiency)
	if !(efficiency > 0 && efficiency <= 1) {
		return nil, fmt.Errorf("accelerator %q: found efficiency %v, expected more than 0 and at most 1",
			spec.Name, efficiency)
	}
	d := &Device{Machine: Machine{Name: spec.Name, LaunchSeconds: spec.LaunchSeconds,
		BytesPerSecond: spec.DDR.BandwidthBytesPerSecond}, MACsPerSecond: map[string]float64{}}
	if d.ProcessorBytesPerSecond = spec.CoreLink.BandwidthBytesPerSecond; d.ProcessorBytesPerSecond == 0 {
		d.ProcessorBytesPerSecond = d.BytesPerSecond
	}
	for _, t := range spec.CoreTypes {
		n := int64(t.Count * spec.Clusters)
		for _, u := range t.Units {
			for dtype := range u.Rate {
				if rate := macs(u, dtype) * spec.ClockHz * efficiency; rate > d.MACsPerSecond[dtype] {
					d.MACsPerSecond[dtype] = rate
					if u.Kind == hardware.Matrix || d.Processors == 0 {
						d.Processors = n
					}
				}
			}
		}
	}
	if d.Processors == 0 {
		return nil, fmt.Errorf("accelerator %q: found no unit that computes, expected one", spec.Name)
	}
	return d, nil
}

func macs(u hardware.Unit, dtype string) float64 {
	if u.Kind == hardware.Matrix {
		return u.MACsPerCycle(dtype)
	}
	return u.OpsPerCycle(hardware.OpSimple, dtype)
}

// Product is the operator of a matrix product repeated reps times: rows x depth by depth x cols, moving bytes.
func (d *Device) Product(name string, reps, rows, cols, depth int64, dtype string, bytes int64) (Operator, error) {
	rate := d.MACsPerSecond[dtype]
	if rate == 0 {
		return Operator{}, fmt.Errorf("operator %q: element type %s does not run on %s", name, dtype, d.Name)
	}
	op := Operator{Name: name, MACs: reps * rows * cols * depth}
	best := 0.0
	for _, t := range tiles {
		blocks := reps * ((rows + t[0] - 1) / t[0]) * ((cols + t[1] - 1) / t[1])
		try := Operator{Blocks: blocks, BlockSeconds: float64(min(t[0], rows)*min(t[1], cols)*depth) / rate,
			BlockBytes: float64(bytes) / float64(blocks)}
		if alone := d.Alone(&try); op.Blocks == 0 || alone < best*(1-1e-9) {
			best, op.Blocks, op.BlockSeconds, op.BlockBytes = alone, blocks, try.BlockSeconds, try.BlockBytes
		}
	}
	return op, nil
}

// Operators makes kernels of a simplified network: convolutions, matrix products, pools and other operators that
// reduce, each with the element-wise operators that follow it. What only renames or joins data is no kernel. Cuts are
// the numbers of operators before which nothing can run that comes after: between two cuts is a block.
func Operators(g *model.Graph, d *Device) (ops []Operator, cuts []int, err error) {
	writer := make([][]int, len(g.Tensors)) // kernels that a tensor waits for
	for _, op := range g.Ops {
		var after []int
		bytes, activations := int64(0), 0
		for _, in := range op.Inputs {
			t := g.Tensor(in)
			bytes += t.Bytes()
			if t.Role != model.Constant {
				activations++
			}
			after = append(after, writer[in]...)
		}
		for _, out := range op.Outputs {
			bytes += g.Tensor(out).Bytes()
		}
		slices.Sort(after)
		after = slices.Compact(after)
		work := g.Work(op, nil)
		var kernel Operator
		out := g.Tensor(op.Outputs[0])
		switch dims, product := g.MatrixDims(op, model.Whole(out.Shape)); {
		case work.MACs > 0 && product:
			if dims.Phases != nil { // rows that an element of the reduction meets on average
				dims.M = max(1, work.MACs/(dims.Reps*dims.N*dims.K))
			}
			if kernel, err = d.Product(op.Name, dims.Reps, dims.M, dims.N, dims.K, out.DType.String(), bytes); err != nil {
				return nil, nil, err
			}
			if op.Kind == "Conv" && op.Attr.Group <= 1 {
				kernel.Merge = fmt.Sprint(op.Inputs[0], g.Tensor(op.Inputs[1]).Shape[2:], op.Attr.Strides,
					op.Attr.Pads, op.Attr.Dilations)
			}
		case op.Class() > model.ReductionClass:
			for _, o := range op.Outputs {
				writer[o] = after
			}
			continue
		default:
			n := max(1, (out.Shape.Elements()+elements-1)/elements)
			kernel = Operator{Name: op.Name, Blocks: n, BlockBytes: float64(bytes) / float64(n)}
		}
		kernel.After = after
		ops = append(ops, kernel)
		for _, o := range op.Outputs {
			writer[o] = []int{len(ops) - 1}
		}
	}
	return ops, Cuts(ops), nil
}

// Cuts are the numbers c, from 0 to that of all operators, such that every operator
// from c on waits for every one before c: nothing runs on both sides at a time.
func Cuts(ops []Operator) []int {
	waits := reach(ops)
	cuts := []int{0}
	for c := 1; c < len(ops); c++ {
		cut := true
		for j := c; j < len(ops) && cut; j++ {
			if slices.ContainsFunc(ops[j].After, func(h int) bool { return h >= c }) {
				continue // by way of that one
			}
			for i := 0; i < c && cut; i++ {
				cut = waits[j][i]
			}
		}
		if cut {
			cuts = append(cuts, c)
		}
	}
	return append(cuts, len(ops))
}
