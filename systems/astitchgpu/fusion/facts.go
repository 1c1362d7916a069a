package fusion

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// Role is the role of an operator on a SIMT machine.
type Role uint8

// The roles.
const (
	Light  Role = iota // element-wise or a move
	Reduce             // a reduction of rows to one element each
	Heavy              // a closed library call
	View               // moves nothing
)

// libraries are the reductions and moves that frameworks leave to libraries, or that
// are no reduction to one element per row.
var libraries = map[model.Kind]bool{
	"MaxPool": true, "AveragePool": true, "LRN": true, "Resize": true, "TopK": true, "CumSum": true, "Scatter": true,
	// Composite operators whose variant package model/grain does not understand.
	"Softmax": true, "LayerNorm": true, "RMSNorm": true, "GroupNorm": true,
}

// UnknownError names an operator that the SIMT model cannot place.
type UnknownError struct {
	Op   string
	Kind model.Kind
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("operator %q (%s) is not known to the SIMT model", e.Op, e.Kind)
}

// Roles gives the role of every operator, or an *[UnknownError].
func Roles(g *model.Graph) ([]Role, error) {
	roles := make([]Role, len(g.Ops))
	for i, op := range g.Ops {
		switch class := op.Class(); {
		case op.Kind == "Unknown":
			return nil, &UnknownError{op.Name, op.Kind}
		case class == model.MatrixClass || libraries[op.Kind]:
			roles[i] = Heavy
		case class == model.ReductionClass:
			roles[i] = Reduce
		case class == model.ViewClass:
			roles[i] = View
		}
	}
	return roles, nil
}

// prefix is the number of leading dimensions that hold the product rows, or -1.
func prefix(s model.Shape, rows int64) int {
	p := int64(1)
	for d := 0; ; d++ {
		if p == rows {
			return d
		}
		if d == len(s) || p > rows {
			return -1
		}
		p *= s[d]
	}
}

// inStep reports whether row r of output out of op needs of input k no more than row r,
// with both cut into so many rows.
func inStep(g *model.Graph, op *model.Op, out, k int, rows int64) bool {
	s, o := g.Tensor(op.Inputs[k]).Shape, g.Tensor(op.Outputs[out]).Shape
	ds, do := prefix(s, rows), prefix(o, rows)
	if ds < 0 || do < 0 {
		return false
	}
	if op.Class() == model.ViewClass {
		return true // the same elements in the same order
	}
	access := g.Access(op, out, k)
	d := 0 // of the output
	for i := range ds {
		if s[i] == 1 {
			continue
		}
		for d < do && o[d] == 1 {
			d++
		}
		a := access[i]
		if d == do || a.Full || a.Out != d || a.Num != 1 || a.Den != 1 || a.A != 0 || a.B != 0 || s[i] != o[d] {
			return false
		}
		d++
	}
	return true
}
