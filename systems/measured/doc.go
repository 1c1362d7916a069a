// Package measured holds the simulator against real machines: networks, products, attention and single operators as
// others have measured and published them, each predicted from the machine's file with nothing fitted. Those of an H100
// are by gpu.py, in three sets, and h100-blind.csv, h100-blind2.csv and h100-blind3.csv have what was predicted before
// each; those of an H200 are a fourth set, and h200-blind.csv has the predictions. start.cu and parts.py time what
// kernels take to begin, and what networks are made of.
//
// rows.csv has the measurements with their sources. A row is left out of it if the zoo does not have its network, if
// its batch is not given, if it packs sequences of random lengths, or if a framework's host code is most of its time.
//
// # What is compared
//
// Both sides are the time of one batch. A measured rate is of all cores that the row names, which divide batches and
// not a batch, so a batch takes cores x batch / rate. The prediction is the simulated latency of the recipe tiled from
// a cold chip for a single operator. Networks were run again and again, so theirs is the time from batch to batch, in
// which weights that fit stay on the chip. If the host's call is in the measurement and not hidden, because no core has
// a second batch in flight, the machine file's host time is added, or what the row's authors take of it as the
// framework's. Batches above [largest] are simulated at that size and scaled.
//
// A number format of half a byte has no type: its machine has twice all bandwidths. A fidelity that takes fewer or more
// passes replaces the rate of the matrix unit. Where launch gaps are left out of the measurement, the gap is the time
// of the cores' start alone. A node of a graph waits for a gap in place of a launch.
//
// # Gemmini
//
// A row of RTL has a mapping: loops over the DRAM, and tiles that the scratchpad and the accumulator hold. The tiles
// become a blocked nest, which is simulated. Each iteration of the loops over the DRAM loads what it needs anew, as the
// machine's programs do, blocks of the next iteration take the place of those that are done, and the channels of each
// element of the kernel fill rows of the array. Loops inside of the tiles are the machine's own, whatever the mapping
// says: RTL takes the same cycles for mappings that differ in these alone. Sums stay in the accumulator whatever the
// order of the loops. Tiles at the borders have the rest. docs/measured.md names the sources.
package measured
