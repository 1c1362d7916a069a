// Package systems lists what stands beside the core and can be taken off it: the schedulers of other papers, what
// serves them, files of other tools, which who imports it can read, times of real machines, a caller's own grids, and
// other readings of the paper. Each system is a folder here, with its problems, heuristics, experiments and tests; its
// commands are the files of cmd/cli that bear its name, and add themselves. `scripts/without.sh NAME` shows that all
// else builds without it.
package systems

import (
	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/systems/ansor/loops"
	"github.com/dsasched/dsasched/systems/ansor/tuning"
	"github.com/dsasched/dsasched/systems/astitchgpu/stitching"
	"github.com/dsasched/dsasched/systems/exchange/stablehlo"
	"github.com/dsasched/dsasched/systems/kinds"
	"github.com/dsasched/dsasched/systems/measured"
	"github.com/dsasched/dsasched/systems/mofang/balancing"
	"github.com/dsasched/dsasched/systems/mofang/staging"
	"github.com/dsasched/dsasched/systems/readings"
)

func init() {
	for _, register := range parts {
		register()
	}
}

// parts has a call for each system that the core uses a part of.
var parts = []func(){
	stablehlo.Register, // exchange: networks of other tools
	tuning.Register,    // ansor: strategy ansor of row nest
	staging.Register,   // mofang: division of a network into stages
	kinds.Register,     // kinds: division of layers between kinds of core
}

// all has one call for each system that has experiments.
var all = []func() []harness.Experiment{
	readings.Experiments,  // readings: the published numbers under other readings of the paper's text
	measured.Experiments,  // measured: the simulator against real machines
	stitching.Experiments, // astitchgpu: kernels of a GPU stitched together
	balancing.Experiments, // mofang: layers side by side, and pipelines of devices
	loops.Experiments,     // ansor: loops of kernels, searched
}

// Experiments lists those of all systems.
func Experiments() (list []harness.Experiment) {
	for _, of := range all {
		list = append(list, of()...)
	}
	return list
}
