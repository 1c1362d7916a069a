// Package milp states mixed-integer linear programs in a form that belongs to
// no solver, and says what a solver's answer means.
//
// # Notation
//
// A model has variables x_j, j in J, and constraints i in I:
//
//	minimise    f(x) = sum_j c_j x_j
//	subject to  lo_i <= sum_j a_ij x_j <= hi_i    for all i in I    (1)
//	            lo_j <= x_j <= hi_j               for all j in J    (2)
//	            x_j integer                       for all j in Z    (3)
//
// Z, a subset of J, holds the integer and the binary variables; a binary one is an integer one with bounds 0 and 1.
// Either end of a range may be infinite; lo = hi makes (1) an equation and (2) a fixed variable. The objective has no
// unit of its own: it has whatever unit the costs are in.
//
// # Building
//
// A [Model] hands out variables as dense numbers of type [Var] in the order in which they are added, so that a
// formulation can keep them in slices. Every variable and constraint has a name, unique among its kind: errors speak
// in names, and a formulation's names are its documentation.
//
// The methods that add to a model return no error, since a formulation adds thousands of constraints and would drown
// in checks. The model keeps what was wrong first; [Model.Err] returns it, and every solver asks before it starts.
//
// [Model.WriteLP] writes a model for other programs to read.
//
// # Answers
//
// A [Solution] brackets the optimum f* between its Objective and its Bound: Bound <= f* <= Objective. Where nothing is
// known the end of the bracket is infinite: without a solution Objective is +Inf, without a bound Bound is -Inf. An
// infeasible model has both at +Inf, an unbounded one both at -Inf.
//
// # Assumptions
//
// Solvers work in floating point and within tolerances, so an answer may break (1) by a little; [Model.Check] says by
// how much, and where. Values of integer variables are returned as exact integers.
package milp
