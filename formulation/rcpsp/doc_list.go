// Package project schedules projects (package formulation/rcpsp) by list scheduling and
// forward-backward improvement. Nothing here proves anything; its exact sibling is
// formulation/rcpsp.
//
// # Methods
//
//	in order   each activity waits for the start of every earlier one of the list that
//	           takes a common resource. With one resource per unit and DMA queue this
//	           is the paper's across-layer rule as the lowering has it (OSDI'23, §4.4):
//	           queues issue in program order and overlap freely with each other.
//	serial     in the order of a priority list, each activity starts as early as
//	           precedence and what is scheduled already allow. Gives active schedules,
//	           one of which is best.
//	parallel   time moves forward; whenever something can start, the first of the list
//	           that fits does. Gives non-delay schedules, of which none may be best.
//	justify    move all activities as late as they go, from the last to end, then as
//	           early as they go, from the first to start, while the makespan falls.
//	           Never longer than what it starts from.
//
// Sources: R. Kolisch, Serial and parallel resource-constrained project scheduling
// methods revisited, EJOR 90, 1996; V. Valls, F. Ballestín and S. Quintanilla,
// Justification and RCPSP: a technique that pays, EJOR 165, 2005.
package rcpsp
