//go:build race

package streams

// underRace reports whether tests run under the race detector. It makes them ten times slower, and finds no more in further rounds
// of one goroutine.
const underRace = true
