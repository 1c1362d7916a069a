// Package optimality asks how far greedy decisions are from the best ones, what exact methods
// cost, and up to what size orders are proven to be best.
package optimality
