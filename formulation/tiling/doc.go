// Package tiling chooses the tiles of products and convolutions ([Rule]), finds the best
// tiling of a kernel by branch and bound ([Search]), and divides trials over kernels whose loops are tuned, best in
// hindsight ([Allocate]).
//
// # Tilings
//
// A tiling is a row of decisions. A bound says what no tiling that begins with some choices
// is below; tilings are measured in the order of their bounds, until the least bound of what
// is left is no less than the best time. Proofs are as good as the bound: the tests of who
// gives it measure programs, and enumerate spaces that are small enough.
//
// # Trials
//
// Kernel i has a curve: best[i][t] is its time after t rounds of trials, which never grows
// with t, and network j runs it weight[i][j] times. Choose rounds t_i >= 0 for each kernel
// so that
//
//	minimise   f(S_1, ..., S_m),   S_j = sum_i weight[i][j] * best[i][t_i]
//	subject to sum_i t_i <= rounds,   t_i <= len(best[i]) - 1
//
// where f does not fall when a sum grows: a knapsack with one choice for each kernel
// (Kellerer, Pferschy, Pisinger, "Knapsack Problems", 2004, ch. 11), with several objectives
// where there are several networks. A scheduler of trials that decides as it goes can't do
// better on the same curves; what it falls short by is its regret.
//
// [Allocate] is the dynamic programme over kernels and rounds spent, which keeps the sums
// that no others dominate: exact, for one network in time kernels x rounds x the longest
// curve. The test's oracle tries everything.
package tiling
