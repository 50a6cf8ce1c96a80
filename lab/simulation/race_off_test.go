//go:build !race

package simulation

// How much tests play: so much that everything there is happens, in a second or two.
const (
	seedCount = uint64(100)
	twiceOver = uint64(10) // of those that are played again
	replays   = 600        // that shrinking may take
)
