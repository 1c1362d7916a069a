package scheduler

import (
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model/network"
)

// OpenNetwork finds a network by the name of the zoo or the path of an ONNX file, with
// the default options of package network.
func OpenNetwork(name string) (network.Network, error) {
	return network.Open(name, network.Options{})
}

// OpenMachine finds an accelerator, or a machine of several, by the name of a preset or the
// path of a YAML file.
func OpenMachine(name string) (*hardware.Spec, error) { return chips.LoadMachine(name) }
