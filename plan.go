package vram

import (
	"io"

	"github.com/go-vram/vram/streams/tape"
)

// Plan is the step that a stream learned with Config.Tape: what Stream.Plan returns, Plan.Write writes to a file, and
// Stream.SetPlan gives to a stream of the next process, which then need not learn.
type Plan = tape.Step

// PlanRequest is a request of a Plan.
type PlanRequest = tape.Request

// ReadPlan reads what Plan.Write wrote. It may read ahead. Errors: *PlanError, and those of r; what ends early is
// io.ErrUnexpectedEOF.
func ReadPlan(r io.Reader) (Plan, error) { return tape.ReadStep(r) } //nolint:wrapcheck // its errors say what was read
