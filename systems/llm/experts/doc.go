// Package experts places the experts of a layer on devices, greedily and exactly, and chooses the sizes of their
// kernels. A router sends each token to some of the experts; placement and sizes are fixed before tokens are routed.
//
// # The problem
//
// A routing says how many tokens each expert has. Several are known, each with a weight ([Routings]): the scenarios.
// One plan serves all of them. It has a device for each expert, and one option for all experts, such as the tokens
// that their kernels take at a time. A scenario has rows, one behind the other, in which all devices work: in row r of
// scenario s, expert e adds a_re to its device, and the row ends with the device that has most. So the scenario takes
//
//	T_s = sum over its rows r of max over devices d of sum over e on d of a_re
//
// and the plan of least mean, or of the least longest scenario, is looked for. Devices are equal.
//
// # Methods
//
// Greedy takes the option in which all experts together have least to do, and places the heaviest expert first, where
// the objective then is least. Even has as many experts on each device, in their order. Search improves plans of all
// options by moves and exchanges, and proves the best by branch and bound: no row takes less than its largest expert,
// nor less than an equal share. Of devices without experts it tries one. Ilp does so with HiGHS.
//
// # Bounds over scenarios
//
// The best plan of a scenario alone ([Problem.Only]) takes no longer in it than any plan that serves all. So the mean
// of these is no more than the mean of any plan, and their largest no more than any plan's longest. The best plan of
// all scenarios together gives a bound that is no weaker. If loads are at most what a schedule takes, both hold for all
// schedules.
package experts
