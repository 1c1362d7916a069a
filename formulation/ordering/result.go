package ordering

import (
	"encoding/json"
	"fmt"
	"math"
)

// An Objective is what an order is to be best at.
type Objective string

// The objectives.
const (
	Traffic Objective = "traffic" // least cost of stores and loads
	Peak    Objective = "peak"    // least capacity without any
)

// A Status is what is known of an order.
type Status string

// The statuses.
const (
	Optimal    Status = "optimal"    // proven to be a best one
	Feasible   Status = "feasible"   // its bound is below its cost
	Infeasible Status = "infeasible" // there is none
	Limit      Status = "limit"      // none was found within the limits
)

// A Step is a run of one instance, with the moves before it.
type Step struct {
	Store []Ref `json:"store"` // leave the LB
	Load  []Ref `json:"load"`  // then come back
	Run   Ref   `json:"run"`
}

// A Result is a method's answer. Its JSON form leaves out what its status gives
// no meaning to.
type Result struct {
	Method    string
	Objective Objective
	Status    Status
	// Cost of the order, or its capacity in bytes for [Peak]; no order costs less
	// than Bound.
	Cost, Bound float64
	PeakBytes   int64 // the most that the LB holds
	Seconds     float64
	Steps       []Step
	Infeasible  *InfeasibleError // for status Infeasible
}

// An InfeasibleError is the proof that a problem has no order: an instance that
// does not fit by itself.
type InfeasibleError struct {
	Instance     Ref
	Tensors      []Ref // what it reads, then its own output
	MissingBytes int64
}

func (e *InfeasibleError) Error() string {
	return fmt.Sprintf("instance %d of sub-graph %d does not fit: its %d tensors and its workspace need %d bytes more than the capacity",
		e.Instance[1], e.Instance[0], len(e.Tensors), e.MissingBytes)
}

// resultJSON is the file format. What is absent has no meaning.
type resultJSON struct {
	Method       string    `json:"method"`
	Objective    Objective `json:"objective"`
	Status       Status    `json:"status"`
	Cost         *float64  `json:"cost,omitempty"`
	Bound        *float64  `json:"bound,omitempty"`
	PeakBytes    *int64    `json:"peak_bytes,omitempty"`
	Seconds      float64   `json:"seconds"`
	Instance     *Ref      `json:"instance,omitempty"`
	Tensors      []Ref     `json:"tensors,omitempty"`
	MissingBytes *int64    `json:"missing_bytes,omitempty"`
	Steps        []Step    `json:"steps"`
}

// MarshalJSON writes the file format.
func (r *Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{Method: r.Method, Objective: r.Objective, Status: r.Status, Seconds: r.Seconds, Steps: r.Steps}
	if j.Steps == nil {
		j.Steps = []Step{}
	}
	for i := range j.Steps {
		s := &j.Steps[i]
		if s.Store == nil {
			s.Store = []Ref{}
		}
		if s.Load == nil {
			s.Load = []Ref{}
		}
	}
	switch r.Status {
	case Optimal, Feasible:
		j.Cost, j.Bound, j.PeakBytes = &r.Cost, &r.Bound, &r.PeakBytes
	case Limit:
		j.Bound = &r.Bound
	case Infeasible:
		if e := r.Infeasible; e != nil {
			j.Instance, j.Tensors, j.MissingBytes = &e.Instance, e.Tensors, &e.MissingBytes
		}
	}
	return json.Marshal(j)
}

// HasOrder reports whether the result comes with an order.
func (r *Result) HasOrder() bool { return r.Status == Optimal || r.Status == Feasible }

// Gap is how far Bound is below Cost, as a share of Cost: 0 where they meet,
// +Inf without an order.
func (r *Result) Gap() float64 {
	switch {
	case !r.HasOrder():
		return math.Inf(1)
	case r.Cost == r.Bound:
		return 0
	}
	return (r.Cost - r.Bound) / r.Cost
}
