// Package partition divides the graph of a network over accelerators and CPUs so that the device with the most work
// has as little as possible: the throughput problem of a pipeline that is fed one sample after another.
//
// Times are in the unit of the file, sizes in bytes.
//
// # Problem
//
// A graph has nodes v with times a_v on an accelerator and c_v on a CPU and a size s_v. Each node that is the tail of
// edges has the cost w_v of moving its output between an accelerator and the memory of the CPUs. k accelerators with M
// bytes each and l CPUs are there. A division gives every node to one device, so that S_d is what device d has:
//
//	minimise    max_d L(d)
//	where       L(d) = sum of c_v over S_d                               for a CPU        (1)
//	            L(d) = sum of a_v over S_d + sum of w_t over the tails t
//	                   of edges with one end in S_d and one outside      for an accelerator (2)
//	subject to  s_v over S_d sum to at most M                            for an accelerator (3)
//	            a node that no accelerator supports is on a CPU                           (4)
//	            nodes of one colour are on one device                                     (5)
//	            the forward nodes of S_d are contiguous, and so are the backward ones:
//	            no path among them leaves S_d and comes back                              (6)
//	            the devices can be put in a row so that no edge between forward
//	            nodes goes back                                                           (7)
//
// A tail counts once per device in (2), however many of its edges cross, and on both sides. Edges lead from forward to
// backward nodes and never back. (7) is what makes devices the stages of a pipeline: without it two devices may each
// wait for the other, although both sets are contiguous.
//
// A node without a forward node of its colour is put into the row of (7) too: an edge between backward nodes of which
// one is such a node counts there as if it were turned round.
//
// # Exact search
//
// By (7) the forward nodes of the first j devices of the row are a down-closed set, an ideal, and a division is a
// chain of ideals from the empty one to all. The best division is a shortest path in the lattice of ideals, with the
// largest load in place of the sum:
//
//	best(I, i+1, j) = min over ideals H in I of max(best(H, i, j), L(I - H))
//
// and likewise for a CPU. What is left of the graph after four reductions (see reduce.go), each of which keeps an
// optimum, is small enough for that where the plain recurrence is not:
//
//   - A cut-off T: only sets whose times sum to less than T are visited, since
//     these sums, unlike loads, never fall when a node is added. Nodes of the
//     lattice that cannot be completed are left out: what remains is more than
//     the remaining devices take in T each. The search begins with a T a little
//     above the bound and doubles the distance until it finds a division, which
//     is then an optimum; a T without one is a bound.
//   - Loads are not summed up for each pair of ideals. A tail and the heads of
//     its edges are a net, and (2) is the cost of the nets that S_d cuts; along
//     an edge of the lattice only the nets of one node change.
//   - (6) for backward nodes is tried only where a pair of ideals would improve
//     the best answer.
//
// Where the lattice has many ideals, there are no CPUs and there is a solver, the integer linear program of the cuts
// between devices takes its place (ilp.go). Else, with more ideals than the limit, the same search goes over the
// ideals of many topological orders. Its answer is then feasible, with the bound of [Problem.Bound].
//
// Sources: J. Tarnawski, A. Phanishayee, N. Devanur, D. Mahajan and F. Nina Paravecino, Efficient algorithms for
// device placement of DNN graph operators, NeurIPS 2020 (problem, file format, recurrence); D. Narayanan et al.,
// PipeDream: generalized pipeline parallelism for DNN training, SOSP 2019.
package partition
