package acceptance_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/futures"
)

// sizes are one for each way in which a block is kept.
func sizes() []int64 { return []int64{1, 512, 5000, 64 * kib, 64*kib + 1, 3 * mib, 70 * mib} }

// A second free is refused, also when the memory was handed out again, and harms nobody.
func TestEveryMisuseOfFreeIsRefused(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	for _, bytes := range sizes() {
		a := must(t, s, bytes)
		assert.True(t, a.Live())
		require.NoError(t, a.Free())
		assert.False(t, a.Live())
		require.ErrorIs(t, a.Free(), vram.ErrDoubleFree)
		require.ErrorIs(t, a.Free(), vram.ErrBadFree)

		b := must(t, s, bytes)
		require.Equal(t, a.Ptr(), b.Ptr(), "the memory is used again")
		require.ErrorIs(t, a.Free(), vram.ErrBadFree)
		assert.True(t, b.Live(), "and its new owner keeps it")
		c := b // copies name one allocation
		require.NoError(t, c.Free())
		require.ErrorIs(t, b.Free(), vram.ErrDoubleFree)
		require.ErrorIs(t, a.Free(), vram.ErrStale)
	}
	require.ErrorIs(t, vram.Buffer{}.Free(), vram.ErrBadFree)
	assert.Zero(t, vram.Buffer{}.Ptr())
	assert.Zero(t, h.addsUp().LiveBytes)
}

// Of several frees of one buffer at the same time exactly one succeeds.
func TestOneOfSeveralFreesWins(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	for _, bytes := range sizes() {
		for range 50 {
			b := must(t, s, bytes)
			var won atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if err := b.Free(); err == nil {
						won.Add(1)
					} else {
						assert.ErrorIs(t, err, vram.ErrBadFree)
					}
				})
			}
			all.Wait()
			require.Equal(t, int64(1), won.Load())
		}
	}
	n := h.addsUp()
	assert.Equal(t, n.AllocCount, n.FreeCount)
}

// Close lists the live buffers; a free of one returns ErrClosed then, and so do all other calls.
func TestCloseListsWhatWasLive(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	live := map[vram.Ptr]vram.Buffer{}
	for _, bytes := range sizes() {
		x := must(t, a, bytes)
		live[x.Ptr()] = x
		freeAll(t, must(t, b, bytes))
	}
	y := must(t, b, 100*mib)
	live[y.Ptr()] = y
	err := h.Close()
	var inUse *vram.InUseError
	require.ErrorAs(t, err, &inUse)
	assert.Equal(t, uint64(len(live)), inUse.BufferCount)
	require.Len(t, inUse.Buffers, len(live))
	var sum int64
	for _, l := range inUse.Buffers {
		x, ok := live[l.Ptr]
		require.True(t, ok)
		assert.GreaterOrEqual(t, l.Bytes, x.Bytes())
		want := a.ID()
		if x.Ptr() == y.Ptr() {
			want = b.ID()
		}
		assert.Equal(t, want, l.Stream)
		sum += l.Bytes
	}
	assert.Equal(t, sum, inUse.Bytes)
	assert.Contains(t, err.Error(), "8 live buffers")

	for _, x := range live {
		require.ErrorIs(t, x.Free(), vram.ErrClosed)
	}
	assert.Equal(t, err, h.Close(), "the same again")
	for _, s := range []*vram.Stream{a, b} {
		_, err = s.Alloc(1)
		require.ErrorIs(t, err, vram.ErrClosed)
		_, err = s.AllocAsync(context.Background(), vram.Request{Bytes: 70 * mib}).Await(context.Background())
		require.ErrorIs(t, err, vram.ErrClosed)
		require.NoError(t, s.Close())
	}
	_, err = h.NewStream()
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = h.AdoptStream(0)
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = h.Trim(context.Background(), 0)
	require.ErrorIs(t, err, vram.ErrClosed)
	require.ErrorIs(t, h.Warm(context.Background(), vram.Demand{Bytes: mib, Count: 1}), vram.ErrClosed)
	assert.Equal(t, uint64(15), h.Stats().AllocCount, "what was counted last")
}

// The list of live buffers ends at a thousand; the count does not.
func TestCloseListsAThousand(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	for range 1500 {
		must(t, s, kib)
	}
	var inUse *vram.InUseError
	require.ErrorAs(t, h.Close(), &inUse)
	assert.Equal(t, uint64(1500), inUse.BufferCount)
	assert.Len(t, inUse.Buffers, 1000)
}

// Any number of goroutines may close while others are at work: all get the same answer, nothing
// hangs.
func TestCloseWhileOthersAreAtWork(t *testing.T) {
	for range 10 {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		var work, closing sync.WaitGroup
		var closed atomic.Bool
		for range 4 {
			s := h.stream()
			work.Go(func() {
				for !closed.Load() {
					runtime.Gosched() // so that the others run on a single processor
					for _, bytes := range []int64{kib, 3 * mib, 20 * mib} {
						b, err := s.Alloc(bytes)
						if err == nil {
							err = b.Free()
						}
						if err != nil && !assert.Condition(t, func() bool { return isAny(err, vram.ErrClosed, vram.ErrOutOfMemory) }, "%v", err) {
							return
						}
					}
				}
			})
		}
		work.Go(func() {
			for !closed.Load() {
				runtime.Gosched()
				s, err := h.NewStream()
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					assert.ErrorIs(t, err, vram.ErrClosed)
				}
			}
		})
		for range 50 {
			runtime.Gosched()
		}
		errs := make([]error, 3)
		for i := range errs {
			closing.Go(func() { errs[i] = h.Close() })
		}
		closing.Wait()
		closed.Store(true)
		work.Wait()
		assert.Equal(t, errs[0], errs[1])
		assert.Equal(t, errs[0], errs[2])
	}
}

// Requests that wait when the device is closed fail.
func TestCloseFailsWhatWaits(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	entered, release := h.holdUp("cuMemCreate")
	waiting := []futures.Future[vram.Buffer]{a.AllocAsync(context.Background(), vram.Request{Bytes: 8 * mib})}
	<-entered
	for range 5 {
		waiting = append(waiting, a.AllocAsync(context.Background(), vram.Request{Bytes: 8 * mib}), b.AllocAsync(context.Background(), vram.Request{Bytes: kib}))
	}
	var closing sync.WaitGroup
	closing.Go(func() { assert.NoError(t, h.Close()) })
	for _, f := range waiting {
		_, err := f.Await(context.Background())
		require.ErrorIs(t, err, vram.ErrClosed)
	}
	release()
	closing.Wait()
}

// A buffer's memory goes to another stream only when the work that was submitted before its free
// has finished.
func TestMemoryWaitsForTheWorkOnIt(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib, Waits: vram.WaitsNever}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 32*mib)
	require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
	require.NoError(t, x.Free())
	y := must(t, a, 32*mib)
	assert.Equal(t, x.Ptr(), y.Ptr(), "its own stream uses it at once")
	assert.Less(t, h.gpu.Now(), time.Second)
	require.NoError(t, y.Free())
	h.trim() // now the device has it, after the work
	_, err := b.Alloc(32 * mib)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, h.gpu.Now(), time.Second)
	var inUse *vram.InUseError
	require.ErrorAs(t, h.Close(), &inUse)
}

// An adopted handle is the caller's: neither the stream's close nor the device's destroys it.
func TestAnAdoptedHandleIsNotDestroyed(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	for _, closeStream := range []bool{true, false} {
		handle, err := h.gpu.StreamCreate()
		require.NoError(t, err)
		s, err := h.AdoptStream(handle)
		require.NoError(t, err)
		assert.Equal(t, handle, s.Handle())
		freeAll(t, must(t, s, 3*mib))
		if closeStream {
			require.NoError(t, s.Close())
			_, err = h.gpu.StreamQuery(handle)
			require.NoError(t, err)
			require.NoError(t, h.gpu.StreamDestroy(handle))
			continue
		}
		require.NoError(t, h.Close())
		assert.NoError(t, h.gpu.StreamDestroy(handle), "the device left it alone")
	}
	own := openHouse(t, vram.Config{}, sim.Config{})
	s := own.stream()
	require.NoError(t, s.Close())
	_, err := own.gpu.StreamQuery(s.Handle())
	require.ErrorIs(t, err, cudadrv.InvalidHandle, "a stream's own handle ends with it")
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
