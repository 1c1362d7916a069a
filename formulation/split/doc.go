// Package split chooses sub-graphs and split factors exactly: what Algorithms 1 and 2
// of the GraphTurbo paper (OSDI 2023) decide greedily, a merge at a time.
//
// # The problem
//
// The atoms are the layers of a network, numbered in the order in which they are
// executed; R holds the pairs (a, b) of which b reads a. A group is a set of atoms
// that may become one sub-graph. A choice of groups parts the atoms so that the
// groups can run one after the other. A group S costs c_S seconds, and the choice
// is to cost least.
//
// Groups to choose from ([FromGraph]) are the intervals of two orders of the atoms
// that hang together and that some factor makes fit the LB: the order of execution,
// which is depth first with operands in their order, and the depth-first order that
// takes the latest operand first. Of a fork that joins again, groups can so end within
// any branch that comes first or last. The groups of a given grouping, Algorithm 2's,
// are among them in any case, so that the answer is never worse. Where the intervals
// are very many they are limited in length ([Network.Longest]). "Optimal" means: of
// all choices of these groups.
//
// # Costs
//
// A group is split along dimension d of its outputs into f instances. Candidates are,
// for each d, the three smallest factors whose instances fit the LB by the footprint
// of Algorithm 1: powers of two, from the cores on all integers, of which
// [NetworkOptions].Uneven says whether they divide. A single atom that
// nothing makes fit has one instance, which passes what is too much through the GB
// and back. Of all candidates
//
//	c_S = min over (d, f) of sum over instances of
//	      launch + sum over layers of max(units, parameters) + in + out
//
//	units       cycles of the busiest core by hardware/cost, the layer's output bound
//	            to the cores plainly
//	parameters  sum over weights of max(U / GB rate, C / link rate): U bytes for all
//	            cores (one broadcast, if there is), C of the busiest one; of the DDR
//	            instead of the GB if the weights of the group pass half the GB
//	in, out     bytes that the instance reads from outside of the group, and that it
//	            makes for outside, over the GB rate; over the cluster's share of the
//	            DDR's for inputs and outputs of the network, and for tensors that the
//	            GB cannot hold
//
// so that splitting pays launches, filling of the units, weights once per instance,
// and halos twice; merging saves bytes of the boundary. Without a GB the DDR takes
// its place. Inner instances count as the middle one. The first load of weights from
// the DDR is the same for all choices and is left out.
//
// A boundary costs as much whether or not its data could stay in the LB, and is held
// to be whole in the GB, which is what the order of instances decides later; that,
// overlap, bindings and spills the objective does not see. The simulator does, which is why its verdict stands beside
// the objective.
//
// # The integer program
//
// x_S is 1 if group S is chosen.
//
//	minimise  sum_S c_S x_S
//	(1) sum_{S contains a} x_S = 1             for all atoms a
//	(2) x_S + x_T <= 1                         for all disjoint S, T that read each other
//	(3) sum_{S in Z} x_S <= |Z| - 1            for circles Z of groups, each reading the next
//	    x binary
//
// Intervals of the order of the atoms read each other one way only, and for them alone
// (1) is an interval matrix, whose relaxation has integer vertices. (2) and (3) are for
// the others. (3) is added when an answer has such a circle; (2) is (3) for two,
// given at once.
//
// # Methods
//
// [ILP] solves this with any [milp.Solver]. [Search] is dynamic programming over the
// sets of atoms that have run, in order of cost with a bound from potentials; it needs
// no solver. Both drop groups beforehand that others always replace.
package split
