//go:build !race

package simulation

// How many seeds tests play: so many that everything there is happens, in about a second.
const (
	seedCount = uint64(100)
	twiceOver = uint64(10) // of those that are played again
)
