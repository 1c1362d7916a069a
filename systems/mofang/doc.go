// Package mofang makes the decisions of Mofang, a compiler for training jobs that balances load between a host and
// devices and within a device (L. Wang et al., "Load balancing optimization method for deep learning compiler model
// training", Journal of Frontiers of Computer Science and Technology, 2024, no. 1), and those of the systems that the
// paper compares it with.
//
// The paper's equations, tables and algorithms reached us as text only; where the text
// leaves a choice, the reading is at the function, and all are in docs/deviations.md.
//
// # Threads (§2.2)
//
// [Threads] takes the least number of threads whose speed-up is at least
// B T2 / max(T1, T3), or else the least with the largest speed-up.
//
// # Layering (§2.3, Algorithm 1)
//
// [Layering] splits a set V of operators into a down-closed U and V - U again and
// again. Of all U it keeps those whose imbalance of work
//
//	|com(U) - com(V - U)| / com(V)
//
// with com the multiply-accumulates (the time of all blocks where no operator has any)
// is at most a threshold, takes the one with the least cost(U) + cost(V - U), of equal
// ones the most balanced, where the cost of a side is the less of its times run side by side and one by one, and
// stops where none is below cost(V). Both sides are then split in the same way.
//
// # Pipeline stages and micro-batches (§2.4)
//
// [Stages] merges layers into as many stages as fit side by side: utilisations sum to at most 1. Of so many stages the
// longest is as short as can be ([Balanced]). [MicroBatches] bisects for the least number at which the share of time
// for filling the pipeline is no more than the loss by small micro-batches ([Loss], or a device's own).
//
// # Baselines
//
// [GPipeStages] cuts layers into stages of equal number. Package streams merges equal convolutions as TASO does
// ([streams.Merged]) and runs operators one by one or level by level.
//
// The exact counterparts are in systems/mofang/layering and systems/mofang/pipelining.
package mofang
