// Package streams simulates operators that run side by side on one machine, as the kernels of several streams do on a
// GPU. It knows nothing of who chose which operators run together.
//
// # Model
//
// An operator is a kernel of equal blocks. A machine has processors, each of which runs one block at a time. While it
// works, a block moves its bytes to and from the memory, which all processors share: what cannot be moved in that time
// makes the block longer. A memory that is asked for more than it has gives each block the same, and none more than it
// takes: operators that run together compete. An operator may have a width, the most processors that work on it at a
// time. With n blocks together a block takes
//
//	max(work, bytes / bandwidth of a processor, n x bytes / bandwidth of the memory)
//
// and an operator alone a launch and that for each wave of min(processors, width) blocks, the last one
// with what is left.
//
// Operators that are started together share the processors: whenever some are free, they take blocks of the operators
// whose launch is over, those with the longest blocks first and ties in order of index. A phase ends when the last
// block has. [Machine.Run] runs a set of operators as one phase after another: all whose predecessors in the set have
// ended ([SideBySide]), or one by one ([OneByOne]). [Machine.Best] takes the faster, or convolutions of one input with
// equal windows as one kernel ([AsOne]).
//
// Where a convolution or a matrix product comes from a network ([Operators]), its output is cut into tiles, a block
// each: the largest of tiles of those with the least time alone. The work of a block is its multiply-accumulates at
// the peak of one processor times an efficiency; what it moves is its share of the operator's bytes.
//
// # Not in the model
//
// Caches, which operators that run together share, too; several blocks on one processor at a time; clocks
// that fall under load.
//
// Times are in seconds.
//
// Source of the setting: Y. Ding et al., IOS: Inter-Operator Scheduler for CNN Acceleration, MLSys 2021.
package streams
