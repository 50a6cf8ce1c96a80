//go:build race

package magazine

// underRace is 1 where tests run under the race detector. It makes them ten times slower, and finds a race
// without the moment in which it harms.
const underRace = 1
