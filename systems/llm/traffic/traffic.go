// Package traffic asks what serves a large language model best: operators divided over chips, requests to a decoder by
// policy and by the best plan.
package traffic

import (
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
)

// Experiments lists those of the package.
func Experiments() []harness.Experiment {
	return []harness.Experiment{tensor(), servingExperiment()}
}

// short has four digits of a number.
func short(x float64) string { return fmt.Sprintf("%.4g", x) }
