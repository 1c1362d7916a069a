// Package hardware describes accelerators: what a machine has, not how long
// anything takes on it (package cost) or what runs on it (packages isa, sim).
//
// # The machine
//
// A description is an instance of the abstraction of the GraphTurbo paper (Figure 1):
// a chip of d clusters of c cores of u compute units over three levels of
// memory. Each core has a local buffer (LB, "L1"), the cores of a cluster share
// a global buffer (GB, "LLB"), and all clusters share the off-chip DDR.
//
//	            DDR                     1 for the chip
//	     ┌───────┴───────┐  ddr_link    1 per cluster
//	    GB              GB              1 per cluster, or none
//	 ┌───┼───┐       ┌───┼───┐ core_link  1 per core
//	LB  LB  LB      LB  LB  LB          1 per core, or none
//	 u   u   u       u   u   u          compute units of a core
//
// All clusters are alike. The cores of a cluster may differ: a description
// lists core types with the number of each. Where there is no GB, core_link
// joins the core with the fabric between the cores, and data comes from the DDR
// to the LB over ddr_link and core_link. Of the two levels on the chip at least
// one is there.
//
// A compute unit is of one of three kinds. A matrix unit is a weight-stationary
// array, which takes Rows elements along the reduction and adds to Cols outputs
// per cycle. A vector unit works on Lanes elements at a time, in CyclesPerOp
// cycles for an operation of each class: simple (add, multiply, multiply-add,
// compare, select, maximum, convert), special (exp, log, erf, tanh, sigmoid,
// division, square root) and move (copy, transpose, gather). A special unit is a
// vector unit that does the special functions. Rates by dtype multiply the
// multiply-accumulates of an array and the lanes of the others. Units of one
// core run at the same time unless they share hardware ([CoreType.Resource]).
//
// # Notation and units
//
//	d  Spec.Clusters         c  Spec.Cores()        u  len(CoreType.Units)
//
// Sizes are in bytes, times in seconds, bandwidths in bytes per second, rates
// and overheads of units in cycles of Spec.ClockHz, or of the unit's own clock. The bandwidth of a memory
// counts reads and writes together; that of a link holds for each direction. The
// latency of a move is that of the link plus those of the memories at its ends:
// what is known only as a whole stands in one of them, the others are zero.
//
// # Assumptions
//
// Memories have no banks and links no packets. One kernel at a time runs on a
// cluster.
//
// # The file
//
// A description is a YAML file. This is a complete one:
//
//	name: my-npu                # letters, digits, '.', '_', '-'
//	description: an example     # optional, one line
//	clock: 1.0GHz               # of everything that is given in cycles
//	clusters: 4
//
//	core_types:                 # the cores of ONE cluster
//	  - name: core
//	    count: 8
//	    has_lb: true            # optional; true unless lb is none
//	    units:
//	      - name: mme
//	        kind: matrix        # matrix, vector or special
//	        rows: 64            # elements along the reduction, per cycle
//	        cols: 32            # outputs
//	        rate: {f16: 1, i8: 2}
//	        fill: 25cycles      # overhead of one operation
//	      - name: vme
//	        kind: vector
//	        lanes: 64           # elements per cycle at rate 1
//	        rate: {f16: 1, f32: 0.5}
//	        fill: 10cycles
//	        cycles_per_op: {simple: 1, move: 1}
//	      - name: vector-core
//	        kind: special
//	        shares_with: vme    # optional: the two never run at the same time
//	        lanes: 64
//	        rate: {f16: 1, f32: 0.5}
//	        fill: 20cycles
//	        cycles_per_op: {simple: 1, move: 1, special: 4}
//
//	lb:                         # per core; or "lb: none"
//	  size: 1MiB                # for data
//	  weights: 256KiB           # optional: separate part for weights
//	  bandwidth: 512GB/s        # reads and writes together
//	  latency: 0ns
//
//	gb:                         # per cluster; or "gb: none"
//	  size: 8MiB
//	  bandwidth: 256B/cycle
//	  latency: 0ns
//
//	ddr:                        # whole chip
//	  size: 16GiB
//	  bandwidth: 108GB/s
//	  latency: 150ns
//
//	core_link:                  # one core <-> GB, or the fabric if gb is none
//	  bandwidth: 64GB/s         # per direction
//	  latency: 76cycles
//	  broadcast: true           # optional, false if left out
//
//	ddr_link:                   # one cluster <-> DDR
//	  bandwidth: unlimited      # or a bandwidth, per direction
//	  latency: 0ns
//
//	launch: 10us                # start of a kernel on a cluster
//	sync: 100cycles             # barrier over the cores of a cluster
//
// These fields may be added. A matrix unit's "block: 3.5cycles" is what it loses at each
// change of the block of its stationary operand within an operation; without it blocks
// follow each other at once. The DDR's "activation_efficiency: 0.8" is the share of its
// bandwidth that moves of activations reach; without it they reach all of it, as
// weights do. A unit's "clock: 2.8GHz" is its own, of which its cycles are (the engines of
// AWS Inferentia2 have three). Its "least: 64cycles" is what an instruction takes at least:
// each block of a matrix unit, each command of another (Inferentia2 too). A matrix unit's
// "operands: 80B/cycle" and "results: 8192" say that its operands come from the LB in turn
// with computing, once for each tile of so many results, which it adds up itself (Wormhole's
// unpackers, and its eight tiles of 32 x 32). The machine's
// "gap: 800ns" is from the end of a layer to the start of the next within a kernel, where
// each layer is a program of its own that the device starts (the operators of a replayed
// trace on Tenstorrent's Wormhole, the nodes of a graph on a GPU); nothing overlaps with it.
// Its "host: 160us" is what a call of the host takes beside the program (Inferentia2); no
// simulated time has it. Lower bounds know a unit's clock and a matrix unit's least, and leave
// gaps and the least of other units out, so that they stay below.
//
// What work takes beside time may stand in a mapping energy, all of it or none; without it
// nothing is said of energy:
//
//	energy:
//	  mac: {f16: 1.1pJ}         # a multiply-accumulate, with what it reads of the LB
//	  vector: {f16: 13pJ}       # an operation on a lane, likewise
//	  lb: 3.2pJ                 # a byte that a move reads or writes there
//	  gb: 3.2pJ
//	  ddr: 37.5pJ
//	  static: 50W               # of the chip, whatever it does
//
// Another dtype takes as many times f16's (or, without it, f32's, bf16's, i8's) as its
// elements are larger.
//
// A core type whose cores are not arranged in a line may say so with a grid beside its
// count, "grid: 2x4" for instance.
//
// Sizes are in B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of
// 1000), or plain bytes. Bandwidths are in B/s with the same prefixes or in
// B/cycle; times in s, ms, us, ns, ps or cycles; clocks in Hz, kHz, MHz, GHz; energies in
// J, nJ, pJ, fJ; powers in kW, W, mW. The
// dtypes are f64, f32, f16, bf16, i8, u8, i16, i32, i64 and bool.
//
// Reading is strict. Unknown and duplicate fields, missing fields, values out of
// range, names that refer to nothing and the like are errors that say in which
// line, which field, what was found and what was expected; all mistakes of a
// file are reported at once. Tags, aliases and second documents are refused.
//
// # Sources
//
// The presets carry, at each figure, where it is from and how far to trust it. Figures that are not published are
// marked ESTIMATE there, with the range that is plausible, or "fitted" where "dsasched calibrate" found them within it.
// Sources for the STCP920: Zhao et al., "Effectively Scheduling Computational Graphs of Deep Neural Networks toward
// Their Domain-Specific Accelerators", OSDI 2023 (GraphTurbo); the vendor's product manual and programming guide; Zhan
// et al., "NeuralScale: A RISC-V Based Neural Processor Boosting AI Inference in Clouds", CARRV 2021 (second hand); the
// README of the STC backend in ByteMLPerf. Those of the other machines stand in their presets.
package hardware
