package main

import "fmt"

// kind is the kind of an operation.
type kind uint8

const (
	forward kind = iota
	backward
	optimizer
)

// turn is one operation of a stage within a step.
type turn struct {
	kind       kind
	microBatch int // of a forward or backward
}

// String returns the turn for the display: "F3" is the forward of micro-batch 3.
func (t turn) String() string {
	switch t.kind {
	case forward:
		return fmt.Sprintf("F%d", t.microBatch)
	case backward:
		return fmt.Sprintf("B%d", t.microBatch)
	case optimizer:
	}
	return "opt"
}

// fullAhead is the number of stages after the first one, the most forwards ahead.
const fullAhead = stageCount - 1

// order1F1B returns the order of a stage's operations in a step. The forwards at the beginning fill the
// pipeline: with fewer the later stages would wait for their first work, with more the stage would save more
// activations than necessary. mostAhead bounds them if memory is short.
func order1F1B(stage, stageCount, microBatchCount, mostAhead int) []turn {
	ahead := min(stageCount-stage-1, microBatchCount, mostAhead)
	turns := make([]turn, 0, 2*microBatchCount+1)
	for m := range ahead {
		turns = append(turns, turn{forward, m})
	}
	for m := ahead; m < microBatchCount; m++ {
		turns = append(turns, turn{forward, m}, turn{backward, m - ahead})
	}
	for m := microBatchCount - ahead; m < microBatchCount; m++ {
		turns = append(turns, turn{backward, m})
	}
	return append(turns, turn{kind: optimizer})
}
