// Package beside puts all systems and recipes side by side, on the paper's networks and the machines of three vendors.
package beside
