// Package calibration fits the constants of an accelerator that nobody has published.
package calibration
