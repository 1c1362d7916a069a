// Package devicepipe simulates a pipeline of stages that work on micro-batches, and
// knows nothing of who divided the network or ordered the tasks.
//
// # Model
//
// A stage runs its tasks in the given order, one at a time, as soon as their inputs are there. The forward pass of
// micro-batch m on stage s needs that of stage s-1, its backward pass that of stage s+1 and its own forward pass; what
// one stage hands to its neighbour takes the link's time, during which both go on working. Tasks of all stages wait
// for each other in no other way.
//
// What is reported:
//
//	fill      until the last stage begins
//	drain     from when the first stage to end for good has, to the end
//	idle      share of the stages' time in which they do nothing
//	bubbles   the gaps of each stage between the start and the end of the batch
//	stored    most micro-batches whose activations a stage holds at a time: from its
//	          forward pass to the end of its backward pass
//	energy    integral of idle + (busy - idle) x utilisation over all devices, in joules
//
// [Loading] simulates threads that load data into a queue, from which training takes batches: where the
// queue is full the threads wait, where it is empty the training does.
//
// Times are in seconds, powers in watts.
//
// Source of the setting: Y. Huang et al., GPipe, NeurIPS 2019.
package devicepipe
