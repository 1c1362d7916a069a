// Package stablehlo reads networks written as text of MLIR's dialect StableHLO, which JAX, PyTorch through torch_xla,
// and compilers print (.mlir), and makes graphs of them, as package onnx does of ONNX files.
//
// Both printed forms are read, and mixtures of them: the pretty one (stablehlo.add %0, %1 : tensor<4xf32>) and the
// generic one ("stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>). The parser (parse.go) knows
// no operator: a body is operands, names with values, lists and regions up to the types. Calls of functions of the
// module are put in place (flatten.go), and then rows of a table translate operator by operator (ops.go).
//
// StableHLO has no operator for some things that ONNX has one for. Four of them are put together again, so that the
// same network costs the same in both formats: a softmax, a mean, a maximum with zero (Relu), and a bias added to a
// convolution or a product. Broadcasts in front of element-wise operators are no operators of their own.
//
// A module has its batch in every type. At another batch, the dimensions that follow it are found by
// uniting those that an operator makes equal, from the leading dimension of the first input on.
// What has a dimension "?" is bound by Options.Dims: argument 2's dimension 0 is arg2.0 if its name is %arg2.
package stablehlo
