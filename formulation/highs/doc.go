// Package highs solves the models of package milp with HiGHS, the open-source solver for linear and mixed-integer
// programs (https://highs.dev). It is the only package that touches HiGHS, through the binding github.com/lanl/highs.
//
// # With and without cgo
//
// HiGHS is a C++ library, so the solver is there only in builds with cgo. Without cgo everything compiles all the
// same, and [New] returns an error that wraps [ErrUnavailable] and says what to do. Whatever needs no solver works in
// both builds.
//
// # What is asked of HiGHS
//
// One thread, so that the same model, options and seed give the same answer, byte for byte, on any number of cores;
// callers that have several models run several solvers at once. The relative gap is [milp.Options.RelativeGap], 0
// unless set (HiGHS' own default is 1e-4), beside HiGHS' absolute gap of 1e-6. Every other option has HiGHS' default;
// its feasibility tolerances are 1e-7 for linear programs and 1e-6 for mixed-integer ones.
//
// HiGHS takes bounds of 1e20 and beyond for infinite, drops coefficients up to 1e-9 and refuses those from 1e15 on. A
// model that has finite numbers in those ranges would be solved as another model, so it is refused with the name of
// what is at fault.
//
// # Stopping
//
// HiGHS polls its clock, and the context, between the iterations of a linear program and between the nodes, cuts and
// heuristics of a mixed-integer one. It does neither while presolve probes, nor the context while it solves a linear
// program within a mixed-integer one, and either can take long. Hence:
//
//   - Solve does not wait for it. HiGHS reports each solution and its bound
//     while it runs; when the context or the time limit ends, HiGHS has a moment
//     to end too, and then what it has reported is the answer. The run it leaves
//     behind keeps a core busy until it polls again, seen after up to a minute.
//   - While presolve runs nothing is known yet, so the answer then is the start,
//     if there is one, or [milp.Limit].
//
// The memory limit is polled from outside and works the same way; the memory comes back when HiGHS has ended.
package highs
