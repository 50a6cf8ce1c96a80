package sleep_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
)

// Sleeps, wakes and work meet on an arena: each change of its state is counted once, and no byte is lost or left with the host.
func TestCallsMeetAmongGoroutines(t *testing.T) {
	const sleepers, rounds = 2, 20
	r := newRig(t, sleep.Options{BlockBytes: 100 * kib})
	b, want := r.filled(300*kib, 1)
	var all sync.WaitGroup
	for range sleepers {
		all.Go(func() {
			for range rounds {
				assert.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
				stats, err := r.arena.Stats(t.Context())
				assert.NoError(t, err)
				assert.LessOrEqual(t, stats.SavedBytes, stats.HeldBytes)
				assert.NoError(t, r.arena.Wake(t.Context()))
				assert.NotEqual(t, sleep.Closed, r.arena.State())
			}
		})
		c := r.context()
		all.Go(func() {
			for range rounds {
				x, err := r.arena.Alloc(100 * kib)
				if err == nil {
					err = errors.Join(c.Fill8(cuda.Whole(x), 7), x.Free())
				}
				if err != nil {
					assert.ErrorIs(t, err, sleep.ErrAsleep)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, r.arena.Wake(t.Context()))
	r.holds(b, want)
	stats, err := r.arena.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, stats.Sleeps, stats.Wakes)
	assert.LessOrEqual(t, stats.Sleeps, uint64(sleepers*rounds))
	assert.Positive(t, stats.Sleeps)
	assert.Zero(t, stats.SavedBytes)
	assert.Zero(t, stats.SleepingBytes)
	assert.Equal(t, b.Bytes(), stats.LiveBytes)
}

// Closes meet each other, a Sleep and a Wake: each call succeeds or finds the arena closed, and nothing is left with the host.
func TestClosesMeetAmongGoroutines(t *testing.T) {
	r := newRig(t, sleep.Options{})
	for range 20 {
		a, err := sleep.New(r.c, sleep.Options{BlockBytes: 64 * kib})
		require.NoError(t, err)
		b, err := a.Alloc(256 * kib)
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				assert.NoError(t, a.Close())
				assert.Equal(t, sleep.Closed, a.State())
			})
			all.Go(func() {
				for _, err := range []error{a.Sleep(t.Context(), sleep.Save), a.Wake(t.Context())} {
					if err != nil {
						assert.ErrorIs(t, err, sleep.ErrClosed)
					}
				}
			})
		}
		all.Wait()
		require.Zero(t, a.Spent())
		require.NoError(t, b.Free())
	}
}

// Close waits for a Sleep that is in the driver.
func TestCloseMeetsASleep(t *testing.T) {
	r := newFaultyRig(t, sleep.Options{})
	b, _ := r.filled(mib, 1)
	var copied atomic.Bool
	closed := make(chan error, 1)
	r.faults.SetBefore(func(function string) {
		if function != "cuMemcpyDtoHAsync" || copied.Swap(true) {
			return
		}
		go func() { closed <- r.arena.Close() }()
		for range 1000 {
			if r.arena.State() == sleep.Closed {
				break
			}
			runtime.Gosched()
		}
		assert.Equal(t, sleep.Awake, r.arena.State(), "Close did not wait")
	})
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	r.faults.SetBefore(nil)
	require.True(t, copied.Load())
	require.NoError(t, <-closed)
	require.Zero(t, r.arena.Spent())
	require.NoError(t, b.Free())
}
