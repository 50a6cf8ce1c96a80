//go:build exhaustive

package core

// The walk of small worlds visits all states with up to so many faults of each kind but late snapshots.
const (
	walkedFaults = 1
	walkedStates = 1 << 30
)
