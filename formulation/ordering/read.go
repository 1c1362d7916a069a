package ordering

import (
	"errors"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/internal/strict"
	"github.com/dsasched/dsasched/regular"
)

// Load reads a problem from a file.
func Load(path string) (*Problem, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, err
	}
	return Read(path, data)
}

// LoadResult reads a result from a file.
func LoadResult(path string) (*Result, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, err
	}
	return ReadResult(path, data)
}

// Read reads and validates a problem. The name of the file is for errors, which
// are of type [*InputError]. Unknown, missing and repeated fields are errors.
func Read(file string, data []byte) (*Problem, error) {
	p := &Problem{}
	if err := strict.Decode(file, data, p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		var e *InputError
		if errors.As(err, &e) {
			e.File = file
		}
		return nil, err
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
		Steps: j.Steps}
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
