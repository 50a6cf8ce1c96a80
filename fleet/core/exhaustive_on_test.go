//go:build exhaustive

package core

// The walk of small worlds visits all states with up to so many faults of each kind but late snapshots, or the states that the fewest events
// lead to. Not more: so many take two gigabytes and half a minute a world. Worlds with late snapshots, and large ones with faults, have more.
const (
	walkedFaults = 1
	walkedStates = 1 << 20
)
