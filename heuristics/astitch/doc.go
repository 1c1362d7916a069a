// Package astitch makes the decisions of
//
//	Z. Zheng et al., "AStitch: Enabling a New Multi-dimensional Optimization Space
//	for Memory-intensive ML Training and Inference on Modern SIMT Architectures",
//	ASPLOS 2022
//
// on an accelerator with software-managed memories ([Group]), as the comparison of the
// GraphTurbo paper (OSDI 2023, §5.2) needs it, and on the machine of threads and blocks
// that it was made for ([Stitch]).
//
// # Idea
//
// Existing compilers fuse an operator with the element-wise operators behind it and
// end the kernel where an element is needed by many others: behind a reduction,
// in front of a broadcast, at a tensor with several readers. AStitch keeps one
// kernel, the stitch operator, and lets the two sides exchange data through
// whichever memory the dependency allows:
//
//	scheme       dependency              GPU              here
//	independent  none                    –                –
//	local        one to one              register         one loop nest, nothing is kept
//	regional     one to many, in a block shared memory    the core's L1
//	global       any                     global memory    the LLB, or the DDR where that is full
//
// # Steps
//
//  1. The kernels of TVM's fusion are the units. One with a matrix operator is
//     compute-intensive and stays as it is; the others are memory-intensive.
//  2. Stitching scope: a breadth-first search from each memory-intensive unit takes
//     in its neighbours, unless a path leads from the stitch operator out and back
//     in, which would leave no order to run the kernels in.
//  3. Remote stitching: stitch operators of which neither needs the other become one.
//  4. Dominants: in a stitch operator every reduction, every expensive element-wise
//     operator that is broadcast, and every operator whose result leaves. Each takes
//     in, breadth first, what it is connected to by local dependencies only; a
//     dominant that another one takes in is a sub-dominant, and a reduction is never
//     one. What comes out are the loop nests (schedule.Layer).
//  5. Bindings: those of the plain rule, carried from the result of a stitch operator
//     to its loop nests. What leaves a kernel goes to the DDR.
//  6. Block locality: a value of which each core reads only what it has made itself
//     stays in the L1 (regional); any other goes to the LLB (global).
//
// # On a SIMT machine
//
// Matrix operators are closed library calls, every other operator is a unit by itself,
// and scopes, remote stitching and dominants are as above. What differs ([Kernel]):
//
//   - A dominant also takes in operators that are cheap to compute again for each
//     reader, whatever the dependency; two candidates joined by local dependencies
//     merge.
//   - Reductions get their threads by task packing and splitting ([simt.Pack]), within
//     a wave of blocks of 1024 threads with 32 registers. Element-wise groups, the
//     largest first, adapt to the rows of a neighbour if that keeps values within
//     blocks (active locality).
//   - A dependency between groups is regional if each block reads only rows that it
//     makes (passive locality, [fusion.WithinBlocks]), else global, with a barrier over
//     all blocks. Where shared memory does not hold the rows of all regional values at
//     that wave, the largest becomes global, one by one.
//   - Registers are relaxed to what the blocks leave to each thread.
//
// On the accelerator, nothing is split into instances. docs/deviations.md lists what differs from the
// GPU original, and why.
package astitch
