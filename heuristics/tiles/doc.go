// Package tiles has this project's own greedy strategies: the whole network as a kernel, layers spread evenly over the
// cores of a cluster, and products and attentions in tiles of rows, columns and reduction. The rule for tiles has a
// closed form, which package formulation/tiling states; the fastest of its few best are simulated alone. Sizes are in
// bytes, times in seconds or picoseconds.
package tiles

import "github.com/dsasched/dsasched/scheduler"

// Groups are the strategies of row group that make the network one kernel.
func Groups() []scheduler.Strategy { return []scheduler.Strategy{oneKernel} }

// EvenBinding spreads each layer over as many cores as leave the largest part the smallest, upon bindings of instances
// by another strategy.
func EvenBinding(plain scheduler.Strategy) scheduler.Strategy { return even(plain, false) }

// HeadsBinding is EvenBinding with each head of an attention on one core.
func HeadsBinding(plain scheduler.Strategy) scheduler.Strategy { return even(plain, true) }

// GreedyKinds gives each layer the kind of core on which it alone takes least.
func GreedyKinds() scheduler.Strategy { return greedyKinds }

// Nests gives products and attentions the fastest of the tilings of least closed form.
func Nests() scheduler.Strategy { return tiledNests }

// Moves are those of a search that change the tiles of a layer.
func Moves() []scheduler.Move { return []scheduler.Move{{Name: "tile", Weight: 2, Make: moveTile}} }
