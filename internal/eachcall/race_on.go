//go:build race

package eachcall

// underRace reports whether tests run under the race detector, which makes them ten times slower.
const underRace = true
