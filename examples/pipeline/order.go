package main

import "fmt"

// kind is what an operation does.
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

// String is the turn as the display shows it: "F3" is the forward of micro-batch 3.
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

// fullAhead is as many forwards ahead as any stage has behind it.
const fullAhead = stageCount - 1

// order1F1B is the order in which a stage works through a step. The forwards at the beginning fill the
// pipeline: with fewer of them the stages behind would wait for their first work, with more of them the
// stage would save more activations than it must. Where there is no memory for what so many save, there are at most mostAhead.
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
