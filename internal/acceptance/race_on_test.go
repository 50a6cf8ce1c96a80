//go:build race

package acceptance_test

const raceDetector = true
