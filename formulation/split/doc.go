// Package split chooses sub-graphs and split factors exactly: what Algorithms 1 and 2
// of the GraphTurbo paper (OSDI 2023) decide greedily, a merge at a time.
//
// # The problem
//
// The atoms are the layers of a network, numbered in the order in which they are executed; R holds the pairs (a, b) of
// which b reads a. A group is a set of atoms that may become one sub-graph. A choice of groups parts the atoms so that
// the groups can run one after the other. A group S costs c_S seconds, and the choice is to cost least.
//
// Groups to choose from ([FromGraph]) are the intervals of two orders of the atoms that hang together and that some
// factor makes fit the L1: the order of execution, which is depth first with operands in their order, and the
// depth-first order that takes the latest operand first. Of a fork that joins again, groups can so end within any
// branch that comes first or last. The groups of a given grouping, Algorithm 2's, are among them in any case, so that
// the answer is never worse. Where the intervals are very many they are limited in length ([Network.Longest]).
// "Optimal" means: of all choices of these groups.
//
// The cost of a group and the integer program (1) to (3) stand in docs/formulations.md, "Sub-graphs and split
// factors". Order, bindings, spills and overlap are not in the objective: the simulator's verdict stands beside it.
//
// # Methods
//
// integerProgram solves this with any [milp.Solver]. [Search] is dynamic programming over the
// sets of atoms that have run, in order of cost with a bound from potentials; it needs
// no solver. Both drop groups beforehand that others always replace.
package split
