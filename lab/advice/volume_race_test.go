//go:build race

package advice_test

// playedEvents bounds the played events of a trace: under the race detector the allocator checks its books after every step.
const playedEvents = 1000
