// Package interp executes a program on values: it shows that a lowered program computes
// what its network says, at any time that commands may take.
//
// # Values
//
// All values are integers modulo the prime 2^61-1. Convolutions, matrix products, sums, differences, element-wise
// products and averages (without their division) are computed; moves move. Any other operator is a hash of all that an
// element depends on by model.Access, in order, and of where the element stands in it: another element, another order
// or one element less gives another value. One function defines each kind; [Evaluate] runs it over whole tensors, and
// Run over what commands say: the executor stands in machine_test.go, execute_test.go, attend_test.go and
// blockedmachine_test.go, as only this package's tests run it. Constants and inputs of the network are pseudo-random
// numbers, inputs others in each iteration of each cluster.
//
// # Memories
//
// Each core has an L1 and each cluster an LLB, byte by byte. Elements lie at the addresses of operands (isa.Operand)
// and, for constants and what passes through pages of the LLB, in the program's buffers (Command.From and To), in the
// order of arrival; so do those of a stage, which gives up what neither the present tile nor the one before needs. The
// DDR has no addresses. Faults are: reading what is not there, of whatever iteration and instance; writing a result
// twice; passing a capacity; adding up a part of a product's reduction only; an output that differs or lacks an
// element.
//
// # Order
//
// Commands are executed in the order of the program. What one reads must have been written, and what it overwrites must
// have been read, by commands that have ended when it starts however long commands take: those it depends on, those
// before it in its queue, and so on backwards; or by itself, as it reads all operands before it writes. So the result
// does not hang on the simulator's times, and a missing dependency is a fault even where the times hide it.
//
// # What a command does
//
// A core's results are cut by isa.Portion. A load or an exchange brings a core what the boxes of its part need,
// through the operators by model.Access, of what it does not hold. A product adds a tile's terms to the sums that its
// part needs. Where special functions, vector work and products serve one part, the last of them writes the results.
//
// # Attention
//
// An attention gives the values of the operators that it stands for: a softmax is a hash of a row of scores, which no
// running maximum gives. So commands note what they read for a tile of queries, out of the places in the L1 where
// loads have put it, and the division computes its results from that alone. Faults are, beside the others: a key or a
// value that no command has read for a query that sees it, scores over those that may still be in use, sums that have
// not been rescaled, or are taken before all keys have been added. A mask that is known to be causal hides scores:
// they are one number whatever is done to them, and a softmax makes 0 of it.
//
// # What it does not show
//
// Sums before vector work, scores of an attention, rows looked up in tables, and constants in the DDR have no address;
// special functions followed by vector work are not told apart from it. Sizes and durations of commands are not
// compared with what they move: the generator counts equal pieces where halos make the first one larger, and what then
// passes the end of a stage or of a transfer's pages is put elsewhere and counted in Report.Stages and Report.Pages,
// so for these capacities nothing is shown. A program in which one command stands for several iterations of a loop, or
// in which parameters too large for their buffer pass in blocks between parts of the work that need other blocks than
// their own, does not say what its commands do: a CoarseError.
package interp
