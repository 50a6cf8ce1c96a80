// Package schedule has the order in which the stages of a pipeline compute the micro-batches of a training step.
package schedule

import "fmt"

// Kind is the kind of an operation.
type Kind uint8

// The kinds.
const (
	Forward Kind = iota
	Backward
	Optimizer
)

// Turn is one operation of a stage within a step.
type Turn struct {
	Kind       Kind
	MicroBatch int // of a forward or backward
}

// String returns the turn for a display: "F3" is the forward of micro-batch 3.
func (t Turn) String() string {
	switch t.Kind {
	case Forward:
		return fmt.Sprintf("F%d", t.MicroBatch)
	case Backward:
		return fmt.Sprintf("B%d", t.MicroBatch)
	case Optimizer:
	}
	return "opt"
}

// OneF1B returns the order 1F1B of a stage's operations in a step. The forwards at the beginning fill the pipeline: with fewer the
// later stages would wait for their first work, with more the stage would save more activations than necessary. mostAhead bounds
// them if memory is short: it must not be less than the mostAhead of a later stage, which would wait for ever.
func OneF1B(stage, stageCount, microBatchCount, mostAhead int) []Turn {
	ahead := min(stageCount-stage-1, microBatchCount, mostAhead)
	turns := make([]Turn, 0, 2*microBatchCount+1)
	for m := range ahead {
		turns = append(turns, Turn{Forward, m})
	}
	for m := ahead; m < microBatchCount; m++ {
		turns = append(turns, Turn{Forward, m}, Turn{Backward, m - ahead})
	}
	for m := microBatchCount - ahead; m < microBatchCount; m++ {
		turns = append(turns, Turn{Backward, m})
	}
	return append(turns, Turn{Kind: Optimizer})
}
