// Package project models resource-constrained project scheduling: activities with
// durations and precedence share renewable resources, and the last of them is to
// end as early as possible.
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
package rcpsp
