package exact

import (
	"github.com/dsasched/dsasched/formulation/binding"
	"github.com/dsasched/dsasched/scheduler"
)

var Monotone = monotone

var KindOf = kindOf

func KindProblem(d *scheduler.Draft) (*binding.Problem, error) {
	p, err := newKindProblem(d)
	if err != nil {
		return nil, err
	}
	return &p.Problem, nil
}
