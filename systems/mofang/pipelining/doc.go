// Package pipelining makes the numeric choices of a training job exactly: threads that load data, stages of a
// pipeline, micro-batches, and stages with micro-batches and memory jointly.
//
// # Threads
//
// Loading one item takes T2 seconds on one thread and T2 / a_n on n; names of files
// take T1 and training takes T3 for a batch of B. The phases overlap, so a batch takes
//
//	T(n) = max(T1, B T2 / a_n, T3)
//
// [Threads] tries every n that the table of a_n has and takes the least of those with
// the least T. a_n may fall again at the largest n.
//
// # Stages
//
// Layers i of time t_i and utilisation u_i run in a row; a stage is consecutive layers, with the sum of their times
// and the largest of their utilisations. Stages run side by side, each on another batch:
//
//	minimise    T, then the number of stages
//	subject to  sum of t_i over a stage <= T          for all stages     (1)
//	            sum over stages of their u <= U                          (2)
//
// [Stages] is a dynamic programme over the first i layers whose labels are pairs (T, sum of u), of which none is worse
// in both. An integer program, with which tests compare it, has x_ij = 1 if layers i to j-1 are a stage:
//
//	minimise    T + e sum of x_ij
//	subject to  sum over i <= k < j of x_ij = 1        for each layer k   (3)
//	            sum of u_ij x_ij <= U                                     (4)
//	            sum over i <= k < j of t_ij x_ij <= T  for each layer k   (5)
//
// with e so small that it decides between equal T only.
//
// # Micro-batches
//
// A batch of B in b micro-batches over p stages leaves the share
//
//	I(b) = (p - 1) / (b + p - 1)
//
// of the stages' time idle, while a device that takes B_dev at a time loses
//
//	D(b) = max(0, 1 - B / (b B_dev)).
//
// [MicroBatches] finds the least b with I(b) <= D(b) by trying; [ClosedForm] is
// b = ceil((r + sqrt(r^2 + 4 r (p-1))) / 2) with r = B / B_dev. For p = 1 both are 1.
//
// # Jointly
//
// [Jointly] chooses the stages over P devices and the micro-batches at once. A layer takes f_i and g_i seconds for the
// forward and backward pass of a micro-batch, both straight lines in its m = ceil(B / b) samples. A device holds its
// stage's weights and, until the backward pass, its activations of all micro-batches:
//
//	minimise    sum f_s + sum l_s + (b - 1) max f_s
//	            + max over s of [sum over i >= s of (g_i + l_i) + (b - 1) max over i >= s of g_i]
//	subject to  weights + b m activations <= memory    for each stage       (6)
//	            stages <= P, 1 <= b <= B
//
// with f_s and g_s sums over a stage and l_s the link time of a micro-batch to the next stage. The objective is the
// time of a batch in GPipe's order, all forward passes before all backward ones. For each b a dynamic programme from
// the last layer on keeps the Pareto-optimal sums and maxima by layer and devices left. It prunes a label if its lower
// bound over the layers before is no better than the incumbent.
//
// Source: Y. Huang et al., GPipe, NeurIPS 2019.
package pipelining
