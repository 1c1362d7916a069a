// Package unrelated schedules jobs with precedence on machines that take unlike times for them, so that the last job
// ends as early as possible: layers of a network on clusters of different kinds of core, side by side.
//
// # Problem
//
// Job j takes c_jm on machine m, if it can run there, and one job at a time runs on a machine. Arc (i, j) has j start
// behind the end of i, and by a time d_ij later where they run on different machines:
//
//	minimise    max_j e_j
//	subject to  e_j = s_j + c_jm(j)                                        (1)
//	            s_j >= e_i + d_ij [m(i) != m(j)]     each arc i to j       (2)
//	            [s_i, e_i) and [s_j, e_j) apart      if m(i) = m(j)        (3)
//
// which is R | prec, c_jk | C_max in the notation of scheduling. Times are whole picoseconds.
//
// # Methods
//
// The list method takes ready jobs by the longest way that is behind them (least times, nothing passes) and puts each
// where it ends first, behind what its machine has (HEFT without gaps).
//
// A job is a cut if all before it lead to it, all behind it come from it, and no arc passes it by. While it runs
// nothing else does, so what is behind it depends on its machine alone: blocks between cuts are solved for each pair of
// machines of the cuts around them, and a shortest path puts them together. A block is solved by branch and bound over
// lists of pairs of a job and a machine, each as early as the list before it allows. Some list gives an optimum. A
// state is dropped if another has the same jobs behind it, those that others wait for on the same machines, and no
// later ends; or if no end before the best known is possible by the larger of
//
//   - the longest path through what is left, each job where it ends first;
//   - the fractional load: for weights w_m >= 0 that add up to 1, sum_m w_m free_m + sum_j min_m w_m c_jm, which every
//     makespan is at least, as weighted means are at most the largest. Weights come from [Load].
//
// Or an integer program with an order for each pair of jobs solves the blocks; docs/formulations.md has it.
//
// Sources: H. Topcuoglu, S. Hariri and M.-Y. Wu, Performance-effective and low-complexity task scheduling for
// heterogeneous computing, TPDS 13, 2002; J. K. Lenstra, D. B. Shmoys and É. Tardos, Approximation algorithms for
// scheduling unrelated parallel machines, Math. Programming 46, 1990 (the fractional load).
package unrelated
