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
// # The integer linear program ([ILP])
//
// Time-indexed with step variables ("started by"). H is the makespan of a known
// schedule, or the sum of the durations, less one: only shorter schedules are looked
// for. [e_i, l_i] is the window of activity i's start that precedence leaves within H.
//
// Sets: activities i in V, resources k in R, pairs (h, i) in A where i comes after h.
//
// Variables:
//
//	z_it in {0,1}   1 if i has started by time t, for e_i <= t < l_i; z_it is 0 before
//	                e_i and 1 from l_i on
//	C in [B, H]     makespan; B is a lower bound
//
// Then i starts at s_i = l_i - sum_t z_it, and runs at t if z_it - z_i,t-d_i is 1.
//
//	minimise    C
//	subject to  z_it >= z_i,t-1                              for all i, t              (1)
//	            z_h,t-d_h >= z_it                            for all (h,i) in A, t     (2)
//	            sum_i r_ik (z_it - z_i,t-d_i) <= c_k         for all k, t              (3)
//	            C >= s_i + d_i                               for all i                 (4)
//	            sum_i in Q (z_it - z_i,t-d_i) <= 1           for all cliques Q, t      (5)
//
// (2) is the disaggregated form of s_i >= s_h + d_h: it is implied by, and implies, it
// for whole solutions and is stronger for fractional ones. (5) is a strengthening: Q is
// a set of activities of which no two fit side by side. There is a variable per activity
// and point of time, so this is for small projects with small numbers; maxCells bounds it.
//
// Source: A. A. B. Pritsker, L. J. Watters and P. M. Wolfe, Management Science 16, 1969;
// N. Christofides, R. Alvarez-Valdes and J. M. Tamarit, EJOR 29, 1987 (form 2).
package rcpsp
