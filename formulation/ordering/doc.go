// Package ordering states and solves the instance-ordering problem: in which order do
// the instances of a network's sub-graphs run on a cluster, and which outputs are
// moved out of its local buffer and back, so that the least is moved?
//
// # The rules
//
// A sub-graph k has n_k instances. Each runs once. While one runs, the outputs that it reads, its own output and its
// workspace are in the local buffer (L1), together with whatever else is kept there; the sum may not pass the
// capacity. An output is live from its instance's run until the last instance that reads it has run, and then leaves
// the L1 at no cost; one that nothing reads leaves when its own instance ends. Between two runs a live output may be
//
//   - stored: it leaves the L1 for the shared buffer (LLB), at a cost per byte,
//     or for nothing if the LLB has a copy already (outputs never change), or
//   - loaded: it comes back at a cost per byte; the copy stays.
//
// Stores come before loads. Whole outputs move. The LLB is unbounded; network
// inputs and weights count only as far as they stand in the workspace.
//
// Objective [Traffic] is the least total cost; objective [Peak] the least capacity for which no output has to be
// moved, which ignores the problem's own capacity.
//
// # What is here
//
// [Problem] and [Result] are the two file formats; [Read] and [ReadResult] are strict about them. [Graph] is the
// problem instance by instance. [Check] recomputes a result from the rules, from the file's own words and without
// [Graph], so that it can judge everything that uses it. [Sequence] makes the moves that a fixed order needs. Instances
// have dense IDs, sub-graph by sub-graph; costs are counted in whole units of [Graph.Unit] so that sums are exact.
//
// [Methods] lists what solves it, and [Solve] runs one: greedy rules, a search over
// states, and an integer program. Each checks the others.
//
// A problem has no order exactly if some instance by itself is larger than the capacity: otherwise everything that the
// running instance does not touch can wait in the LLB. [InfeasibleError] names that instance.
//
// # Greedy rules
//
// Each rule fixes the order; the moves are then made as needed, by [Sequence].
//
//   - bfs: breadth first. All instances of one level before the next, a level being
//     the longest distance from an instance that reads nothing.
//   - dfs: Algorithm 3 of GraphTurbo (J. Zhao et al., OSDI 2023): the instance that
//     became known last and can run, runs.
//   - heavy: heavier first, the priority that the same paper names as future work
//     and does not define. Read here as: of the instances that can run, the one
//     that leaves the least behind in the local buffer, that is the smallest
//     difference of its output and of what it is the last to read; among equals
//     the one that needs the most while it runs, then the lowest ID. Heavy
//     instances so run while little else waits, and what they free is free early.
//
// None proves anything: the bound is 0, or for the peak the largest single need.
//
// # Exact methods
//
// Classes of instances that need not be told apart, the states and bounds of [Search] and the program of [CountingILP],
// with proofs, stand in docs/formulations.md, "Instance ordering". Numbers in parentheses are its equations.
package ordering
