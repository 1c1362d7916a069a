// Package balancing reproduces the figures of the Mofang paper (load balancing of training jobs, Journal of Frontiers
// of Computer Science and Technology, 2024, no. 1) that have numbers, and sets its decisions beside exact ones:
// threads that load data, layers of operators, pipelines, energy, and the partition of published graphs.
//
// docs/deviations.md says what the paper leaves open and how it is read here.
package balancing
