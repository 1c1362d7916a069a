// Package ansor searches inside kernels, as L. Zheng et al., "Ansor: Generating High-Performance Tensor Programs for
// Deep Learning", OSDI 2020. What decides is how the cores run the layers of a kernel (schedule.Nest); which operators
// are in it, and where its operands lie, is given.
//
//	Task       a kernel and its shapes, with the number of times that networks run it
//	Sketch     what derivation (§4.1) leaves, which asks model.Access
//	Program    a nest for each layer: a sketch with its factors annotated (§4.2)
//	trial      lower the kernel alone and simulate it: the hardware that measures
//	Trees      the learned cost of a program (§5.2), the sum over its layers
//	Tune       rounds of evolution (§5.1) and climbing, given to tasks by a scheduler of trials (§6)
//
// # What differs
//
// The paper tiles for caches; here memories are managed, so a place of an operand is a decision, and a program that
// passes a capacity is no program. Trials are exact and repeatable: a program is measured once. The first program of
// each task is that of the generator's rules, so that no answer is slower than theirs.
//
// A cache stage in the LLB holds the inputs of a tile or of all, or several tiles of weights,
// that came from the DDR together; in the L1 all that passes has a stage.
//
// Rfactor is for products with constant weights: cores exchange partial sums, of the type of the result, and the
// vector unit adds them. Softmax, layernorm and pools do without: their kernels with fewer rows than cores take next
// to nothing beside the launch (docs/deviations.md). The choice between broadcast and sliced loads has no counterpart:
// on these machines a broadcast takes no more of any resource.
//
// The published gradient (Appendix A) takes a task to be promising if others of its kind do more operations a second.
// Where kernels wait for the DDR that is a mistake that no number of trials mends, so here no task is expected to fall
// below its Floor, nor one of many layers to come near it soon; "published" is the gradient without that. Kernels of
// many layers begin with the rules' program and change a few layers at a time.
//
// Everything follows from the seed, whatever the number of workers.
package ansor
