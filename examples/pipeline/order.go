package main

import "github.com/go-vram/vram/examples/internal/schedule"

// turn is one operation of a stage within a step.
type turn = schedule.Turn

// The kinds of operations.
const (
	forward   = schedule.Forward
	backward  = schedule.Backward
	optimizer = schedule.Optimizer
)

// fullAhead is the number of stages after the first one, the most forwards ahead.
const fullAhead = stageCount - 1
