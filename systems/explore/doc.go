// Package explore runs a caller's own grid of networks, accelerators and decisions.
package explore
