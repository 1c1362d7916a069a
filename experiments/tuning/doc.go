// Package tuning asks what the answers depend on: sizes and bandwidths of the machine, the
// fitted constants, other machines. [Calibrate] fits the constants that nobody has published;
// [Grid] is a caller's own grid of networks, accelerators and decisions.
package tuning
