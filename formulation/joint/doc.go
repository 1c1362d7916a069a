// Package joint chooses the order of instances, their bindings and their scopes together: the decisions of packages
// formulation/ordering and formulation/binding, each of which leaves out what it costs the other.
//
// A [Problem] is an ordering problem and a binding problem over the same instances. Each instance takes a label, a
// binding and a scope. An output with scope LLB is in the L1 only while its instance runs and while one runs that reads
// it; all others obey the rules of the ordering problem, spills and returns among them. The objective is in seconds:
// that of the binding problem, plus the stores and loads of outputs with scope L1 at [Problem.SecondsPerCost].
//
// [Search] alternates between labels and orders, then branches over scopes, with bounds by cost splitting; [ILP] states
// everything as one integer program. Propositions, bounds and the program stand in docs/formulations.md, "Order,
// bindings and scopes together". Numbers and letters in parentheses are its rows and bounds.
package joint
