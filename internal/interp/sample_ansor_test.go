package interp_test

import (
	"github.com/dsasched/dsasched/systems/ansor"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
)

func init() {
	randomNest = ansor.Sample
	tuning.Register()
}
