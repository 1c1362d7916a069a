// Package tuning asks what the answers depend on: sizes and bandwidths of the machine, the
// fitted constants, other machines.
package tuning
