// Package sharding divides the operators of a network over equal chips that are joined by
// links: tensor parallelism, operator by operator.
//
// # Layouts
//
// On p chips a tensor is [Whole] on each, or [Cut] along a dimension into p equal parts, of
// which chip c has part c, or [Partial]: each chip has a summand of its shape, and the tensor is
// their sum. Constants and inputs of the network may have any layout. Dimensions that grow with
// the batch are not cut: chips that share a batch need no links.
//
// # Options
//
// An operator is computed whole by all chips, or cut along a dimension of its outputs, if part c
// of the outputs needs, of each input, all of it or just part c along one dimension and if the
// operator infers the right shapes from such parts. A matrix product is also cut along a
// reduction: both operands are cut, and the result is Partial. A bias is then zero on all chips but the
// first. A mask that marks itself as causal is not cut.
//
// # Costs
//
// Seconds. An operator takes the longest of its products at the peak rate of the matrix units,
// its vector work at that of the vector units, and its constants from the DDR. Layouts that
// differ between a tensor and its reader cost a collective. With n bytes and a latency of L, where
// a chip sends to all others B bytes a second and takes as many,
//
//	Whole to Cut           0, each chip takes its part
//	Cut a to Cut b         L + n (p-1) / p^2 / B     all-to-all
//	Cut to Whole           L + n (p-1) / p / B       all-gather
//	Partial to Cut         L + n (p-1) / p / B       reduce-scatter
//	Partial to Whole       the last two              all-reduce
//
// as each chip sends and receives (p-1)/p of n through its own link, all at once; an all-to-all
// 1/p of that. The additions keep up with the links. Behind a collective a kernel is launched.
//
// On a ring of k chips B is of each link between neighbours and direction, and L of each hop. A chip has
// s links (2, or 1 of two chips) and q bytes:
//
//	all-gather        (k-1) (L + q/s / B)    k-1 steps pass halves of parts on, either way round
//	reduce-scatter    the same, where a chip ends with q
//	all-to-all        floor(k/2) L + q floor(k^2/4)/(k s) / B    each share goes the shorter way
//
// A torus goes dimension by dimension, a ring each: an all-gather begins with q = n/p and goes on with k times that, a
// reduce-scatter is its reverse, and in an all-to-all q is n/p in each.
//
// A tensor of several readers is changed once, to a layout that each reader can take its part of or that is
// changed again, once for each other layout that readers want. An output of the network that is
// Partial is summed; one that is cut stays cut. A plan's cost is the sum over its operators and its collectives.
//
// # The problem
//
// One label for each operator, its option, and for each tensor of several readers, the layouts that there are of it,
// which must be those that the options want; costs for nodes and for pairs: package binding solves it by variable
// elimination or as an integer program, with proof. Greedily, each operator in topological order takes the option of
// least seconds with what the layouts of its inputs then cost.
//
// # Pieces
//
// The collectives cut the network into pieces: operators with equally many collectives in front
// of them. [Pieces] gives each as a graph of one chip. Pieces and collectives follow each other,
// so the sum of their times is that of a schedule in which they do not overlap.
package sharding
