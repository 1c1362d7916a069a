// Package simt models a machine of the kind that runs one program in many threads (a GPU) for kernels that move data
// rather than compute: how many blocks of threads are on it at a time, how a reduction or an element-wise loop is
// spread over them, and how long a kernel takes.
//
// # Notation
//
// A kernel runs in blocks of threads; a streaming multiprocessor (SM) holds several blocks at a time, its occupancy. A
// [Mapping] spreads a loop nest with Rows independent results, each made of Cols elements, over threads:
//
//	task   what a block does at a time: RowsPerTask rows, or one of Parts parts of a row
//	block  Tasks tasks, one after the other
//
// A wave is the number of blocks that are on the machine at the same time,
//
//	wave = SMs x min(T/threads, R/(registers x threads), M/shared, B)
//
// with the SM's threads T, registers R, shared memory M and blocks B (AStitch, ASPLOS 2022). A kernel with a barrier
// over all of its blocks must fit into one wave, or it waits for ever.
//
// # Time
//
// A kernel is a list of phases with a barrier over all blocks between two of them; a phase is a list of loop nests,
// some of which wait for others of the same phase within their block. With the sums over the nests of a phase:
//
//	phase = max(DRAM bytes / DRAM rate, L2 bytes / L2 rate, shared bytes / shared rate,
//	            simple / lanes, special / special lanes, atomics / rate, latency)
//	kernel = launch + phases + (phases - 1) x barrier(blocks)
//
// where rates of an SM count for the SMs that have a block. The latency of a phase is
// what its threads cannot hide. A block of a nest lives
//
//	lifetime = start + tasks x (ceil(elements of a task / threads) x latency + syncs x sync)
//
// with one load under way per thread: the concurrency that Little's law asks for follows from that. A nest takes
// ceil(blocks / wave) lifetimes; the phase takes the longest chain of nests that wait for one another, and no less
// than all blocks' lifetimes together over the wave. start counts once in a chain.
//
// A compute-intensive operator is a closed library call at a roofline:
//
//	launch + max(MACs / (library efficiency x peak), bytes / DRAM rate)
//
// # Not in the model
//
// Caches between kernels (what a kernel reads, it reads from the DRAM; within a kernel,
// what earlier nests have written comes from the L2 as far as it fits), bank conflicts,
// uncoalesced access, divergence within a warp, the host's memory, kernels side by side.
//
// Times are in seconds, sizes in bytes, rates per second unless a name says otherwise.
package simt
