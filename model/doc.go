// Package model holds the computational graph of a neural network: operators, tensors, shapes and element types, and
// for each operator kind the facts that scheduling rests on.
//
// # Notation
//
// A Graph is a list of operators in topological order over a list of tensors. IDs are dense: Graph.Ops[i].ID == i and
// Graph.Tensors[i].ID == i. An operator usually has one output tensor; some (Split) have several.
//
// The loops of an operator are the dimensions of its output, which are parallel
// unless KindInfo.Sequential says otherwise, and its reduction loops.
//
// # Matching dimensions
//
// Access answers the question on which the paper's match_dim, fine-grained dependencies, halos and core bindings all
// rest: which range of each input dimension does a range of the output need? For every input dimension there is one
// Access: either Full (all of it, whatever the output range: reductions, broadcasts, normalised axes) or affine in one
// output dimension
//
//	lo' = floor(lo/Den)*Num + A
//	hi' = floor((hi-1)/Den)*Num + B + 1      clipped to [0, n)
//
// which covers identity (Num=Den=1), windows with stride, dilation and halo (Num=stride, A=-pad,
// B=(kernel-1)*dilation-pad), concatenation and slicing (A=B=offset), reshapes (Num or Den the size of the inner
// block), grouped channels and up-sampling. Where a reshape merges or cuts dimensions, several drive one together
// (Access.From, To): an element of the output needs one of the input, whatever the shapes.
//
// # Layout
//
// Shapes stand in the order of the exchange format (N, C, H, W for images); the accelerator's loops run in the order
// of Tensor.Layout, outermost first, which for images is N, H, W, C. "Depth" of a dimension in the algorithms means
// its position in the layout.
//
// Units: sizes are in elements unless a name ends in Bytes; intervals are half-open.
package model
