// Package benchmarks has machines of several kinds of core for the tests of other packages. Its own tests see with
// graphs of any number of operators how the toolkit grows.
package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// Mixed is a small machine of several kinds of core, and a small network.
func Mixed(t testing.TB, r *rand.Rand) (*hardware.Spec, *model.Graph) {
	t.Helper()
	spec, err := mixedMachine(r)
	if err != nil {
		t.Fatal(err)
	}
	g, err := MixedGraph(r)
	if err != nil {
		t.Fatal(err)
	}
	return spec, g
}

// mixedMachine is one of two or three kinds of core, of which the last may run no products.
func mixedMachine(r *rand.Rand) (*hardware.Spec, error) {
	s, err := hardware.Load("stcp920")
	if err != nil {
		return nil, err
	}
	s = s.Clone()
	classes := []string{"matrix", "reduction", "element-wise", "injective"}
	s.L1.SizeBytes = hardware.Bytes(1 << (10 + r.IntN(8)))
	s.CoreLink.BandwidthBytesPerSecond = []float64{1e9, 1e10, 1e11}[r.IntN(3)]
	first := s.CoreTypes[0]
	s.CoreTypes = nil
	for k := range 2 + r.IntN(2) {
		one := first
		one.Name, one.Count, one.Runs, one.Units = fmt.Sprintf("kind%d", k), 1+r.IntN(8), classes, nil
		for _, u := range first.Units {
			if u.Kind == hardware.Matrix {
				u.Rows, u.Cols = 1<<r.IntN(7), 1<<r.IntN(7)
			} else {
				u.Lanes = 1 << r.IntN(9)
			}
			one.Units = append(one.Units, u)
		}
		if k > 0 && r.IntN(3) == 0 {
			one.Runs = classes[1:]
		}
		s.CoreTypes = append(s.CoreTypes, one)
	}
	return s, s.Validate()
}

// MixedGraph is a small network of products, additions, softmaxes and joins of earlier results.
func MixedGraph(r *rand.Rand) (*model.Graph, error) {
	b := model.NewBuilder("kinds")
	n, d := int64(4<<r.IntN(5)), int64(8<<r.IntN(4))
	x := b.Input("x", model.F16, n, d)
	made := []model.TensorID{x}
	for i := range 3 + r.IntN(5) {
		name, from := fmt.Sprintf("op%d", i), made[r.IntN(len(made))]
		switch r.IntN(4) {
		case 0, 1:
			x = b.Op("MatMul", name, model.Attr{}, from, b.Param(name+".w", model.F16, d, d))
		case 2:
			x = b.Op("Softmax", name, model.Attr{Axis: 1}, from)
		default:
			x = b.Op("Add", name, model.Attr{}, from, made[len(made)-1])
		}
		made = append(made, x)
	}
	for _, y := range made[1:] {
		if len(b.Tensor(y).Consumers) == 0 {
			b.Output(y)
		}
	}
	return b.Build()
}
