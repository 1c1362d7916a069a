//go:build race

package calibration

const raceDetector = true
