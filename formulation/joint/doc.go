// Package joint chooses the order of instances, their bindings and their scopes
// together: the decisions of packages formulation/ordering and formulation/binding,
// which leave out what one costs the other.
//
// # The problem
//
// An ordering problem (package formulation/ordering) and a binding problem (package
// formulation/binding) over the same instances. Each instance i takes a label of L_i,
// a binding and a scope; with scope GB its output is not live in the LB: it is there
// only while i runs and while an instance runs that reads it. All other outputs obey
// the rules of the ordering problem. The objective is in seconds,
//
//	sum_i u_i(l_i) + sum_ij w_ij(l_i, l_j) + kappa (cost of stores and loads)
//
// with u and w of the binding problem, which pay for the write to the GB and the
// reads from there of the outputs with scope GB, for redistributions, and for fewer
// cores; kappa turns the cost of the ordering problem into seconds. The stores and
// loads are those of outputs with scope LB only: what is spilled.
//
// What an instance needs while it runs does not depend on labels: what it reads, its
// output and its workspace. So a problem is feasible for all labels or for none.
//
// # Two parts
//
// Let S be the set of instances with scope GB, B(S) the least cost of labels with
// these scopes, O(S) the least cost of the moves. The order sees of the labels only S.
// So the problem is to minimise B(S) + kappa O(S), and each part has its own exact
// method. O(S) is an ordering problem again: outputs in S get size 0, and their bytes
// become workspace of their instance and of its readers.
//
//	(a) S in S' implies O(S) >= O(S'): of an order for S, keep runs and moves of
//	    outputs outside S'. Between runs and during each the LB holds no more.
//	(b) O(S) <= O(S with i) + p_i, p_i = store_i + r_i load_i with r_i readers: of an
//	    order for S with i, store the output of i before the next run, and load it
//	    before each run that reads it; what is left of it leaves for nothing. The LB
//	    holds at each time what it held.
//
// # Bounds
//
// Let F hold the instances whose scope is decided to be GB, U those that are open.
// With (a), and with (b) for the open ones one after the other,
//
//	B(S) + kappa O(S) >= min B + kappa O(F and U)                            (1)
//	B(S) + kappa O(S) >= min_S [B(S) - kappa sum_{i in S and U} p_i] + kappa O(F)   (2)
//
// The right side of (2) is a binding problem too: kappa p_i is added to the labels of i
// with scope LB, and taken from the sum. A label with scope GB pays for a store and
// for loads itself, of the same bytes at no more bandwidth, so that (2) is close:
// it doubts only outputs that are declared in the GB and would not have been spilled.
//
// Moves are local: what an order of all instances does within a set V of them is an
// order of V, in which the LB holds no more, if what they read of others counts as
// workspace. Let O_V(S) be the least cost of the moves in V. For any partition of the
// instances,
//
//	B(S) + kappa O(S) >= min_S [B(S) + kappa sum_V O_V(S)]                  (3)
//
// The V are runs of instances in an order at hand with at most 8 outputs each that have
// a choice, so that O_V is a table over 2^8 sets, cut where the sum of O_V(no scope GB)
// is largest, by dynamic programming. Each V
// with moves at all becomes a node more of the binding problem, whose labels are the
// sets, joined to its instances by edges that forbid another scope. (3) is exact where
// what is spilled comes back soon, and sees what (2) doubts.
//
// # Search
//
// First, alternate: labels for the order at hand, where an output that the order spills
// makes labels with scope LB dearer by what its moves cost; the best order for the
// scopes of these labels; again, as long as the sum falls. Then branch over scopes, the
// subset with the least bound first:
//
//	open := {nothing decided}
//	while open is not empty and no limit is reached
//	    take a subset of least bound from open; stop if that is the objective
//	    solve (1) to (3); the labels that solve them, with an order for their scopes,
//	        are answers
//	    if the bound is below the objective, decide the scope of one more output, of
//	        those with scope LB in the last answer the one whose moves cost most:
//	        one subset with the GB, one with the LB
//
// Where all scopes are decided (1) is the optimum. If a part could not be solved within
// its limits its bound takes its place, so that the bound of the whole always holds.
// Orders for the same set S are found once.
//
// # The integer program
//
// A program of instances and positions for the order and that of package
// formulation/binding, joined by (6). It checks the search; it does not scale.
// Steps t = 1..T, one per instance; R the outputs that something reads; J(i) the
// readers of i; b, v, f, g output, workspace, costs of store and load; M the capacity.
//
//	x[i,t] in {0,1}        step t runs i
//	a[i,t] in {0,1}        i in R: the output is in the LB during step t
//	c[i,t] in {0,1}        i in R: the GB has had a copy by step t
//	d[i,t] in {0,1}        i in R: the output is loaded before step t
//	y[i,l] in {0,1}        i has label l
//	z[e,l,m] in [0,1]      e = (i, j): i has label l, j has label m
//
// Minimise
//
//	sum u_i(l) y[i,l] + sum w_e(l,m) z[e,l,m] + kappa sum i in R: (f_i c[i,T] + sum t: g_i d[i,t])
//
// subject to
//
//	 (1) sum i: x[i,t] = 1                                           for all t
//	 (2) sum t: x[i,t] = 1                                           for all i
//	 (3) sum u<=t: x[j,u] <= sum u<t: x[i,u]                         for all i in R, j in J(i), t
//	 (4) a[i,t] >= x[i,t]                                            for all i in R, t
//	 (5) a[i,t] >= x[j,t]                                            for all i in R, j in J(i), t
//	 (6) a[i,t] <= a[i,t-1] + x[i,t] + d[i,t] + sum l with scope GB: y[i,l]   for all i in R, t
//	 (7) d[i,t] <= c[i,t-1]                                          for all i in R, t
//	 (8) c[i,t-1] <= c[i,t] <= c[i,t-1] + a[i,t-1]                   for all i in R, t
//	 (9) sum i in R: b_i a[i,t] + sum i: v_i x[i,t] + sum i not in R: b_i x[i,t] <= M   for all t
//	(10) sum l: y[i,l] = 1                                           for all i
//	(11) sum m: z[e,l,m] = y[i,l]                                    for all e = (i, j), l
//	(12) sum l: z[e,l,m] = y[j,m]                                    for all e = (i, j), m
//
// By (6) an output with scope GB may come into the LB at any time for nothing; as
// nothing but (4) and (5) wants it there, it need not be there at other times.
package joint
