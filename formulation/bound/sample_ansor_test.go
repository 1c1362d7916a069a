package bound_test

import (
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

func init() {
	sample = ansor.Sample
	tuning.Register()
}
