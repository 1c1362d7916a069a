// Package streams simulates operators that run side by side on one machine, as the
// kernels of several streams do on a GPU. It knows nothing of who chose which
// operators run together.
//
// # Model
//
// An operator is a kernel of equal blocks. A machine has processors, each of which
// runs one block at a time, at its own speed whatever the others do. An operator may have
// a width, the most processors that work on it at a time:
//
//	time of an operator alone = launch + ceil(blocks / min(processors, width)) x time of a block
//
// Operators that are started together share the processors: whenever some are free,
// they take blocks of the operators whose launch is over, those with the longest
// blocks first and ties in order of index. A phase ends when the last block has.
// [Machine.Run] runs a set of operators as one phase after another: all whose
// predecessors in the set have ended ([SideBySide]), or one by one ([OneByOne]).
//
// Where a convolution or a matrix product comes from a network ([Operators]), its
// output is cut into tiles, a block each: the largest of tiles of those with the
// least time alone. The time of a block is its multiply-accumulates at the peak of
// one processor times an efficiency, or its share of the operator's bytes at the
// processor's share of the memory's bandwidth, whichever is longer.
//
// # Not in the model
//
// Caches and the memory's bandwidth between operators that run together, several
// blocks on one processor at a time, clocks that fall under load.
//
// Times are in seconds.
//
// Source of the setting: Y. Ding et al., IOS: Inter-Operator Scheduler for CNN
// Acceleration, MLSys 2021.
package streams
