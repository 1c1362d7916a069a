// Package rcpsp states and solves resource-constrained project scheduling: activities
// with durations and precedence share renewable resources, and the last of them is to
// end as early as possible. [Methods] lists what solves it and [Solve] runs one: list
// scheduling ([Best]) beside the lower [Bounds], and an integer linear program.
//
// Commands of a kernel on units and DMA queues are such a project, and so are the
// published test problems of project scheduling. Units of time and of resources are
// the caller's; all numbers are whole.
//
// # Problem
//
// Activity i runs from its start s_i for d_i without interruption and takes r_ik of
// resource k while it runs, in the half-open interval [s_i, s_i + d_i):
//
//	minimise    max_i (s_i + d_i)
//	subject to  s_i >= s_h + d_h                            for each h that i comes after   (1)
//	            sum of r_ik over i with s_i <= t < s_i+d_i
//	                        <= c_k                          for all times t, resources k    (2)
//	            s_i >= 0, whole                             for all i                       (3)
//
// An activity of no duration takes no resource at any time.
//
// Source: R. Kolisch and A. Sprecher, PSPLIB – a project scheduling problem library,
// European Journal of Operational Research 96, 1997.
//
// # List scheduling
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
//
// The integer program ([ILP]) stands in docs/formulations.md, "Instruction scheduling". Its size is bounded by
// maxCells.
package rcpsp
