// Package schedule is the vocabulary that all schedulers share: sub-graphs and their split, instances and their
// fine-grained dependencies, orders, bindings and scopes, layers, joins, the memory plan, and the Schedule that holds
// them. Each has a naive Check that knows the rules and not the method.
//
// # Notation
//
//	SG         sub-graph: operators that become one kernel
//	SGI        instance of a sub-graph: one of f pieces along one output dimension
//	L1         a core's local buffer; "L1 bytes" of a cluster count all its cores
//	binding    cores per output dimension, a tuple whose product is at most c
//	scope      the level where an instance's output lives
//	layer      operators in a straight line, at most one of them heavy
//	step       one layer of one instance: the grain of the memory plan
//	value      a tensor of one instance that is kept between steps
//
// All sizes are in bytes, for one cluster working on its share of the batch.
package schedule
