package replay

import (
	"context"
	"fmt"

	"github.com/go-vram/vram"
)

// teach gives the streams their plans.
func (se *session) teach(ctx context.Context, plans []vram.Plan) error {
	for i, p := range plans {
		if i >= len(se.streams) || len(p) == 0 {
			continue
		}
		if err := se.streams[i].SetPlan(ctx, p); err != nil {
			return fmt.Errorf("stream %d: %w", i, err)
		}
	}
	return nil
}

// plans are what the streams know.
func (se *session) plans(ctx context.Context) ([]vram.Plan, error) {
	var plans []vram.Plan
	for i, s := range se.streams {
		p, err := s.Plan(ctx)
		if err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
		plans = append(plans, p)
	}
	return plans, nil
}
