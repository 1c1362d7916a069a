// Package fusion describes how a graph's operators become kernels of a SIMT machine: which operators share one, in
// which loop nests, through which memory the nests pass their data, and what that costs. Fusion methods (rules, xla,
// tensorrt and stitch beside it) decide; this package checks and prices what they have decided, by the same rules for
// all.
//
// # Plan
//
// A [Plan] lists kernels in an order in which they can run. A compute-intensive operator is a closed library call, a
// kernel by itself. Any other kernel has groups, each a loop nest over threads with one dominant operator, whose
// [simt.Mapping] all operators of the group follow. A dependency within a kernel is served by a [Scheme]:
//
//	scheme       dependency              memory
//	independent  none                    –
//	local        within a group          registers
//	regional     within a block's rows   shared memory, a barrier of the block
//	global       any                     global memory, a barrier of all blocks
//
// Views (reshapes) move nothing: they are no kernel and cost nothing, wherever they stand.
//
// # Rows and block locality
//
// A group works on Rows rows; a tensor is in step with them if its leading dimensions have the product Rows and each
// row of it is made of, and made into, the same row of the dominant. A block owns consecutive rows. So a value can be
// regional if maker and reader are in step on it with equal rows, equally many to a block ([WithinBlocks]).
//
// # Price
//
// Per group: the vector operations of its operators, those in front of a broadcast once for each element that they are
// broadcast to; the bytes that it reads, each tensor once; what it writes for other kernels or other groups. What an
// earlier group of the kernel has read or written comes from the L2 as far as that holds it. The phases of a kernel
// end at barriers of all blocks: a group is in the phase after the last maker of what it reads globally. Package simt
// turns that into seconds.
package fusion
