// Package allocate states and solves static memory allocation: buffers with known
// lifetimes get offsets in one memory so that no two that live at the same time overlap.
// [Methods] and [SpillMethods] list what solves it: simple rules that place one buffer
// after the other without second thoughts, searches that need no solver, and integer
// programs. [Solve] and [SolveSpill] run one.
//
// # Notation
//
// Buffer i has a lifetime [l_i, u_i), a size s_i and an alignment a_i. A
// placement gives it an offset o_i, a multiple of a_i, and is right for the
// capacity C if
//
//	0 <= o_i  and  o_i + s_i <= C                       for all i           (a)
//	o_i + hi_i(t) <= o_j + lo_j(t)  or the reverse      for all t, i != j   (b)
//
// where [lo_i(t), hi_i(t)) is the part of buffer i that is in use at time t: all
// of it, [0, s_i), unless t falls in one of its gaps. A gap has a window, the
// part that stays in use, or none, and then nothing of the buffer is in use.
// The peak of a placement is the largest o_i + s_i; the least peak is the least
// capacity at which a placement exists. Sizes and offsets are in bytes, times
// have no unit, and intervals are half-open.
//
// (b) speaks of each time by itself, so a buffer may lie above another one's
// window at one time and below it at a later one. MiniMalloc, whose files
// [ReadCSV] reads, decides above or below once for each pair; without windows
// that is the same.
//
// # Spilling
//
// Where not all buffers fit, some leave the memory for good: buffer i then
// costs [Buffer.Moved] bytes of traffic. checkSpill says whether what stays
// passes the capacity at any time. Fitting by sums is necessary and not
// sufficient: whether offsets exist is for a solver to say.
//
// # Rules
//
// The rules are those that compilers use: first and best fit in order of birth, as
// an allocator at run time would do it, and first fit in order of lifetime or size.
// The spill rules are those that the paper compares (GraphTurbo, OSDI 2023, §4.3).
//
// # Exact methods
//
// The searches ([Fit], [Minimize]: canonical placements, folding, and pairs where there are windows), the
// integer programs (fitILP, [MinimizeILP], spillILP) and the sweep over time ([SpillSweep]) stand in
// docs/formulations.md, "Memory allocation", of which numbers in parentheses are equations.
//
// # Sources
//
// M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023, for the problem and the
// format of its files (https://github.com/google/minimalloc). M. Luby, A. Sinclair and
// D. Zuckerman, "Optimal speedup of Las Vegas algorithms", IPL 47, 1993, for restarts.
package allocate
