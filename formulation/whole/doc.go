// Package whole chooses groups, their split factors, the order of the instances that
// follow, their bindings, scopes and what is spilled, together: the decisions of packages
// formulation/split and formulation/joint in one problem, on their costs. It is for small
// networks: it shows what the decisions cost each other, and how far one integer program carries.
//
// # The problem
//
// A part is a set of atoms (layers) cut in one way into instances. A set of parts is
// chosen in which each atom is in one part, and which can run one after the other. Their
// instances pose a joint problem (package formulation/joint): each instance i takes a label l,
// all instances take an order, and outputs with scope LB that do not fit move. The objective
// is, in seconds,
//
//	sum of parts chosen: e_o + sum of their instances: u_i(l_i) + sum of pairs among them: w_ij(l_i, l_j) + moves
//
// with e_o for what a part costs however it runs (its launches).
//
// # The integer program
//
// O are the parts, I the instances of all parts, o(i) the part of i; steps t = 1..T, T as many
// as the instances of any set of parts that may be chosen at most. R are the outputs that something may read, J(i) the
// instances that may read i, of other parts; b, v, f, g output, workspace, seconds to store
// and to load; M the capacity.
//
//	p[o] in {0,1}        part o is chosen
//	x[i,t] in {0,1}      step t runs i
//	a[i,t], c[i,t], d[i,t] in {0,1}   i in R: held, copied, loaded, as in package formulation/joint
//	y[i,l] in {0,1}      i has label l
//	z[e,l,m] in [0,1]    e = (i, j): i has label l, j has label m
//
// Minimise
//
//	sum e_o p[o] + sum u_i(l) y[i,l] + sum w_e(l,m) z[e,l,m] + sum i in R: (f_i c[i,T] + sum t: g_i d[i,t])
//
// subject to
//
//	 (1) sum o with a in o: p[o] = 1                                     for all atoms a
//	 (2) sum t: x[i,t] = p[o(i)]                                         for all i
//	 (3) 1 >= sum i: x[i,t] >= sum i: x[i,t+1]                           for all t
//	 (4) sum u<=t: x[j,u] <= sum u<t: x[i,u] + 1 - p[o(i)]               for all i in R, j in J(i), t
//	 (5) a[i,t] >= x[i,t]                                                for all i in R, t
//	 (6) a[i,t] >= x[j,t] + p[o(i)] - 1                                  for all i in R, j in J(i), t
//	 (7) a[i,t] <= a[i,t-1] + x[i,t] + d[i,t] + sum l with scope GB: y[i,l]   for all i in R, t
//	 (8) d[i,t] <= c[i,t-1],  c[i,t-1] <= c[i,t] <= c[i,t-1] + a[i,t-1]  for all i in R, t
//	 (9) sum i in R: b_i a[i,t] + sum i: v_i x[i,t] + sum i not in R: b_i x[i,t] <= M   for all t
//	(10) sum l: y[i,l] = p[o(i)]                                         for all i
//	(11) y[i,l] + p[o(j)] - 1 <= sum m: z[e,l,m] <= y[i,l]               for all e = (i, j), l
//	(12) y[j,m] + p[o(i)] - 1 <= sum l: z[e,l,m] <= y[j,m]               for all e = (i, j), m
//	(13) p[o] + p[o'] <= 1                                               for all o, o' that wait for each other
//
// With p fixed to a set of parts it is the program of package formulation/joint for their instances.
// By (4) no instances wait for each other in a circle. Parts of which more than two do, while their
// instances do not, are no answer, but the bound holds.
//
// # Search
//
// Logic-based Benders (Hooker and Ottosson, Mathematical Programming 2003): sets of parts by rising bound
//
//	sum of parts chosen: e_o + sum of their instances: min_l u_i(l)
//
// each of them solved as a joint problem and excluded, until the next one's bound is no less than the
// best answer. The bounds come from a best-first search that covers the atoms one after the other.
package whole
