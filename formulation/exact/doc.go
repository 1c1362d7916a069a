// Package exact has the strategies that decide stages exactly. Each poses a problem of a package of formulation/ on a
// draft, solves it from the greedy answer, and writes the answer back: groups and splits ([split]), the order of
// instances ([ordering]), bindings and scopes ([binding]), both together ([joint]), what leaves the L1s ([allocate]),
// and kinds of cores. Costs are bytes moved or seconds; each answer says its bound. Where its formulas differ from the
// simulator, the draft simulates answers that are nearly as good, and keeps the fastest.
package exact

import "github.com/dsasched/dsasched/scheduler"

// Splits chooses groups and factors.
func Splits() []scheduler.Strategy { return []scheduler.Strategy{exactSplit} }

// Heavy is the greedy order of package ordering: what frees most first.
func Heavy() scheduler.Strategy { return heaviestFirst }

// Orders choose the order of instances, the last two with bindings and scopes together.
func Orders() []scheduler.Strategy {
	return []scheduler.Strategy{exactOrder, ilpOrder, jointOrder, jointProgram}
}

// Bindings choose bindings and scopes.
func Bindings() []scheduler.Strategy {
	return []scheduler.Strategy{exactBinding, ilpBinding, jointBinding, jointProgramBinding}
}

// Spills choose what leaves the L1s.
func Spills() []scheduler.Strategy { return []scheduler.Strategy{exactSpills} }

// Kinds choose the kind of core of each layer.
func Kinds() []scheduler.Strategy { return []scheduler.Strategy{exactKinds, ilpKinds} }

// Moves lists the moves that solve a subproblem exactly: the bindings of all layers of a group.
func Moves() []scheduler.Move { return []scheduler.Move{{Name: "layers", Weight: 4, Make: moveLayers}} }
