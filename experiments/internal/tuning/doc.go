// Package tuning asks what the answers depend on: the machine.
package tuning
