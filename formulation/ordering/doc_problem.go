// Package ordering states the instance-ordering problem: in which order do the
// instances of a network's sub-graphs run on a cluster, and which outputs are
// moved out of its local buffer and back, so that the least is moved?
//
// # The rules
//
// A sub-graph k has n_k instances. Each runs once. While one runs, the outputs
// that it reads, its own output and its workspace are in the local buffer (LB),
// together with whatever else is kept there; the sum may not pass the capacity.
// An output is live from its instance's run until the last instance that reads
// it has run, and then leaves the LB at no cost; one that nothing reads leaves
// when its own instance ends. Between two runs a live output may be
//
//   - stored: it leaves the LB for the shared buffer (GB), at a cost per byte,
//     or for nothing if the GB has a copy already (outputs never change), or
//   - loaded: it comes back at a cost per byte; the copy stays.
//
// Stores come before loads. Whole outputs move. The GB is unbounded; network
// inputs and weights count only as far as they stand in the workspace.
//
// Objective [Traffic] is the least total cost; objective [Peak] the least
// capacity for which no output has to be moved, which ignores the problem's own
// capacity.
//
// # What is here
//
// [Problem] and [Result] are the two file formats; [Read] and [ReadResult] are
// strict about them. [Graph] is the problem instance by instance. [Check]
// recomputes a result from the rules, from the file's own words and without
// [Graph], so that it can judge everything that uses it. [Sequence] makes the
// moves that a fixed order needs. Instances have dense IDs, sub-graph by
// sub-graph; costs are counted in whole units of [Graph.Unit] so that sums are
// exact.
//
// A problem has no order exactly if some instance by itself is larger than the
// capacity: otherwise everything that the running instance does not touch can
// wait in the GB. [InfeasibleError] names that instance.
package ordering
