// Package optimality asks what exact methods cost and what they gain: how long a schedule
// takes to make, and up to what size orders are proven to be best.
package optimality
