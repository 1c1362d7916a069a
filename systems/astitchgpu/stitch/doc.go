// Package stitch decides exactly what AStitch (ASPLOS 2022) decides by rules: which operators share a kernel, and
// through which memory the parts of a kernel pass their data.
//
// # The problem
//
// Units are operators in topological order, arcs say which reads which. A plan puts every unit into one kernel and
// gives each kernel a choice: of its open decisions (which values go through global memory although shared memory
// would do; whether groups merge), numbered by the pricer that the caller brings. It is right if the kernels can run
// one after the other: no cycle among them. The cost of a plan is the sum of its kernels' seconds; a kernel that the
// machine can't run (no block fits, or a barrier has more blocks than a wave) has no price.
//
// Candidates, the search's recurrence and the integer program that tests compare it with stand in
// docs/formulations.md, "Stitching".
//
// # The search
//
// Dynamic programming over downsets of finished units. There are few in a chain with side branches, which softmax and
// normalisations are, and 2^n in n independent operators; [Options] limits them. Beyond a limit, and at the end of the
// context, the answer is the start, or the rule's plan (all units in one kernel, first choice) if that is better, with
// [Problem.Floor] as bound.
package stitch
