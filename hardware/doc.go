// Package hardware describes accelerators: what a machine has, not how long
// anything takes on it (package cost) or what runs on it (packages isa, sim).
//
// # The machine
//
// A description is an instance of the abstraction of the GraphTurbo paper (Figure 1): a chip of d clusters of c cores
// of u compute units over three levels of memory. Each core has a local memory (L1), the cores of a cluster share
// a memory (LLB), and all clusters share the off-chip DDR.
//
//	            DDR                     1 for the chip
//	     ┌───────┴───────┐  ddr_link    1 per cluster
//	    LLB              LLB              1 per cluster, or none
//	 ┌───┼───┐       ┌───┼───┐ core_link  1 per core
//	L1  L1  L1      L1  L1  L1          1 per core, or none
//	 u   u   u       u   u   u          compute units of a core
//
// All clusters are alike. The cores of a cluster may differ: a description lists core types with the number of each.
// Where there is no LLB, core_link joins the core with the fabric between the cores, and data comes from the DDR to the
// L1 over ddr_link and core_link. Of the two levels on the chip at least one is there.
//
// A compute unit is of one of three kinds. A matrix unit is a weight-stationary array, which takes Rows elements along
// the reduction and adds to Cols outputs per cycle. A vector unit works on Lanes elements at a time, in CyclesPerOp
// cycles for an operation of each class: simple (add, multiply, multiply-add, compare, select, maximum, convert),
// special (exp, log, erf, tanh, sigmoid, division, square root) and move (copy, transpose, gather). A special unit is a
// vector unit that does the special functions. Rates by dtype multiply the multiply-accumulates of an array and the
// lanes of the others. Units of one core run at the same time unless they share hardware ([CoreType.Resource]).
//
// # Notation and units
//
//	d  Spec.Clusters         c  Spec.Cores()        u  len(CoreType.Units)
//
// Sizes are in bytes, times in seconds, bandwidths in bytes per second, rates and overheads of units in cycles of
// Spec.ClockHz, or of the unit's own clock. The bandwidth of a memory counts reads and writes together; that of a link
// holds for each direction. The latency of a move is that of the link plus those of the memories at its ends: what is
// known only as a whole stands in one of them, the others are zero.
//
// # Assumptions
//
// Memories have no banks and links no packets. One kernel at a time runs on a cluster.
//
// # The file
//
// A description is a YAML file. Its fields with units and defaults stand in docs/machine-file.md, a
// complete one in testdata/example.yaml. Lower bounds know a unit's clock and a matrix unit's least; they
// leave gaps and the least of other units out, so that they stay below.
//
// Reading is strict. Unknown and duplicate fields, missing fields, values out of range, names that refer to nothing and
// the like are errors that say in which line, which field, what was found and what was expected; all mistakes of a file
// are reported at once. Tags, aliases and second documents are refused.
//
// # Sources
//
// The presets carry, at each figure, where it is from and how far to trust it. Figures that are not published are
// marked ESTIMATE there, with the range that is plausible, or "fitted" where "dsasched calibrate" found them within it.
// Lower bounds take estimates at the fast ends of their ranges ([Spec.Fast]).
// Sources for the STCP920: Zhao et al., "Effectively Scheduling Computational Graphs of Deep Neural Networks toward
// Their Domain-Specific Accelerators", OSDI 2023 (GraphTurbo); the vendor's product manual and programming guide; Zhan
// et al., "NeuralScale: A RISC-V Based Neural Processor Boosting AI Inference in Clouds", CARRV 2021 (second hand); the
// README of the STC backend in ByteMLPerf. Those of the other machines stand in their presets.
package hardware
