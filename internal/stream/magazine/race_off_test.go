//go:build !race

package magazine

// underRace is 1 where tests run under the race detector.
const underRace = 0
