package bound

import (
	"context"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

// A Witness holds the terms of a bound, for a program that computes it by itself.
type Witness struct {
	// Shares are the clusters' shares, the largest first, each once.
	Shares []share `json:"shares"`
	Prices Prices  `json:"prices"`
	// Path has the operators of the path of the term copies, if there is one.
	Path []string `json:"path,omitempty"`
}

// A share is the least work of one cluster for a number of batch elements.
type share struct {
	Batch int64 `json:"batch"`
	// Bytes that must cross the DDR: of weights, of rows that are looked up, of inputs and of outputs.
	WeightBytes float64 `json:"weight_bytes"`
	RowBytes    float64 `json:"row_bytes"`
	InputBytes  float64 `json:"input_bytes"`
	OutputBytes float64 `json:"output_bytes"`
	// Loads from the DDR, in all and before the first result.
	Loads       float64 `json:"loads"`
	LoadsBefore float64 `json:"loads_before_results"`

	Operators []Operator `json:"operators"`
	Series    []stretch  `json:"series"`
	// Rows of the terms loads, then series and series, then loads, where they are others; of the least share.
	LoadsThen []stretch `json:"loads_then_series,omitempty"`
	ThenLoads []stretch `json:"series_then_loads,omitempty"`
}

// An Operator is the least that one takes of each unit, and of all behind its products.
type Operator struct {
	Name    string  `json:"name"`
	Needed  int64   `json:"needed_elements"` // of all outputs
	Matrix  float64 `json:"matrix_s"`
	Vector  float64 `json:"vector_s"`
	Special float64 `json:"special_s"`
	Behind  float64 `json:"behind_s"`
}

// A stretch ends with a cut, or with the network ("").
type stretch struct {
	Cut     string  `json:"cut"`
	Seconds float64 `json:"stretch_s"`
}

// Prices are the weights of the term kernels: of bytes across the DDR and of products; those of launches are the
// rest of the former to 1. Path and LLB are the weights of these in the term copies; that of the matrix unit is the
// rest to 1.
type Prices struct {
	Bytes    float64 `json:"bytes"`
	Products float64 `json:"products"`
	Path     float64 `json:"path,omitempty"`
	LLB      float64 `json:"llb,omitempty"`
}

// Prove is [Cold] with its witness.
func Prove(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (*Bound, *Witness, error) {
	b, _, v, err := bounds(ctx, net, spec, batch, lines, nil)
	return b, v, err
}

// share returns w's share.
func (w *work) share(batch int64, spec *hardware.Spec) share {
	s := share{Batch: batch, WeightBytes: w.weightBytes(), RowBytes: w.rows, InputBytes: w.in, OutputBytes: w.out,
		Operators: []Operator{}}
	s.Loads, s.LoadsBefore = w.loads(spec)
	for i, op := range w.g.Ops {
		o := Operator{Name: op.Name, Matrix: w.ops[i][matrix], Vector: w.ops[i][vector], Special: w.ops[i][special],
			Behind: w.tail[i]}
		for _, t := range op.Outputs {
			o.Needed += w.need[t].elements()
		}
		s.Operators = append(s.Operators, o)
	}
	s.Series = named(w.series().through(len(w.g.Ops)), w.g)
	return s
}

// named is a row with the names of its cuts.
func named(row []cut, g *model.Graph) (list []stretch) {
	for _, c := range row {
		name := ""
		if int(c.op) < len(g.Ops) {
			name = g.Op(c.op).Name
		}
		list = append(list, stretch{name, c.seconds})
	}
	return list
}

// other is a row unless it is the share's.
func (s *share) other(row []cut, g *model.Graph) []stretch {
	if list := named(row, g); !slices.Equal(list, s.Series) {
		return list
	}
	return nil
}

// Sizes are the numbers of batch elements that a bound is computed from.
func (w *Witness) Sizes() []int64 {
	sizes := []int64{1, 2}
	for _, s := range w.Shares {
		sizes = append(sizes, s.Batch)
	}
	most := slices.Max(sizes[2:])
	slices.Sort(sizes)
	return slices.DeleteFunc(slices.Compact(sizes), func(n int64) bool { return n > most })
}
