// Package balance takes a network and a machine through the decisions of load balancing: layers of operators that run
// side by side on one device, and pipelines of stages over several, by the methods of Mofang, of the systems it is
// compared with, and exactly.
//
// Operators and their times are those of package streams. [Layer] divides them into layers and prices these by
// simulation. [Pipeline] divides a training batch over devices and simulates it.
//
// # How training is priced
//
// The backward pass of an operator takes twice its forward time: a gradient for its input and one for its weights. A
// device keeps for each weight of its stage the weight, its gradient and the momentum, and the outputs of its
// operators until their backward pass. The time of an operator for n samples is taken as a straight line through the
// times at 1 sample and at the whole batch, unless a profile has it measured ([Chain.Measured]).
//
// Times are in seconds, sizes in bytes.
package balance
