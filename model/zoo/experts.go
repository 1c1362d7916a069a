package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
)

// A Mixture is the feed-forwards of a decoder's layer, of which each token takes some.
type Mixture struct {
	Name   string
	Source string
	of     causal
	dtype  model.DType
}

var mixtures = []struct {
	name, source string
	of           causal
}{
	{"mixtral-8x7b", "Jiang et al., arXiv 2401.04088, Table 1", mixtral},
	{"olmoe-1b-7b", "recalled: Muennighoff et al., arXiv 2409.02060",
		causal{Hidden: 2048, FFN: 1024, Experts: 64, Chosen: 8}},
}

// Mixtures lists the names that OpenMixture takes.
func Mixtures() []string {
	var names []string
	for _, m := range mixtures {
		names = append(names, m.name)
	}
	return names
}

// OpenMixture gives the experts of a layer.
func OpenMixture(name string, dtype model.DType) (*Mixture, error) {
	for _, m := range mixtures {
		if m.name == name {
			return &Mixture{m.name, m.source, m.of, dtype}, nil
		}
	}
	return nil, fmt.Errorf("unknown mixture of experts %q%s", name, suggest.Expected(name, Mixtures()))
}

// Experts are those of a layer, Chosen those of them that a token takes.
func (m *Mixture) Experts() int64 { return m.of.Experts }

// Chosen is the number of experts of a token.
func (m *Mixture) Chosen() int64 { return m.of.Chosen }

// TokenBytes is what a token has on its way to an expert, and on its way back.
func (m *Mixture) TokenBytes() int64 { return m.dtype.Bytes(m.of.Hidden) }

// Graph has an expert for each list of runs, each of batch times so many tokens.
func (m *Mixture) Graph(batch int64, experts [][]int64) (*model.Graph, error) {
	b := &sequences{model.NewBuilder(m.Name + "-experts"), m.dtype}
	for i, runs := range experts {
		name := fmt.Sprintf("expert%d", i)
		gate, up := b.Param(name+".gate.weight", b.dtype, m.of.Hidden, m.of.FFN),
			b.Param(name+".up.weight", b.dtype, m.of.Hidden, m.of.FFN)
		down := b.Param(name+".down.weight", b.dtype, m.of.FFN, m.of.Hidden)
		for k, tokens := range runs {
			run := fmt.Sprintf("%s.run%d", name, k)
			x := b.Input(run, b.dtype, batch, tokens, m.of.Hidden)
			y := b.Op("Silu", run+".silu", model.Attr{}, b.Op("MatMul", run+".gate", model.Attr{}, x, gate))
			y = b.Op("Mul", run+".gated", model.Attr{}, y, b.Op("MatMul", run+".up", model.Attr{}, x, up))
			b.Output(b.Op("MatMul", run+".down", model.Attr{}, y, down))
		}
	}
	return b.Build()
}
