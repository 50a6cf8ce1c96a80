package pool

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/pool/core"
)

// Each call that waits for the pool ends with its context while another goroutine is in the turn, and says that the pool is closed
// once it is.
func TestEveryCallSaysWhyItHadNoAnswer(t *testing.T) {
	t.Parallel()
	h := prepare(t)
	h.open(roomy(8))
	p := h.pool
	calls := map[string]func(ctx context.Context) error{
		"Map":         func(ctx context.Context) error { _, err := p.Map(ctx); return err },
		"Snapshot":    func(ctx context.Context) error { _, err := p.Snapshot(ctx); return err },
		"ResetPeaks":  func(ctx context.Context) error { return p.ResetPeaks(ctx, nil) },
		"BeginScope":  func(ctx context.Context) error { return p.BeginScope(ctx, 1, nil) },
		"EndScope":    func(ctx context.Context) error { _, err := p.EndScope(ctx, 1); return err },
		"Reconfigure": func(ctx context.Context) error { return p.Reconfigure(ctx, roomy(8)) },
		"Warm":        func(ctx context.Context) error { _, err := p.Warm(ctx, []uint32{1}); return err },
		"Trim":        func(ctx context.Context) error { _, err := p.Trim(ctx, 0); return err },
		"Sleep":       func(ctx context.Context) error { _, err := p.Sleep(ctx, 1); return err },
		"Wake":        func(ctx context.Context) error { return p.Wake(ctx, 1) },
		"Charge":      func(ctx context.Context) error { return p.Charge(ctx, 1, page) },
		"Reserve":     func(ctx context.Context) error { _, err := p.Reserve(ctx, 9, page); return err },
	}
	h.testClient(1)
	ended, end := context.WithCancel(t.Context())
	end()
	release := h.occupy()
	for name, call := range calls {
		require.ErrorIs(t, call(ended), context.Canceled, name)
	}
	release()
	h.settle()
	require.NoError(t, p.Close())
	for name, call := range calls {
		require.ErrorIs(t, call(t.Context()), ErrClosed, name)
	}
	h.assertEmpty()
}

// interrupting is a context that has ended, and calls a function as it is asked why.
type interrupting struct {
	context.Context
	asked func()
}

func (c *interrupting) Err() error {
	c.asked()
	return context.Canceled
}

// A reading whose context ends has no result, also where the turn runs its function just then: before the call returns, or at the same
// time, which is no race.
func TestAReadingWhoseContextEndsHasNoResult(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(8))
	p := h.pool
	c := h.testClient(1)
	run := c.must(2)
	ended, end := context.WithCancel(t.Context())
	end()
	for name, read := range map[string]func(ctx context.Context) (any, error){
		"Map":      func(ctx context.Context) (any, error) { return p.Map(ctx) },
		"Queue":    func(ctx context.Context) (any, error) { return p.Queue(ctx) },
		"Snapshot": func(ctx context.Context) (any, error) { return p.Snapshot(ctx) },
		"EndScope": func(ctx context.Context) (any, error) { return p.EndScope(ctx, 1) },
	} {
		all, err := read(t.Context())
		require.NoError(t, err, name)
		require.NotEmpty(t, all, name)
		for _, first := range []bool{true, false} {
			leave, left := h.occupy(), make(chan struct{})
			all, err = read(&interrupting{ended, func() {
				go func() {
					leave()
					close(left)
				}()
				if first {
					<-left
				}
			}})
			require.ErrorIs(t, err, context.Canceled, name)
			assert.Empty(t, all, name)
			<-left
		}
	}
	h.settle()
	c.free(run)
}

// A poll that fails reports the fences that have passed before the failure, and its error.
func TestAPollThatFailsReportsWhatHasPassed(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(16))
	c := h.testClient(1)
	runs := []core.Run{c.must(2), c.must(2)}
	d := &driver{pool: h.pool, marks: map[core.Client][]markedFence{}, watches: map[core.Client]*watch{}}
	for i := range runs {
		mark, err := h.fences.Record(c.stream)
		require.NoError(t, err)
		d.marks[1] = append(d.marks[1], markedFence{1, core.Fence(i + 1), mark})
		require.NoError(t, h.sim.Occupy(c.stream, time.Second))
	}
	require.NoError(t, h.faults.Add(fault.Rule{Func: "cuEventQuery", First: 2, Result: cudadrv.Unknown}))
	require.ErrorIs(t, d.poll(), cudadrv.Unknown)
	assert.Equal(t, []core.Passed{{Client: 1, Fence: 1}}, d.passed)
	assert.Len(t, d.marks[1], 1)
	h.faults.Clear()
	h.sim.Advance(time.Second)
	require.NoError(t, d.poll())
	assert.Equal(t, []core.Passed{{Client: 1, Fence: 2}}, d.passed)
	assert.Empty(t, d.marks)
	c.free(runs...)
}

// A client that has left follows no fence, and nobody follows a fence without a mark.
func TestWhoCannotFollow(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(16))
	c := h.testClient(1)
	mark, err := h.fences.Record(c.stream)
	require.NoError(t, err)
	d := &driver{pool: h.pool, marks: map[core.Client][]markedFence{1: {{1, 3, mark}}}}
	require.ErrorIs(t, d.follow(1, 3), errNoWaiter)
	d.waiter = c
	require.NoError(t, d.follow(1, 3))
	require.NoError(t, d.follow(1, 2), "a later fence covers it")
	require.ErrorIs(t, d.follow(1, 4), errNoMark)
	require.ErrorIs(t, d.follow(2, 3), errNoMark)
	d.waiter, d.passed = nil, []core.Passed{{Client: 1, Fence: 3}}
	require.NoError(t, d.follow(1, 3), "it has passed")
	require.NoError(t, h.fences.Release(mark))
}
