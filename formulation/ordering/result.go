package ordering

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
)

// An Objective is the quantity that an order minimises.
type Objective string

// The objectives.
const (
	Traffic Objective = "traffic" // least cost of stores and loads
	Peak    Objective = "peak"    // least capacity without any
)

// Options are the settings of every method; a start is an order of all instances by ID.
type Options = solve.Options[[]int]

// A Step is a run of one instance, with the moves before it.
type Step struct {
	Store []Ref `json:"store"` // leave the L1
	Load  []Ref `json:"load"`  // then come back
	Run   Ref   `json:"run"`
}

// A Result is a method's answer. Its JSON form leaves out what its status gives no meaning to.
type Result struct {
	Method    string
	Objective Objective
	Status    milp.Status
	Stop      milp.Stop // why the method ended without a proof
	// Cost of the order, or its capacity in bytes for [Peak]; no order costs less than Bound.
	Cost, Bound float64
	PeakBytes   int64 // the most that the L1 holds
	Seconds     float64
	Steps       []Step
	Infeasible  *InfeasibleError // for status Infeasible
	Effort      *milp.Effort     // of the integer program
}

// An InfeasibleError is the proof that a problem has no order: an instance that does not fit by itself.
type InfeasibleError struct {
	Instance     Ref   `json:"instance"`
	Tensors      []Ref `json:"tensors"` // what it reads, then its own output
	MissingBytes int64 `json:"missing_bytes"`
}

func (e *InfeasibleError) Error() string {
	return fmt.Sprintf(
		"instance %d of sub-graph %d does not fit: its %d tensors and its workspace need %d bytes more than the capacity",
		e.Instance[1], e.Instance[0], len(e.Tensors), e.MissingBytes)
}

// resultJSON is the file format. What is absent has no meaning.
type resultJSON struct {
	Method       string       `json:"method" read:"optional"`
	Objective    Objective    `json:"objective"`
	Status       milp.Status  `json:"status" words:"optimal, feasible, infeasible or limit"`
	Stop         milp.Stop    `json:"stop,omitempty" words:"a reason to stop, such as \"time limit\""`
	Cost         *float64     `json:"cost,omitempty"`
	Bound        *float64     `json:"bound,omitempty"`
	PeakBytes    *int64       `json:"peak_bytes,omitempty"`
	Seconds      float64      `json:"seconds" read:"optional"`
	Processor    float64      `json:"processor_s,omitempty" read:"optional"` // of the command that made the file
	Instance     *Ref         `json:"instance,omitempty"`
	Tensors      []Ref        `json:"tensors,omitempty"`
	MissingBytes *int64       `json:"missing_bytes,omitempty"`
	Steps        []Step       `json:"steps"`
	Effort       *milp.Effort `json:"program,omitempty"`
}

// MarshalJSON writes the file format.
func (r *Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{Method: r.Method, Objective: r.Objective, Status: r.Status, Stop: r.Stop,
		Seconds: r.Seconds, Steps: r.Steps, Effort: r.Effort}
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
	case milp.Optimal, milp.Feasible:
		j.Cost, j.Bound, j.PeakBytes = &r.Cost, &r.Bound, &r.PeakBytes
	case milp.Limit:
		j.Bound = &r.Bound
	case milp.Infeasible:
		if e := r.Infeasible; e != nil {
			j.Instance, j.Tensors, j.MissingBytes = &e.Instance, e.Tensors, &e.MissingBytes
		}
	}
	return json.Marshal(j)
}

// finish sets what only the method knows.
func (r *Result) finish(began time.Time, stop milp.Stop) {
	r.Seconds = time.Since(began).Seconds()
	if r.Status != milp.Optimal {
		r.Stop = stop
	}
}

// HasOrder reports whether the result comes with an order.
func (r *Result) HasOrder() bool { return r.Status.HasValues() }

// Outcome summarises the answer, in the unit of Cost.
func (r *Result) Outcome() solve.Outcome {
	return solve.Outcome{Status: r.Status, Objective: r.Cost, Bound: r.Bound, Stop: r.Stop}.If(r.HasOrder())
}
