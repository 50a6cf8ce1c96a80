//go:build race

package host

// raceDetector reports whether the tests run under the race detector, which allocates by itself.
const raceDetector = true
