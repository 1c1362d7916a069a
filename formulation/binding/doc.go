// Package binding chooses core bindings and buffer scopes exactly: what Algorithm 4
// of the GraphTurbo paper (OSDI 2023) decides greedily, one instance at a time.
//
// # The problem
//
// Groups, instances and their order are given. Each instance i takes one label l of
// its L_i: a binding, that is, how many cores each dimension of its first output is
// spread over, and a scope, the LB or the GB, where its outputs stand for other
// instances to read. A label costs u_i(l) seconds by itself; an instance j that
// reads i costs w_ij(l, m) more if they have labels l and m.
//
// The bindings to choose from are all tuples of powers of two that divide the extents, or cut them as busily where
// slices may be uneven, and use at most the cores of a cluster ([Candidates]): all that Algorithm 4 can come to, and
// all with fewer cores. So its answer is one of the choices, and never better than the best. By line 16 of the
// algorithm a layer takes its plain binding where that uses more cores; candidates that come to the same in all layers
// of an instance are one label.
//
// # Costs
//
// Seconds, by the formulas of package hardware/cost and the bytes that package
// model/schedule counts. For a step (a layer of an instance) on n cores:
//
//	work  = max(units, parameters)
//	units = max(matrix, vector, special) of the busiest core; vector + special
//	        where the two share hardware
//	parameters = sum over the step's weights and tables of move(0, U, C, 0),
//	        U bytes together, C of the busiest core; without broadcast n C for U
//	move(d, g, in, out) = max(d / (DDR rate / clusters), g / GB rate, in / link rate, out / link rate)
//
// To read a value with R bytes remote (not in the reading core's own slice), r of
// the busiest core, N needed by all cores together, U different ones (N without
// broadcast), n of the busiest core, and made by p cores:
//
//	from the LB: 0 if R = 0, else 2 link + sync + move(0, 2R, r, ceil(R / p))
//	from the GB: link + move(0, U, n, 0)
//	from the DDR: ddr + link + move(U, U, n, 0)
//
// and to write B bytes, b of the busiest core:
//
//	to the LB: 0;  to the GB: link + move(0, B, 0, b);  to the DDR: ddr + link + move(B, B, 0, b)
//
// where link, ddr and sync are the latencies of the hardware's description. Reads
// from another instance are w, all else is u. Steps of one instance follow its
// binding as package model/schedule has it. Network inputs and outputs are in the
// DDR, intermediates of an instance in the LB, and a value of which a core's part
// passes the LB is priced in the GB whatever its scope. Without a GB its place is
// taken by the DDR.
//
// Moves are added to the work, as if nothing overlapped, and an LB that overflows
// is left to the memory plan. Neither is so in the simulator, which is why its
// verdict stands beside the objective.
//
// # The integer program
//
// For an edge e = (i, j), the labels of i that have equal rows in w_ij form a class
// A, those of j with equal columns a class B. x_il is 1 if i has label l, y_eAB is 1
// if i is in A and j in B.
//
//	minimise  sum_i sum_l u_i(l) x_il + sum_e sum_AB w_e(A, B) y_eAB
//	(1) sum_l x_il = 1                              for all i
//	(2) sum_B y_eAB = sum_{l in A} x_il             for all e = (i, j), A
//	(3) sum_A y_eAB = sum_{m in B} x_jm             for all e = (i, j), B
//	    x binary, 0 <= y <= 1
//
// On trees the relaxation of (1) to (3) has integer vertices: y says how label
// weights are paired along each edge, and on a tree any such pairing extends to the
// whole. On graphs with cycles it is a bound. The usual linearisation of a product,
// y_eAB >= sum_{l in A} x_il + sum_{m in B} x_jm - 1, has a weaker relaxation: it pays for
// no edge at all where each side is half in, half out.
//
// # Inside an instance
//
// [LayersOf] poses the same problem for the steps of one instance, each of which may have a
// binding of its own: u_i is a step's work, with what it reads of and passes to other instances
// as these are, and reads from the GB and the DDR; w_ij is what it reads of the instance's own
// values in the LB.
//
// # Methods
//
// [ILP] solves this with any [milp.Solver]; [Search] eliminates nodes one after the
// other, which is all on trees, series-parallel graphs and others of small width, and
// branches where it is not; it needs no solver. Both drop labels beforehand that
// another one always replaces.
package binding
