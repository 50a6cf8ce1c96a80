//go:build !race

package advice_test

// playedEvents bounds the played events of a trace: without the race detector it plays all.
const playedEvents = 1 << 30
