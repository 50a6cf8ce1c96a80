//go:build !exhaustive

package core

// The walk of small worlds visits the states that the fewest events lead to.
const (
	walkedFaults = 1
	walkedStates = 1500
)
