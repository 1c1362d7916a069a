// Package kernels takes a network to the kernels of a SIMT machine: it brings the graph to the frameworks' grain
// (package model/grain), has a method make kernels of it, and returns the checked and priced plan (package
// heuristics/fusion). It is for GPUs what package scheduler is for accelerators.
//
// The methods are the rows of a table: AStitch, the fusions of XLA, TVM and TensorRT, a framework's kernel for each
// operator, and the exact counterpart of AStitch's rules (package systems/astitchgpu/stitch).
//
// # Exact, within what
//
// The exact method keeps AStitch's stitching scopes and decides within each, with proof: how its operators part into
// kernels, which values go through global memory though shared memory would do, and whether dominants merge. Groups,
// mappings and what overflows follow AStitch's rules for every kernel that it looks at. Stitch operators of different
// scopes cannot share a kernel anyway: a library call lies between. Scopes of more than 64 operators, or with too many
// sets of operators that can come first, keep the rule's kernel with a bound: what every plan must read and write, and
// one launch.
package kernels
