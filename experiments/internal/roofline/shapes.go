package roofline

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/formulation/tiling"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A kernel is a product or a convolution, alone.
type kernel struct {
	Name  string `json:"name"`
	Batch int64  `json:"batch"`
	// M, N and K of the product of one batch element.
	M int64 `json:"m"`
	N int64 `json:"n"`
	K int64 `json:"k"`
	// Conv is its convolution, nil if it is none.
	Conv *conv `json:"conv,omitempty"`
}

// conv is a convolution of one group.
type conv struct {
	Channels int64      `json:"channels"`
	Size     [2]int64   `json:"size"` // of the input
	Output   [2]int64   `json:"output"`
	Kernel   [2]int64   `json:"kernel"`
	Attr     model.Attr `json:"attr"`
}

// family is kernels of one origin.
type family struct {
	Name    string
	Kernels []kernel
}

// products are square, tall, wide and deep ones, of which the rows are the batch.
func products() family {
	f := family{Name: "products"}
	add := func(m, k, n int64) {
		f.Kernels = append(f.Kernels, kernel{Name: fmt.Sprintf("%dx%dx%d", m, k, n), Batch: m, M: 1, N: n, K: k})
	}
	for _, x := range []int64{64, 128, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 4096, 8192} { // square
		add(x, x, x)
	}
	for _, m := range []int64{2048, 4096, 8192, 16384} { // tall
		for _, x := range [][2]int64{{64, 64}, {64, 256}, {512, 512}, {1024, 1024}} {
			add(m, x[0], x[1])
		}
	}
	for _, m := range []int64{1, 8, 32, 100} { // wide: few rows by many weights
		for _, x := range [][2]int64{{4096, 4096}, {1024, 16384}, {4096, 11008}, {768, 3072}} {
			add(m, x[0], x[1])
		}
	}
	for _, m := range []int64{64, 333, 1024, 2048} { // deep
		for _, x := range [][2]int64{{16384, 64}, {12288, 1000}} {
			add(m, x[0], x[1])
		}
	}
	for _, x := range [][3]int64{{512, 12288, 12288}, {2048, 12288, 12288}, {2048, 4096, 11008}, {2048, 11008, 4096},
		{197, 768, 3072}, {333, 1000, 777}, {1536, 8192, 3072}, {4096, 256, 8192}} {
		add(x[0], x[1], x[2])
	}
	return f
}

// convolutions lists the convolutions of a network that run as products, each shape once.
func convolutions(name string, batch int64) (f family, err error) {
	f.Name = name
	net, err := network.Open(name, network.Options{})
	if err != nil {
		return f, err
	}
	g, err := net.Graph(1)
	if err != nil {
		return f, err
	}
	seen := map[string]bool{}
	for i := range g.Ops {
		op := g.Ops[i]
		if op.Kind != "Conv" || op.Attr.Group > 1 {
			continue
		}
		x, w, y := g.Tensor(op.Inputs[0]).Shape, g.Tensor(op.Inputs[1]).Shape, g.Tensor(op.Outputs[0]).Shape
		if len(x) != 4 {
			continue
		}
		k := kernel{Name: fmt.Sprintf("%dx%dx%d, %d of %dx%d", x[1], x[2], x[3], w[0], w[2], w[3]),
			Batch: batch, M: y[2] * y[3], N: w[0], K: w[1] * w[2] * w[3]}
		k.Conv = &conv{Channels: x[1], Size: [2]int64{x[2], x[3]}, Output: [2]int64{y[2], y[3]},
			Kernel: [2]int64{w[2], w[3]}, Attr: *op.Attr}
		if s := op.Attr.Strides; len(s) == 2 && s[0] > 1 {
			k.Name += fmt.Sprintf(", stride %d", s[0])
		}
		if !seen[k.Name] {
			seen[k.Name] = true
			f.Kernels = append(f.Kernels, k)
		}
	}
	return f, nil
}

// network is a kernel as a network of one operator.
func (k kernel) network(dt model.DType) network.Network {
	return network.Network{Name: "kernel", Graph: func(batch int64) (*model.Graph, error) {
		b := model.NewBuilder("kernel")
		if c := k.Conv; c != nil {
			x := b.Input("x", dt, batch, c.Channels, c.Size[0], c.Size[1])
			b.Output(b.Op("Conv", "product", c.Attr, x, b.Param("w", dt, k.N, c.Channels, c.Kernel[0], c.Kernel[1])))
		} else {
			x := b.Input("x", dt, batch, k.K)
			b.Output(b.Op("MatMul", "product", model.Attr{}, x, b.Param("w", dt, k.K, k.N)))
		}
		return b.Build()
	}}
}

// mostProducts is the number of products of tiles a kernel may have: a program has a command for each.
const mostProducts = 32 << 10

// problem is the largest share of a cluster as the rule sees it: from the DDR, which those that have a share use
// together, and to it.
func (k kernel) problem(machine *hardware.Spec, dt model.DType) (*tiling.Problem, error) {
	active := machine.Clone()
	active.Clusters = int(min(k.Batch, int64(machine.Clusters)))
	c, err := cost.New(active)
	if err != nil {
		return nil, err
	}
	share := slices.Max(schedule.Shares(k.Batch, active.Clusters))
	size := dt.Bytes(1)
	p := &tiling.Problem{Product: tiling.Product{Reps: 1, M: share * k.M, N: k.N, K: k.K,
		RowBytes: size, ColumnBytes: size, ResultBytes: size, Constant: true},
		Machine: *tiling.NewMachine(c, dt, dt)}
	p.Most, p.Deep = mostProducts, k.K
	if p.LLB > 0 {
		p.Head = machine.LaunchSeconds
	}
	if v := k.Conv; v != nil {
		p.Deep = v.Channels
		p.Divide([]int64{share, v.Output[0], v.Output[1]}, []int64{k.N}, p.Cores)
	}
	if v := k.Conv; v != nil && len(v.Attr.Strides) == 2 {
		p.Window = &tiling.Window{Height: v.Kernel[0], Width: v.Kernel[1],
			StrideHeight: v.Attr.Strides[0], StrideWidth: v.Attr.Strides[1], OutputWidth: v.Output[1]}
	}
	return p, nil
}

// reads is how much of the input's height or width some window covers.
func (c *conv) reads(d int) int64 {
	stride := int64(1)
	if len(c.Attr.Strides) == 2 {
		stride = c.Attr.Strides[d]
	}
	return min(c.Size[d], c.Output[d]*c.Kernel[d], (c.Output[d]-1)*stride+c.Kernel[d])
}

// work is the multiply-accumulates of a kernel, and the bytes that must cross the DDR's bus.
func (k kernel) work(spec *hardware.Spec, dt model.DType) (macs, bytes float64) {
	rows := float64(k.Batch * k.M)
	input := float64(k.Batch * k.K)
	if c := k.Conv; c != nil {
		input = float64(k.Batch * c.Channels * c.reads(0) * c.reads(1))
	}
	copies := min(k.Batch, int64(spec.Clusters)) // of the weights
	return rows * float64(k.N*k.K), dt.Size() * (input + float64(copies*k.N*k.K) + rows*float64(k.N))
}
