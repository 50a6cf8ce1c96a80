//go:build race

package replay_test

// How much the tests play under the race detector, where everything takes ten times as long.
const (
	checkedRounds = 2
	foreignFrees  = 500
	pipelineSeeds = 1
)
