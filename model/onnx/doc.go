// Package onnx reads networks in the Open Neural Network Exchange format into model.Graph.
// docs/onnx.md says for users what is read and what is refused.
//
// # What is read
//
// The protobuf wire format is decoded as a stream, without generated code. A graph needs shapes, not weights: payloads
// of tensors are jumped over, except those that shape arithmetic may need, which are integers up to 4096 elements and
// floats up to 8. External weight files are never opened, and a tensor with a shape and no data at all serves as well.
//
// Every length is checked against the message around it before memory is reserved, names and dimensions are bounded,
// and structure is charged to a budget, so that a damaged or hostile file ends in an error, soon and with little
// memory.
//
// # How it is read
//
//  1. Calls of functions that the file defines are replaced by their nodes
//     (expand.go), unless the table of operators knows them.
//  2. The nodes that outputs depend on are sorted topologically; a cycle is a
//     *model.CycleError. Their operators are looked up in the table (rows in ops.go;
//     Operators lists it) by domain, type and operator-set version.
//  3. Input dimensions get numbers; see Options.
//  4. Node by node, operators whose inputs are known integers (Shape, Gather,
//     Concat, …) are computed exactly; the others become operators of the graph,
//     whose output shapes the model package infers. Fused and quantised operators
//     become several. An If with a known condition becomes its branch.
//  5. A node that is beyond the importer makes what depends on it unknown. If that
//     reaches an output, all such nodes are reported together, as an
//     *UnsupportedError.
//
// Tensors and operators keep the names of the file. A node without a name is called after its first output. What the
// graph has no attribute for (epsilon, limits, rounding modes) goes into Attr.Variant, so that operators that differ in
// it are not taken for equal.
//
// # Batch
//
// Files are often written for one batch, and say so in the input's shape and in reshapes. With Options.Batch, shapes
// are inferred twice, at the file's own batch and at the wanted one, and a reshape to a fixed target becomes what it
// means at the file's batch, scaled along the dimension that carries the images; see rescale. Constants that a
// concatenation sets beside a batch of one are expanded. A file for which this fails is refused, naming the node.
//
// # Parameters
//
// A constant counts as learned if an operator reads it as weights, bias or scale, or if it is a floating-point tensor
// of the file of more than one element that some other operator reads: it can't be distinguished from a table that the
// exporter computed. Running means and variances, scales of quantisation, tables of rotations and what the file
// computes from shapes and single numbers are not learned. So parameter counts are those of the training framework,
// except where the exporter folded something already (resnet18 with its batch normalisations folded into convolutions
// has 4800 fewer than the published 11 689 512).
//
// Source: onnx.proto and Operators.md of github.com/onnx/onnx.
package onnx
