// Package memory states static memory allocation: buffers with known lifetimes
// get offsets in one memory so that no two that live at the same time overlap.
//
// # Notation
//
// Buffer i has a lifetime [l_i, u_i), a size s_i and an alignment a_i. A
// placement gives it an offset o_i, a multiple of a_i, and is right for the
// capacity C if
//
//	0 <= o_i  and  o_i + s_i <= C                       for all i           (1)
//	o_i + hi_i(t) <= o_j + lo_j(t)  or the reverse      for all t, i != j   (2)
//
// where [lo_i(t), hi_i(t)) is the part of buffer i that is in use at time t: all
// of it, [0, s_i), unless t falls in one of its gaps. A gap has a window, the
// part that stays in use, or none, and then nothing of the buffer is in use.
// The peak of a placement is the largest o_i + s_i; the least peak is the least
// capacity at which a placement exists. Sizes and offsets are in bytes, times
// have no unit, and intervals are half-open.
//
// (2) speaks of each time by itself, so a buffer may lie above another one's
// window at one time and below it at a later one. MiniMalloc, whose files
// [ReadCSV] reads, decides above or below once for each pair; without windows
// that is the same.
//
// # Spilling
//
// Where not all buffers fit, some leave the memory for good: buffer i then
// costs [Buffer.Moved] bytes of traffic. [CheckSpill] says whether what stays
// passes the capacity at any time. Fitting by sums is necessary and not
// sufficient: whether offsets exist is for a solver to say.
//
// # Sources
//
// M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023, for the problem and the
// format of its files (https://github.com/google/minimalloc).
package allocate
