//go:build !cgo

package highs

import (
	"fmt"

	"github.com/dsasched/dsasched/formulation/milp"
)

// New returns an error that wraps [ErrUnavailable]: this build has no HiGHS.
func New() (milp.Solver, error) { return nil, fmt.Errorf("highs: %w", ErrUnavailable) }

// Version is "unavailable": this build has no HiGHS.
func Version() string { return "unavailable" }
