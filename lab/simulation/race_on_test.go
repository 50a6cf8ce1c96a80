//go:build race

package simulation

// How much tests play: little, since the race detector finds nothing in tasks that run one at a time. It is there for what
// checked builds look at besides, which costs thirty times as much.
const (
	seedCount = uint64(10)
	twiceOver = uint64(2) // of those that are played again
	replays   = 10        // that shrinking may take: histories stay long
)
