// Package graphturbo implements the greedy decisions of
//
//	J. Zhao et al., "Effectively Scheduling Computational Graphs of Deep Neural
//	Networks toward Their Domain-Specific Accelerators", OSDI 2023
//
// in the paper's order: Split (Algorithm 1 and Eq. 1), Group (Algorithm 2), BFS and DFS orders (Algorithm 3), BindGrid
// (Algorithm 4), Join (§3.5) and Place (§4.3). Where the pseudo-code is silent or contradicts the text, the reading is
// named at the code and in docs/deviations.md.
//
// # How they fit together
//
//	schedule.SplitOptions ─► Splitter.SplitInfo ─► Best     how a set of operators may be split
//	                                 │
//	graph ─► Group (merges while the rules allow) ─► schedule.Grouping
//	      ─► schedule.NewInstanceGraph ─► Order (the better of BFS and DFS)
//	      ─► BindGrid ─► Join ─► Schedule.BuildSteps ─► Place
//
// Each is a function of its arguments alone and can be replaced by another one; package
// scheduler composes them. Sizes are in bytes, for one cluster working on its
// chunk of the batch; ties end in the smallest ID, so that the answers repeat.
package graphturbo
