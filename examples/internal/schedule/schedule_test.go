package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/examples/internal/schedule"
)

func TestOneF1B(t *testing.T) {
	t.Parallel()
	text := func(stage, stages, microBatches, mostAhead int) (s string) {
		for _, at := range schedule.OneF1B(stage, stages, microBatches, mostAhead) {
			s += at.String() + " "
		}
		return s
	}
	assert.Equal(t, "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 opt ", text(0, 4, 6, 3))
	assert.Equal(t, "F0 F1 B0 F2 B1 F3 B2 B3 opt ", text(2, 4, 4, 3))
	assert.Equal(t, "F0 B0 F1 B1 opt ", text(3, 4, 2, 3))
	assert.Equal(t, "F0 F1 B0 B1 opt ", text(0, 4, 2, 3))
	assert.Equal(t, "F0 F1 B0 F2 B1 F3 B2 B3 opt ", text(0, 4, 4, 1))
	assert.Equal(t, "F0 B0 F1 B1 opt ", text(0, 4, 2, 0))
}
