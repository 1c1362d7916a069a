// Package allocate states and solves static memory allocation: buffers with known lifetimes get offsets in one memory
// so that no two that live at the same time overlap. [Methods] and [SpillMethods] list what solves it: simple rules
// that place one buffer after the other without second thoughts, searches that need no solver, and an integer program
// for spills. [Solve] and [SolveSpill] run one.
//
// # Notation
//
// Buffer i has a lifetime [l_i, u_i), a size s_i and an alignment a_i. A placement gives it an offset o_i, a multiple
// of a_i, and is right for the capacity C if
//
//	0 <= o_i  and  o_i + s_i <= C                       for all i           (a)
//	o_i + s_i <= o_j  or the reverse   for all i != j in use at a common time (b)
//
// where a buffer is in use during its lifetime. The peak of a placement is the largest o_i + s_i; the
// least peak is the least capacity at which a placement exists. Sizes and offsets are in bytes, times have no unit,
// and intervals are half-open.
//
// MiniMalloc, whose files [ReadCSV] reads, also knows gaps in a lifetime. No compiler's plan and no network has one,
// and they are refused.
//
// # Spilling
//
// Where not all buffers fit, some leave the memory for good: buffer i then costs [Buffer.Moved] bytes of traffic.
// checkSpill says whether what stays passes the capacity at any time. Fitting by sums is necessary and not sufficient:
// whether offsets exist is for a solver to say.
//
// # Rules
//
// The rules are those that compilers use: first and best fit in order of birth, as
// an allocator at run time would do it, and first fit in order of lifetime or size.
// The spill rules are those that the paper compares (GraphTurbo, OSDI 2023, §4.3).
//
// # Exact methods
//
// The searches ([Fit], [Minimize]: canonical placements), the integer program for spills (spillILP) and the sweep
// over time ([SpillSweep]) stand in docs/formulations.md, "Memory allocation", of which numbers in parentheses are
// equations.
//
// # Sources
//
// M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023,
// for the problem and the format of its files (https://github.com/google/minimalloc).
package allocate
