// Package binding chooses core bindings and buffer scopes exactly: what Algorithm 4
// of the GraphTurbo paper (OSDI 2023) decides greedily, one instance at a time.
//
// # The problem
//
// Groups, instances and their order are given. Each instance i takes one label l of its L_i: a binding, that is, how
// many cores each dimension of its first output is spread over, and a scope, the L1 or the LLB, where its outputs
// stand for other instances to read. A label costs u_i(l) seconds by itself; an instance j that reads i costs w_ij(l,
// m) more if they have labels l and m.
//
// The bindings to choose from are all tuples of powers of two that divide the extents, or cut them as busily where
// slices may be uneven, and use at most the cores of a cluster (grids): all that Algorithm 4 can come to, and
// all with fewer cores. So its answer is one of the choices, and never better than the best. By line 16 of the
// algorithm a layer takes its plain binding where that uses more cores; candidates that come to the same in all layers
// of an instance are one label.
//
// Costs in seconds, the integer program (1) to (3) and the elimination stand in docs/formulations.md, "Binding and
// scopes". They add moves to work as if nothing overlapped, and leave the L1's capacity to the memory plan.
//
// # Inside an instance
//
// [LayersOf] poses the same problem for the steps of one instance, each of which may have a binding of its own. u_i is
// the time of a step's work, of its reads from the LLB and the DDR, and of its exchanges with other instances, whose
// bindings are fixed. w_ij is the time of its reads of the instance's own values in the L1.
//
// # Methods
//
// [ILP] solves this with any [milp.Solver]; [Search] eliminates nodes one after the other, which proves its answer on
// trees, series-parallel graphs and others of small width, and gives a bound elsewhere; it needs no solver. Both drop
// labels beforehand that another one always replaces.
package binding
