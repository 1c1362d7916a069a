// Package optimality asks how far greedy decisions are from the best ones, and what exact methods cost.
package optimality
