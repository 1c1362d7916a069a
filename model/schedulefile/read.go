package schedulefile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/dsasched/dsasched/internal/strict"

	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
)

// Limits that keep a small file from asking for a large machine.
const (
	maxOps       = 100_000
	maxRank      = 16
	maxFactor    = 1 << 14 // instances of one group
	maxInstances = 1 << 16 // of one schedule
	maxSteps     = 200_000 // layers of all instances
	maxSchedules = 1 << 10
	maxPieces    = 64
	maxCount     = 1 << 20 // batch elements, iterations
)

// Load reads a file from the disk.
func Load(path string) (*File, error) { return safefile.Load(path, Read) }

// Read reads a file and verifies what can be said without an accelerator: that the fields are there, and that the
// networks are sound. Errors are of type [*InputError]; file is the name that they give. Whether the schedule obeys the
// rules is for [Check] to say.
func Read(file string, data []byte) (*File, error) {
	// Of another version, the other fields may be anything.
	var head struct {
		Kind    any `json:"kind"`
		Version any `json:"version"`
	}
	if json.Unmarshal(data, &head) == nil {
		if k, ok := head.Kind.(string); ok && k != Kind {
			return nil, strict.Error(file, "kind", strict.Quote(k), strict.Quote(Kind))
		}
		if v, ok := head.Version.(float64); ok && head.Kind == Kind && v != Version {
			return nil, strict.Error(file, "version", fmt.Sprint(v), fmt.Sprintf("%d, which this program reads", Version))
		}
	}
	f := &File{}
	if err := Decode(file, data, f); err != nil {
		return nil, err
	}
	bad := func(at, found, expected string) (*File, error) {
		return nil, strict.Error(file, at, found, expected)
	}
	switch {
	case f.Kind != Kind:
		return bad("kind", strict.Quote(f.Kind), strict.Quote(Kind))
	case f.Version != Version:
		return bad("version", fmt.Sprint(f.Version), fmt.Sprint(Version))
	case f.Hardware.Level != "lb" && f.Hardware.Level != "gb":
		return bad("hardware.level", strict.Quote(f.Hardware.Level), `"lb" or "gb"`)
	case f.Generator.KeepQuarters < 0 || f.Generator.KeepQuarters > 4:
		return bad("generator.keep_quarters", fmt.Sprint(f.Generator.KeepQuarters), "1 to 4, or none")
	case f.Generator.Pieces < 0 || f.Generator.Pieces > maxPieces:
		return bad("generator.pieces", fmt.Sprint(f.Generator.Pieces), fmt.Sprintf("1 to %d, or none", maxPieces))
	case f.Generator.WeightTiles < 0 || f.Generator.WeightTiles > maxPieces:
		return bad("generator.weight_tiles", fmt.Sprint(f.Generator.WeightTiles), fmt.Sprintf("1 to %d, or none", maxPieces))
	case f.Generator.LoadTiles < 0 || f.Generator.LoadTiles > maxPieces:
		return bad("generator.load_tiles", fmt.Sprint(f.Generator.LoadTiles), fmt.Sprintf("1 to %d, or none", maxPieces))
	case f.Division != "" && f.Division != "pipeline" && f.Division != "layers" && f.Division != "kinds":
		return bad("division", strict.Quote(f.Division), `"pipeline", "layers" or "kinds", or none`)
	case f.Batch < 1 || f.Batch > maxCount:
		return bad("batch", fmt.Sprint(f.Batch), fmt.Sprintf("1 to %d", maxCount))
	case len(f.Schedules) == 0 || len(f.Schedules) > maxSchedules:
		return bad("schedules", fmt.Sprintf("%d of them", len(f.Schedules)), fmt.Sprintf("1 to %d", maxSchedules))
	}
	for i := range f.Schedules {
		at := fmt.Sprintf("schedules[%d]", i)
		p := &f.Schedules[i]
		if p.Batch < 1 || p.Batch > maxCount {
			return bad(at+".batch", fmt.Sprint(p.Batch), fmt.Sprintf("1 to %d", maxCount))
		}
		if _, ok := parseLevel(p.Outputs); !ok {
			return bad(at+".outputs", strict.Quote(p.Outputs), `"lb", "gb" or "ddr"`)
		}
		if p.WeightRoom.Check() != nil || p.WeightRoom != f.Schedules[0].WeightRoom {
			return bad(at+".weight_room", strict.Quote(string(p.WeightRoom)),
				`"pass", "twelfth" or none, alike in all schedules`)
		}
		if _, err := p.Graph.build(file, at+".graph"); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// build makes the graph and verifies that it is sound.
func (gr *Graph) build(file, at string) (g *model.Graph, err error) {
	bad := func(field, found, expected string) error {
		return strict.Error(file, at+"."+field, found, expected)
	}
	if len(gr.Ops) == 0 || len(gr.Ops) > maxOps {
		return nil, bad("operators", fmt.Sprintf("%d of them", len(gr.Ops)), fmt.Sprintf("1 to %d", maxOps))
	}
	ids := func(list []int, field string) ([]model.TensorID, error) {
		out := make([]model.TensorID, len(list))
		for i, id := range list {
			if id < 0 || id >= len(gr.Tensors) {
				return nil, bad(fmt.Sprintf("%s[%d]", field, i), fmt.Sprint(id),
					fmt.Sprintf("a tensor, 0 to %d", len(gr.Tensors)-1))
			}
			out[i] = model.TensorID(id)
		}
		return out, nil
	}
	g = &model.Graph{Name: gr.Name}
	for i, t := range gr.Tensors {
		field := fmt.Sprintf("tensors[%d]", i)
		if t.ID != i {
			return nil, bad(field+".id", fmt.Sprint(t.ID), fmt.Sprintf("%d, its position", i))
		}
		if len(t.Shape) > maxRank {
			return nil, bad(field+".shape", fmt.Sprintf("%d dimensions", len(t.Shape)), fmt.Sprintf("at most %d", maxRank))
		}
		if err := model.Shape(t.Shape).Check(); err != nil {
			return nil, bad(field+".shape", fmt.Sprint(t.Shape),
				fmt.Sprintf("extents of at least 1, together at most %d elements", model.MaxElements))
		}
		dt, err := model.ParseDType(t.DType)
		if err != nil {
			return nil, bad(field+".dtype", strict.Quote(t.DType), "an element type, such as f16")
		}
		u := &model.Tensor{ID: model.TensorID(i), Name: t.Name, Shape: t.Shape, DType: dt, Learned: t.Learned,
			Ints: t.Ints, Causal: t.Causal}
		switch t.Role {
		case model.Activation.String():
		case model.Input.String():
			u.Role = model.Input
		case model.Constant.String():
			u.Role = model.Constant
		default:
			return nil, bad(field+".role", strict.Quote(t.Role),
				fmt.Sprintf("%v, %v or %v", model.Activation, model.Input, model.Constant))
		}
		g.Tensors = append(g.Tensors, u)
	}
	if g.Inputs, err = ids(gr.Inputs, "inputs"); err != nil {
		return nil, err
	}
	if g.Outputs, err = ids(gr.Outputs, "outputs"); err != nil {
		return nil, err
	}
	for i, o := range gr.Ops {
		field := fmt.Sprintf("operators[%d]", i)
		if o.ID != i {
			return nil, bad(field+".id", fmt.Sprint(o.ID), fmt.Sprintf("%d, its position", i))
		}
		if _, ok := model.Info(o.Kind); !ok {
			return nil, bad(field+".kind", strict.Quote(string(o.Kind)), "a kind of operator that the package model knows")
		}
		op := &model.Op{ID: model.OpID(i), Name: o.Name, Kind: o.Kind, Attr: cmp.Or(o.Attr, &model.Attr{})}
		if op.Inputs, err = ids(o.Inputs, field+".inputs"); err != nil {
			return nil, err
		}
		if op.Outputs, err = ids(o.Outputs, field+".outputs"); err != nil {
			return nil, err
		}
		if len(op.Outputs) == 0 {
			return nil, bad(field+".outputs", "none", "at least one tensor")
		}
		g.Ops = append(g.Ops, op)
	}
	broken := -1 // operator
	if err := probe(g, &broken); err != nil {
		field := "operators"
		if broken >= 0 {
			field = fmt.Sprintf("operators[%d].attributes", broken)
		}
		return nil, strict.Error(file, at+"."+field, err.Error(), "a sound network")
	}
	for i, op := range g.Ops {
		read := false
		for _, o := range op.Outputs {
			read = read || len(g.Tensor(o).Consumers) > 0 || g.IsOutput(o)
		}
		if !read {
			return nil, bad(fmt.Sprintf("operators[%d]", i), fmt.Sprintf("operator %q, whose outputs have no reader", op.Name),
				"a reader, or a network output")
		}
	}
	return g, nil
}

// probe validates a graph and asks each operator all that a schedule asks of it. The
// kinds of operators trust their attributes, which all other makers of graphs have
// checked and which here may be anything: what panics is an error of the file.
func probe(g *model.Graph, broken *int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(runtime.Error); !ok {
				panic(p)
			}
			err = errors.New("attributes that do not fit the operator's tensors")
		}
	}()
	if err := g.Validate(); err != nil {
		return err
	}
	if err := g.Finish(); err != nil {
		return err
	}
	for i, op := range g.Ops {
		*broken = i
		g.Work(op, nil)
		for k, o := range op.Outputs {
			whole := model.Whole(g.Tensor(o).Shape)
			g.Sequential(op, k)
			g.Work(op, whole)
			g.MatrixDims(op, whole)
			for in := range op.Inputs {
				for d, a := range g.Access(op, k, in) {
					if !a.Full && (a.Out < 0 || a.Out >= len(whole)) {
						return fmt.Errorf("dimension %d of input %d that follows no dimension of the output", d, in)
					}
				}
				r := g.InputRegion(op, k, in, whole)
				for d, iv := range r {
					if n := g.Tensor(op.Inputs[in]).Shape[d]; iv.Lo < 0 || iv.Hi > n || iv.Lo > iv.Hi {
						return fmt.Errorf("an operator that reads [%d, %d) of the %d elements of input %d along dimension %d",
							iv.Lo, iv.Hi, n, in, d)
					}
				}
			}
		}
	}
	*broken = -1
	return nil
}

// InputError describes a mistake in a file.
type InputError = strict.InputError

// Decode reads JSON into the struct that v points to: every field once, unless its tag has
// omitempty, and nothing else. Errors are of type [*InputError].
func Decode(file string, data []byte, v any) error { return strict.Decode(file, data, v) }
