//go:build !race

package tuning

const raceDetector = false
