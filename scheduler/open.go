package scheduler

import (
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
)

// OpenMachine finds an accelerator, or a machine of several, by the name of a preset or the
// path of a YAML file.
func OpenMachine(name string) (*hardware.Spec, error) { return chips.LoadMachine(name) }
