// Package stitching asks what AStitch (ASPLOS 2022) is worth on the machine that it was made for: kernels and their
// launches, speedups, its ablation, its two reductions and its barrier, beside the published figures. Networks are at
// batch 1 in f32, with the configurations that the zoo assumes; the paper gives none, so that its absolute times are
// beside the point, and counts are compared as shares.
package stitching
