// Package zoo builds the networks of the papers in code, so that no file is needed to schedule them.
//
// A network is a row of the table in zoo.go: a name, where it comes from, and a call of its family with the family's
// parameters. A new size of a family is a new row; a new family is a function from Options to a graph.
//
// The graphs are what an exporter would write, not what a compiler would make of them: batch normalisation is an
// operator of its own, and so is a bias after a matrix product. Folding them is the work of the simplify passes.
//
// The order of operators is the order of execution, and schedulers that follow it keep what it keeps alive. Two
// choices matter for that: in a residual block the main branch comes before the shortcut, as torchvision has it; in an
// attention layer the value projection comes after the softmax, so that the values are not alive together with
// queries, keys and scores.
//
// Images are in N, C, H, W. Sequences are [batch, position, feature]. Constants carry shapes only, no values.
package zoo
