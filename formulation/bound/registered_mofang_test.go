package bound_test

import (
	"slices"

	"github.com/dsasched/dsasched/systems/mofang/staging"
)

func init() {
	staging.Register()
	divisions = slices.Insert(divisions, 0, staging.Pipelined)
}
