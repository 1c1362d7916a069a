// Package cost turns work into cycles and moves into bytes: the analytical cost
// model of one accelerator. Nothing in it knows a network or a schedule.
//
// # Matrix unit
//
// A unit of R rows (reduction) and C columns (outputs) keeps a block of R x C weights in place and streams one row of
// the other operand per cycle. A product of [M x K] with [K x N], repeated Reps times, takes
//
//	blocks = ceil(K/R) * ceil(N/C)                          edge waste
//	cycles = Reps * blocks * max(M / rate, L) + (Reps * blocks - 1) * gap + fill
//	L      = R * C * element bytes / L1 bytes per cycle     loading the next block, or the
//	         unit's "least" if that is more                 issuing it
//
// Where the unit has "operands", of B bytes per cycle, and holds H "results", each row takes the time of its operands
// besides: R * C * element bytes * (1/h + 1/w) / B, with tiles of h x w <= H results, as square as M and N let them be.
// Here rate is the dtype's multiplier (2 for INT8 on the STCP920), fill the latency of one operation, and gap what is
// lost between two blocks (the unit's "block"). A block loads while the one before it computes, hence the maximum.
//
// Where the unit has n commands "in_flight", each passes at most R rows, of one line of a convolution's results. The
// first of a block brings its weights and takes L at least; each leaves fill after its last row. With c commands and
// S cycles of rows and weights, a block takes max(S, (S + c * fill) / n) in place of the maximum above.
//
// # Vector units
//
// Simple operations and moves run on the vector unit, special functions on the
// special unit (on the vector unit if there is none):
//
//	cycles = max(ceil(operations / (lanes * rate)) * cycles per operation, least) + fill
//
// where an operator's operations per output element are in package model (a softmax: 4 simple and 1 special).
// Operations of one class in one command pay fill once.
//
// A unit with a clock of its own takes that many times more or fewer of the chip's cycles.
//
// # Moves
//
// Bytes are counted where they pass (paper Fig. 1): DDR to LLB takes the DDR's and the LLB's bandwidth; LLB to L1 the
// LLB's and the core's link, a broadcast once of the LLB's and everywhere of the links; L1 to L1 the links of both and
// twice the LLB's, through which the STCP920 connects its cores.
//
// # Own costs
//
// NewWith takes a Custom, which answers for matrix and vector commands in the place of
// these formulas; docs/extend-cost.md shows how.
//
// # Not modelled
//
// Bank conflicts, DDR refresh and page misses, L1 bandwidth contention between units, and instruction fetch.
package cost
