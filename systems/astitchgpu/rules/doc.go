// Package rules has the rules of AStitch ([AStitch]) and of TVM ([TVM]) for kernels of SIMT machines. Graphs should be
// at the frameworks' grain (package model/grain).
//
// # AStitch
//
// Matrix operators are closed library calls, every other operator is a unit by itself, and scopes, remote stitching
// and dominants are those of heuristics/astitch. What differs ([Kernel]):
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
package rules
