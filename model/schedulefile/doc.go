// Package schedulefile is the file format of a whole schedule: the network at the sizes in which the clusters work on
// it, every decision, and the memory plan. A file stands alone but for the description of the accelerator, so that a
// schedule can be checked and simulated by another program, and one that another program has made can be checked and
// simulated by this one. docs/file-formats.md describes it for those who write one.
//
// What follows from the rest is not in the file, so that it can't contradict it: the
// boxes of instances, what they read of each other, lifetimes, the sizes of values.
//
// [Read] is strict and never trusts a number; [Check] judges what a file says, and
// names every rule that is broken; [File.Build] gives the schedules.
//
// Sizes and addresses are in bytes. Operators and tensors go by their position.
package schedulefile
