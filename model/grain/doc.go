// Package grain takes the operators of a graph apart into those that frameworks run and compilers fuse.
//
// A model.Graph has a layer normalisation as one operator, which suits a machine that has a kernel for it. [To] gives
// it at another grain. Framework is the grain of TensorFlow 1 and PyTorch: activations and normalisations in parts,
// softmaxes whole. Primitive has element-wise operators with broadcast, reductions, moves and matrix products only: a
// compiler for GPUs decides between the reduction and the broadcast inside a softmax which operators share a kernel,
// and through which memory.
//
//	Softmax    max, subtract, exp, sum, divide (Primitive)
//	LayerNorm  mean, subtract, square, mean, add epsilon, root, divide, scale, shift (Primitive)
//	           mean, subtract, square, mean, add epsilon, root, reciprocal, times scale; x times that,
//	           mean times that, shift minus that, add (Framework: tf.nn.batch_normalization)
//	RMSNorm    square, mean, add epsilon, root, divide, scale
//	GroupNorm  as LayerNorm, over groups of channels
//	Gelu       by the error function, or by the hyperbolic tangent: x times the sum, times half (Primitive),
//	           or x times half of the sum, as in BERT's TensorFlow code (Framework)
//	Silu       sigmoid, multiply
//	Mish       softplus, tanh, multiply
//	HardSwish  hard sigmoid, multiply
//	Gather     from a table of constants: clip the positions, gather (a look-up; Primitive)
//	           with variant [Bag]: gather the row of each bag of one, sum over the bag (Framework)
//
// Broadcasts stay implied by shapes, as frameworks' graphs have them. An operator whose
// Attr.Variant says something that its rule does not understand stays whole.
//
// # What stays
//
// The given graph; inputs and outputs with their names, shapes and types; names of all tensors that were there;
// multiply-accumulates; and the values, but for rounding. The parts have the vector operations of the whole, plus at
// most one per element and a few per row.
package grain
