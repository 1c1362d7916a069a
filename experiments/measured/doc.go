// Package measured holds the simulator against real machines: networks, products and single operators as others have
// measured and published them, each predicted from the machine's file with nothing fitted.
//
// rows.csv has the measurements with their sources. A row is left out of it if the zoo does not have its network, if its
// batch is not given, if it packs sequences of random lengths, or if a framework's host code is most of its time.
//
// # What is compared
//
// Both sides are the time of one batch. A measured rate is of all cores that the row names, which divide batches and not a
// batch, so a batch takes cores x batch / rate. The prediction is the simulated latency of the recipe tiled from a cold
// chip for a single operator. Networks were run again and again, so theirs is the time from batch to batch, in which
// weights that fit stay on the chip. If the host's call is in the measurement and not hidden, because no core has a
// second batch in flight, the machine file's host time is added, or what the row's authors take of it as the
// framework's. Batches above [largest] are simulated at that size and scaled.
//
// A number format of half a byte has no type: its machine has twice all bandwidths. A fidelity that takes fewer or more
// passes replaces the rate of the matrix unit. Where launch gaps are left out of the measurement, the gap is that of the
// cores' start alone.
package measured
