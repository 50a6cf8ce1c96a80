//go:build !race

package streams

// underRace reports whether tests run under the race detector.
const underRace = false
