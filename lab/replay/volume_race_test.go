//go:build race

package replay_test

// How much the tests play under the race detector, where the house checks its books after every step
// and everything takes fifty times as long.
const (
	checkedRounds = 2
	foreignFrees  = 500
	pipelineSeeds = 1
	madeSeeds     = uint64(1)
)
