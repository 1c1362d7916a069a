// Package convert reads accelerators of other tools and writes them as files of ours.
//
// It reads the cores of ZigZag, the systems of cores of Stream and the hierarchies of AccelForge. Each
// field of the result has a comment with its origin. What has no counterpart here is listed as lost,
// or refused with its file, line and name where numbers would mean something else without it.
//
// ZigZag and Stream (KULeuven-MICAS, MIT) have sizes in bits, rates in bits a cycle, energies in
// picojoules an access of a port's largest width, and no clock: a cycle is taken as a nanosecond.
// Memories of earlier releases of ZigZag have a bandwidth of reads, one of writes, and how many ports of each kind.
// A dimension of the array that shares weights holds pixels, which our matrix unit has as a rate. One that
// shares results is the reduction, rows of ours. Others are columns, or the first is rows where none is
// the reduction. Registers belong to the array. The outermost buffers of data and of weights are the L1.
// Cores of Stream that multiply and whose files differ become kinds of core, which run what operator_types say; there
// is one L1 for all of them, with the least of their figures.
//
// AccelForge (Accelergy-Project, MIT) has sizes in bits, rates in bits a second and energies in joules a
// bit, as arithmetic. A spatial container is the array, a memory with a fanout in front of it the L1 of as
// many cores, the memory of infinite size the DDR. What component models compute is not in the file and is refused.
package convert
