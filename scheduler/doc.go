// Package scheduler is the engine and the library's front door: a network, a machine
// and a recipe in, a checked and simulated schedule out.
//
//	net, err := network.Open("resnet50", network.Options{})
//	chip, err := scheduler.OpenMachine("stcp920")
//	recipe, err := recipes.Lookup(recipes.Default)
//	r, err := scheduler.Run(ctx, net, chip, 32, recipe, scheduler.Options{})
//
// # The parts
//
//	Stage     a decision of the pipeline, a row of Stages, with its strategies and a check
//	Strategy  a way to make one decision; a caller's own has the same form
//	Recipe    a strategy for every stage; package recipes has GraphTurbo's steps, TVM, AStitch, exact ones
//	Options   what does not belong to a recipe: chunk, limits, solver, operator costs
//	Draft     a schedule in the making, on which the rows before have decided
//	Decisions a value for each row, from which a schedule follows
//	Result    the schedule of a chunk, the program of all clusters, and what the
//	          simulator says of it
//
// [Run] takes a network through all stages. [Recipe.Schedule] stops before lowering, [Recipe.Continue] makes anew what
// comes after a stage, and [Restore] simulates a schedule from a file. Package scheduler/search improves all decisions
// together, and scheduler/answers puts the strategies of each stage beside each other with objectives and bounds.
//
// After each stage its naive check of package model/schedule runs, and each simulated
// program is judged by sim.CheckBuffers: a result that breaks a rule is an error.
//
// # Adding a strategy
//
// The engine knows no method: greedy strategies are in packages of heuristics, exact ones in formulation/exact, and
// package recipes hands them over in a [Table]. Write a Strategy there and name it in its row: flags, completion,
// sweeps, comparisons and documents find it. From outside, give it to [Recipe.With]; see docs/extend-scheduler.md.
package scheduler
