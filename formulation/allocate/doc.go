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
// # The search ([Fit], [Minimize])
//
// The idea is MiniMalloc's (M. D. Moffitt, ASPLOS 2023). Time is cut into
// sections in which the same buffers live; two buffers are neighbours if they
// share a section:
//
//	offset
//	  ^  +-----------+
//	  |  |     c     |  +----+       a, b and d lie at 0. c lies on a or b,
//	  |  +--+--+-----+  | e  |       whichever is higher, and e on d. Nothing
//	  |  |a |  |  b  +--+----+       can sink: the placement is canonical.
//	  |  |  |  +-----+   d   |
//	  +--+--+--+-----+-------+--> time
//	     sections
//
// Of all right placements one with the least sum of offsets is canonical: each
// buffer lies at 0, at its fixed offset, or as low as what lies below it lets its
// alignment. So it is built from below: in order of offsets (ties by a fixed
// numbering of the buffers, the preordering) each buffer goes to the lowest offset
// that is above all neighbours placed so far. The search tries, depth first, which
// buffer comes next, and leaves out
//
//   - a buffer whose (offset, number) is before the last one's: another order has
//     it, or it must wait until a neighbour lifts it;
//   - a buffer at an offset at which some other, free to lie anywhere, would
//     already have ended (dominance): with that one moved down into its room the
//     sum of offsets is less;
//   - the second of two twins, alike in size, alignment and sections, before the
//     first.
//
// A partial placement is given up as soon as a section cannot hold what is still
// to come. Every unplaced buffer j has a lowest offset r_j: above its placed
// neighbours, and not below the last offset (the floor rises with the order). A
// buffer whose turn is over will lie on a neighbour yet to be placed, so its r_j is
// at least the least end that such a neighbour can have. In a section with the
// unplaced buffers j_1, j_2, ... in order of r, those from j_k on all lie at r_(j_k)
// or above:
//
//	r_(j_k) + s_(j_k) + s_(j_(k+1)) + ... <= C      for all k           (1)
//
// Where no unplaced buffer lives on both sides of a point in time, the two sides
// are solved one after the other, and the failure of one is that of both.
//
// Which numbering is good is not known beforehand; a wrong one can cost hours.
// Several take turns with the two searches below, each with a limit on nodes that grows
// from round to round. A turn that ends without using up its limit is a proof.
//
// # Where there is the least choice
//
// What is left after some items are placed depends only on the floors, one for each
// section. Say a section is a valley if each of its items that can lie on its floor has
// the same floor throughout. (The lowest section is one.) Of a valley's items one lies
// on the floor, or none does:
//
//	|    |  c |     |       a or b is next on the valley's floor; or neither, and
//	|    +----+     +--     the next thing above it lies at L or higher.
//	|d|  a?   b?    | e     c, wider than the valley, can't be it.
//	+-+-------------+--
//
// L is the least of the lowest offsets of items like c, and of the ends of items that
// a or b could lie on beside the section. If the section can't spare the room up to L,
// only a and b remain; with none of them the state fails. The search goes on in the
// valley with the fewest such ways, divided by one more than how often it has failed:
// what is forced comes first, and what made trouble comes early. That no floor but one
// that is the bottom or an item's top can bear an item (dominance), twins, (1) and
// decomposition hold as before. A state, the unplaced items with the floors of their
// sections, is remembered when it fails, whatever was placed to reach it.
//
// It needs buffers that may lie anywhere, and alignments that divide all sizes.
//
// # Folding
//
// Where two times with no room to spare meet, the buffers that end leave just the room
// that the ones that begin take. If a single buffer ends and one of the same size
// begins, they have the same offset; and where some that began together end, and some
// begin that end together, of the same size in all, it costs nothing in most cases to
// give them one room:
//
//	+-----+--------+          +--------------+
//	|  a  |   c    |          |              |
//	+-----+--------+    ->    |    abcd      |    and so on
//	|  b  |   d    |          |              |
//	+-----+--------+          +--------------+
//
// Room to spare takes part as buffers of its own, fillers, each from a time at which there
// is more of it to one at which there is less. Which begins and ends where is not known,
// and there are several ways to join: so this is a local search, for a folding with the
// fewest blocks that are in no other. A step takes blocks apart, around a time or a joint,
// or changes fillers,
//
//	two give each other their ends:  [a, b) and [c, d)  ->  [a, d) and [c, b)
//	one is cut:                      [a, b)             ->  [a, t) and [t, b)
//
// for all of their sizes or a part, in most steps such that there is then a filler of just
// the size that blocks ending at a time and others beginning there differ by. Then
// all that matches is joined again, at random where there are several ways; more blocks are
// accepted now and then, and after some steps without fewer, as many as Luby's sequence
// says, all begins anew. Of foldings with the fewest blocks so far, or one more, what is
// left is searched as above, without the fillers that are joined to nothing. What is found
// is a placement; that nothing is found proves nothing. Where few are joined, buffers
// don't follow each other so, and the other searches go on alone.
//
// Dual-feasible functions (Fekete and Schepers 2004) have nothing to add: which buffers
// share a section is given, so that no function of sizes that keeps what fits can
// exceed the sum of live sizes.
//
// # Windows
//
// With windows a buffer can lie lower than what it rests on, and there is no order
// to build by. Such problems go to a plainer search over pairs of buffers: choose
// for each which side of a conflict it lies on, until the lowest placement that the
// choices allow is right.
//
// # The integer program (fitILP, [MinimizeILP])
//
// Sets: buffers i, j in B; for each pair i < j that is in use at a common time the
// intervals k = 1, 2, ... of differences o_j - o_i at which the two overlap, whole
// numbers in [p_ijk, q_ijk). Without windows there is one, with p = 1 - s_j and
// q = s_i.
//
// Variables: offsets o_i >= 0, for a_i > 1 as a_i times an integer; z_ijk = 1 if
// o_j - o_i is beyond interval k, 0 if it is before; the peak P.
//
//	minimise P                                                              (2)
//	o_i + s_i <= P                                     for all i            (3)
//	o_j - o_i >= q_ijk - M_ijk (1 - z_ijk)             for all i < j, k     (4)
//	o_j - o_i <= p_ijk - 1 + N_ijk z_ijk               for all i < j, k     (5)
//	o_i = given                                        where it is fixed    (6)
//
// H is a height that some best placement has: the capacity, or the start's peak.
// As 0 <= o_i <= H - s_i, M_ijk = q_ijk + H - s_i and N_ijk = H - s_j - p_ijk + 1
// are just large enough. With a capacity, P is bounded by it and the cost is 0.
//
// Strengthenings: P is at least the largest sum of live sizes; z_ijk is fixed where one
// side leaves no room below H; of twins the first lies lower; M and N as above rather
// than H plus the interval's end for all.
//
// The offsets of the answer are recomputed in whole numbers: the lowest ones that
// the z allow.
//
// # What to spill ([Spill], spillILP, [SpillSweep])
//
// x_i = 1 if buffer i is spilled at a cost of c_i bytes moved. With w_ti bytes of i
// in use in section t, of which e_t = sum_i w_ti - C are too many:
//
//	minimise    sum_i c_i x_i                                               (7)
//	subject to  sum_i min(w_ti, e_t) x_i >= e_t     for all t with e_t > 0  (8)
//
// (8) is necessary for offsets to exist, not sufficient. If they are asked for and
// what stays, K, has none, then neither has any larger set, so
//
//	sum_(i in K) x_i >= 1                                                   (9)
//
// is added and the choice is made again.
//
// [SpillSweep] chooses by dynamic programming over time. It does not ask for offsets,
// and knows demands for free space: with g_tk bytes free at time t, m_tk bytes more
// move, g falling and m rising with k. With z_tk = 1 for the tier that is had, V_t the
// buffers in use at t, and (8) replaced:
//
//	minimise    sum_i c_i x_i + sum_tk m_tk z_tk                           (10)
//	subject to  sum_(i in V_t) w_ti (1 - x_i) + sum_k g_tk z_tk <= C   for all t  (11)
//	            sum_k z_tk = 1                                         for all t  (12)
//
// # Sources
//
// M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023, for the problem and the
// format of its files (https://github.com/google/minimalloc). M. Luby, A. Sinclair and
// D. Zuckerman, "Optimal speedup of Las Vegas algorithms", IPL 47, 1993, for restarts.
package allocate
