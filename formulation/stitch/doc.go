// Package stitch decides exactly what AStitch (ASPLOS 2022) decides by rules: which
// operators share a kernel, and through which memory the parts of a kernel pass their
// data.
//
// # The problem
//
// Units are operators in topological order, arcs say which reads which. A plan puts
// every unit into one kernel and gives each kernel a choice: of its open decisions
// (which values go through global memory although shared memory would do; whether
// groups merge), numbered by the [Pricer] that the caller brings. It is right if the
// kernels can run one after the other: no cycle among them. The cost of a plan is the
// sum of its kernels' seconds; a kernel that the machine can't run (no block fits, or a
// barrier has more blocks than a wave) has no price.
//
// # Candidates
//
// Kernels that run one after the other pass through a chain of sets of finished units,
// each closed under predecessors (downsets), from none to all:
//
//	{} = D_0 < D_1 < ... < D_k = all        kernel i = D_i \ D_(i-1)
//
// and each chain of downsets is a right plan. So the candidates are the differences of
// two downsets. Each is priced once, at its best choice ([Pricer.Choices] of them).
//
// # The search
//
// The least cost from a downset to the end is the least, over the downsets above it, of
// the kernel between them and the least cost from there (dynamic programming, from the
// largest downset down). There are few downsets in a chain with side branches, which
// softmax and normalisations are, and 2^n in n independent operators; [Options] limits
// them. Beyond a limit, and at the end of the context, the answer is the start, or the
// rule's plan (all units in one kernel, first choice) if that is better, with
// [Problem.Floor] as bound.
//
// # The integer program
//
// Tests compare the search with it.
//
// Sets: units u, v; arcs A; candidates K, with the least seconds c_K. Variables: x_K = 1
// if K is a kernel; p_u, the position of u's kernel, 0 to n - 1.
//
//	minimise  sum_K c_K x_K
//	(1) sum_{K with u} x_K = 1                                 for all u
//	(2) p_v >= p_u + 1 - n sum_{K with u, v} x_K               for (u, v) in A
//	(3) p_u - p_v <= (n - 1) (1 - sum_{K with u, v} x_K)       for all pairs in a K, both ways
//
// (1) makes a partition, (2) and (3) order its kernels.
package stitch
