// Package paperfigs makes the figures and tables of the GraphTurbo paper (OSDI 2023) from simulations: one file for
// each figure or table. What the performance breakdown says of two networks alone is in package ablation.
package paperfigs
