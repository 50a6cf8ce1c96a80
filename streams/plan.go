package streams

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-vram/vram/streams/tape"
)

// Plan is the step that the stream's tape knows, to be given to another process by tape.Step.Write; nil if it knows none.
// It waits for the turn at hand.
func (s *Stream) Plan(ctx context.Context) (tape.Step, error) {
	o := &order{verb: orderPlan}
	_, err := s.order(ctx, o)
	return o.step, err
}

// SetPlan gives the stream's tape a step that it need not find: it is packed and played once its sizes come. A step that
// the tape knew is forgotten. It waits for the turn at hand; the step stays the caller's. Errors: *tape.PlanError,
// ErrNoTape, ErrClosed.
func (s *Stream) SetPlan(ctx context.Context, step tape.Step) error {
	if err := s.callable(ctx); err != nil {
		return err
	}
	if err := step.Check(); err != nil {
		return fmt.Errorf("streams: %w", err)
	}
	_, err := s.order(ctx, &order{verb: orderTeach, step: slices.Clone(step)})
	return err
}
