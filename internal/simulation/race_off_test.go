//go:build !race

package simulation

// seedCount is how many seeds a test plays: so many that everything there is happens, in about a second.
const seedCount = uint64(100)
