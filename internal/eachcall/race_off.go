//go:build !race

package eachcall

// underRace reports whether tests run under the race detector.
const underRace = false
