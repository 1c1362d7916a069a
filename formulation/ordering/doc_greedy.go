// Package ordering holds the greedy methods for the instance-ordering problem of
// package formulation/ordering. Each fixes the order; the moves are then made as needed,
// by [ordering.Sequence].
//
//   - bfs: breadth first. All instances of one level before the next, a level being
//     the longest distance from an instance that reads nothing.
//   - dfs: Algorithm 3 of GraphTurbo (J. Zhao et al., OSDI 2023): the instance that
//     became known last and can run, runs.
//   - heavy: heavier first, the priority that the same paper names as future work
//     and does not define. Read here as: of the instances that can run, the one
//     that leaves the least behind in the local buffer, that is the smallest
//     difference of its output and of what it is the last to read; among equals
//     the one that needs the most while it runs, then the lowest ID. Heavy
//     instances so run while little else waits, and what they free is free early.
//
// None proves anything: the bound is 0, or for the peak the largest single need.
package ordering
