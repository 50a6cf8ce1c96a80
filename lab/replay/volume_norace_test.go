//go:build !race

package replay_test

// How much the tests play. Three rounds: the first maps, the second settles, the third repeats.
const (
	checkedRounds = 3
	foreignFrees  = 5000
	pipelineSeeds = 20
)
