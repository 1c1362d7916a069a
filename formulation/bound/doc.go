// Package bound says how fast any schedule of a network on a machine can be at most: lower
// bounds on the simulated latency of a batch, over all schedules at once, from the network
// and the machine alone. docs/formulations.md has the proofs.
//
// # What it covers
//
// Every schedule that divides the batch evenly over the clusters (scheduler.Shares) and is made of the kernel
// generator's kernels (hardware/lower), with the formulas of hardware/cost: any chunks, any groups, split along any
// dimension into any number of pieces, equal or not; any order of instances, any bindings, scopes, memory plans, spills
// and tiles; in place or not, with weights kept or not, with loads ahead of launches and layers that overlap or
// without, where clusters with equal shares do the same. On a raised machine (hardware.Raise) it covers the schedules
// of that. What it leaves out: operator costs of a caller's own, layers that [Covers] refuses, machines of several
// chips, and other divisions of the batch or of the network over the clusters, for which [AnyDivision] holds.
//
// # What it rests on
//
//   - Kernels of a cluster run one at a time, each behind a launch, and each queue in order.
//   - A layer's units start when the layers that it reads have ended, but products do without their biases.
//   - A command lasts as long as the formulas say for the core 0, of which the part is
//     no smaller than the others'. Rounding up is subadditive, so that pieces take at
//     least what the whole takes.
//   - Behind the last command of a product comes one of so many parts of its layer's vector work, at
//     most, as there are commands, each of which takes time of its own.
//   - Weights come from the DDR at least once per cluster, and from the LLB once per chunk.
//
// # Terms
//
//	work      launch + the sum over operators, for the unit with most of it
//	chain     launch + the longest path: along it the times of layers add up
//	ddr       bytes that must cross the DDR's bus, over its bandwidth
//	ddr link  those of one cluster, over its link
//	llb       bytes that must enter and leave the LLB, over its bandwidth, behind the share of a launch in which loads
//	          from the DDR alone leave it idle
//	copies    the largest weighted mean of the products' time, of the LLB's and of a path with the latencies and
//	          bytes in front of its products, if the LLB does not broadcast: cores that share columns each load
//	          a copy of the weights, those that share rows one of what these read
//	series    launch + the sum over stretches between operators that all paths pass, each at
//	          least its busiest unit and its longest path
//	one product
//	          of a network of nothing else, in one kernel: for the best division over whole rows, columns and cores the
//	          most of the busiest core's unit, its link, the LLB with all copies, and stores in a row, behind the first
//	          load and in front of the last store; or in two kernels
//	launch, then stores
//	          results cross the DDR behind the first launch and the way from a core to it; without an LLB, inputs, too
//	loads, then chain
//	          an operator starts when every cluster has the weights of all that it
//	          needs; the longest path, or the series, follows
//	series, then loads
//	          the series up to a cut with the launches of it, and then the weights that are used behind the last
//	          of it, but for what the memories on the chip hold of them
//	loads in a row
//	          the loads of a cluster stand in one queue, each with the DDR's latency (the first,
//	          if several are in flight), if all clusters do the same
//	kernels   work and launches, or what crosses the DDR, for the number of launches, chunks, groups and splits
//	          that are best for it: results that no memory holds in one piece must be split or pass the
//	          DDR, and what kernels share is loaded or computed again; or the largest weighted mean of these
//
// Only elements that the network's outputs need count.
package bound
