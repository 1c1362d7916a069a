// Package grain takes the operators of a graph apart into those that frameworks run
// and compilers fuse: element-wise operators with broadcast, reductions, moves, and
// matrix products.
//
// A model.Graph has a softmax or a layer normalisation as one operator, which suits a
// machine that has a kernel for it. Fusion for a GPU begins below that: what shares a
// kernel, and through which memory, is decided between the reduction and the broadcast
// inside a softmax. [Expand] gives the graph at that grain:
//
//	Softmax    max, subtract, exp, sum, divide
//	LayerNorm  mean, subtract, square, mean, add epsilon, root, divide, scale, shift
//	RMSNorm    square, mean, add epsilon, root, divide, scale
//	GroupNorm  as LayerNorm, over groups of channels
//	Gelu       by the error function, or by the hyperbolic tangent
//	Silu       sigmoid, multiply
//	Mish       softplus, tanh, multiply
//	HardSwish  hard sigmoid, multiply
//	Gather     from a table of constants: clip the positions, gather (a look-up)
//
// Broadcasts stay implied by shapes, as frameworks' graphs have them. An operator whose
// Attr.Variant says something that its rule does not understand stays whole.
//
// # What stays
//
// The given graph; inputs and outputs with their names, shapes and types; names of all
// tensors that were there; multiply-accumulates; and the values, but for rounding. The
// vector operations of the parts are those of the whole, plus at most one per element
// and a few per row.
package grain
