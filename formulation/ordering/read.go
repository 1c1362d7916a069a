package ordering

import (
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/internal/strict"
)

// Load reads a problem from a file.
func Load(path string) (*Problem, error) { return safefile.Load(path, Read) }

// LoadResult reads a result for a problem from a file. A file that lists the instances alone, as {"order": [[sub-graph,
// instance], ...]}, gets the moves of [Sequence] for [Traffic]. Whether a result keeps the rules is for [Check] to say.
func LoadResult(path string, p *Problem) (*Result, error) {
	data, err := safefile.Read(path)
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil || keys["order"] == nil {
		return ReadResult(path, data)
	}
	var given struct {
		Order []Ref `json:"order"`
	}
	if err := strict.Decode(path, data, &given); err != nil {
		return nil, err
	}
	g := NewGraph(p)
	ids := make(map[Ref]int, len(g.Refs))
	for i, r := range g.Refs {
		ids[r] = i
	}
	order := make([]int, len(given.Order))
	for k, r := range given.Order {
		i, ok := ids[r]
		if !ok {
			return nil, &InputError{File: path, Field: fmt.Sprintf("order[%d]", k), Found: fmt.Sprint(r),
				Expected: "an instance of the problem, [sub-graph, instance]"}
		}
		order[k] = i
	}
	r, err := Fixed("given", g, order, Traffic)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Read reads and validates a problem. The name of the file is for errors, which
// are of type [*InputError]. Unknown, missing and repeated fields are errors.
func Read(file string, data []byte) (*Problem, error) {
	p := &Problem{}
	if err := strict.Decode(file, data, p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, strict.In(file, "", err)
	}
	return p, nil
}

// ReadResult reads a result. Whether it fits a problem is for [Check] to say.
func ReadResult(file string, data []byte) (*Result, error) {
	var j resultJSON
	if err := strict.Decode(file, data, &j); err != nil {
		return nil, err
	}
	missing := func(field string) (*Result, error) {
		return nil, &InputError{File: file, Field: field, Found: "nothing", Expected: "the field"}
	}
	r := &Result{Method: j.Method, Objective: j.Objective, Status: j.Status, Stop: j.Stop, Seconds: j.Seconds,
		Steps: j.Steps, Effort: j.Effort}
	if j.Cost != nil {
		r.Cost = *j.Cost
	}
	if j.Bound != nil {
		r.Bound = *j.Bound
	}
	if j.PeakBytes != nil {
		r.PeakBytes = *j.PeakBytes
	}
	switch j.Status {
	case milp.Optimal, milp.Feasible:
		switch {
		case j.Cost == nil:
			return missing("cost")
		case j.Bound == nil:
			return missing("bound")
		case j.PeakBytes == nil:
			return missing("peak_bytes")
		}
	case milp.Infeasible:
		switch {
		case j.Instance == nil:
			return missing("instance")
		case j.Tensors == nil:
			return missing("tensors")
		case j.MissingBytes == nil:
			return missing("missing_bytes")
		}
		r.Infeasible = &InfeasibleError{Instance: *j.Instance, Tensors: j.Tensors, MissingBytes: *j.MissingBytes}
	}
	return r, nil
}
