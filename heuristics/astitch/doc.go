// Package astitch makes the decisions of
//
//	Z. Zheng et al., "AStitch: Enabling a New Multi-dimensional Optimization Space
//	for Memory-intensive ML Training and Inference on Modern SIMT Architectures",
//	ASPLOS 2022
//
// on an accelerator with software-managed memories ([Group]), as the comparison of the GraphTurbo paper (OSDI 2023,
// §5.2) needs it. On the machine of threads and blocks that it was made for, systems/astitchgpu/rules makes them.
//
// # Idea
//
// Existing compilers fuse an operator with the element-wise operators behind it and end the kernel where an element is
// needed by many others: behind a reduction, in front of a broadcast, at a tensor with several readers. AStitch keeps
// one kernel, the stitch operator, and lets the two sides exchange data through whichever memory the dependency allows:
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
// On the accelerator, nothing is split into instances. docs/deviations.md lists what differs from the
// GPU original, and why.
package astitch
