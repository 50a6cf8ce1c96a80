//go:build !race

package advice_test

// playedEvents bounds what is played of a trace: without the race detector all of it is.
const playedEvents = 1 << 30
