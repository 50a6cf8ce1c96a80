//go:build race

package simulation

// Tests play little under the race detector, which finds nothing in tasks that run one at a time. It enables the checked
// builds, whose extra checks cost thirty times as much.
const (
	seedCount = uint64(10)
	twiceOver = uint64(2) // of those that are played again
	replays   = 10        // that shrinking may take: histories stay long
)
