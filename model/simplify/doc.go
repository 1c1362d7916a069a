// Package simplify makes a graph smaller without changing what it computes: the
// standard graph optimisations that schedulers take for granted.
//
// The passes are the rows of the table in passes.go. Each row says what the pass is for and which passes must have run
// before it, and why; start-up checks that the table's order agrees. The table is swept until a sweep changes nothing.
// Every change removes an operator or an edge to a constant, or brings a move closer to a constant or a slice to an
// input, so this ends.
//
// # What stays
//
//   - The given graph: Run works on a copy.
//   - The interface: network inputs and outputs keep names, order, shapes and
//     types. An input that nothing reads any more stays an input. [ReadParts],
//     which is no pass of Run, adds parts of inputs behind them.
//   - Every output keeps an operator that writes it. An identity between an input
//     and an output therefore stays, and a constant is not made of an output.
//   - Shapes and types of all tensors that remain.
//   - MACs, except those of duplicates, of dead code and of products of constants.
//
// # Attention
//
// [FuseAttention] is no pass of Run: it puts one operator in the place of an attention's. Nor is [TakeApart], which
// cuts running sums, and what is done on them, into parts that follow each other, and group normalisations into passes.
//
// # What changes
//
// Payloads of constants are not kept in a graph, so folding records only that a value is known before the network runs.
// A folded constant counts as learned if any of its ingredients is. Parameter counts change: a batch normalisation
// brings two learned vectors per channel and leaves one bias behind. Take Graph.Params before simplifying.
package simplify
