package acceptance_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// untoldCounter is a slog.Handler that sums the events that were not told.
type untoldCounter struct{ untold *atomic.Int64 }

func (untoldCounter) Enabled(context.Context, slog.Level) bool { return true }

func (c untoldCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "vram: events were not told" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "count" {
				c.untold.Add(int64(a.Value.Uint64())) //nolint:gosec // a count of the test
			}
			return true
		})
	}
	return nil
}

func (c untoldCounter) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c untoldCounter) WithGroup(string) slog.Handler      { return c }

// After floods of any length, one after the other, later events are told again: each event is told or counted as dropped.
func TestEventsAreToldAfterAFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told, untold atomic.Int64
		gate := make(chan struct{})
		h := openHouse(t, vram.Config{
			LimitBytes: 8 * mib, Logger: slog.New(untoldCounter{&untold}),
			Events: vram.Events{OutOfMemory: func(*vram.OutOfMemoryError) {
				told.Add(1)
				<-gate
			}},
		}, sim.Config{})
		s := h.stream()
		held := must(t, s, 6*mib)
		refuse := func(count int) {
			for range count {
				_, err := s.Alloc(4 * mib)
				require.ErrorIs(t, err, vram.ErrOutOfMemory)
			}
		}
		drain := func() { // let all calls that are due return
			for synctest.Wait(); ; synctest.Wait() {
				select {
				case gate <- struct{}{}:
				default:
					return
				}
			}
		}
		const limit = 1000 // as Events says
		posted := int64(0)
		for _, flood := range []int{2*limit + 500, limit + 100, 3 * limit} {
			refuse(flood)
			posted += int64(flood)
			drain()
			before := told.Load()
			refuse(10)
			posted += 10
			drain()
			assert.EqualValues(t, before+10, told.Load(), "after a flood of %d", flood)
		}
		assert.EqualValues(t, posted, told.Load()+untold.Load(), "each is told or counted")
		assert.Positive(t, untold.Load())
		close(gate)
		freeAll(t, held)
		require.NoError(t, h.Close())
	})
}
