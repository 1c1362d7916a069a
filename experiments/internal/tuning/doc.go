// Package tuning asks what the answers depend on: the fitted constants, and the machine.
package tuning
