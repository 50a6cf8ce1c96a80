package streams

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// While a goroutine is stopped inside the turn, magazines still serve, frees still work, and
// requests queue and are served when it continues.
func TestABusyTurnDelaysOnlyWhatNoMagazineServes(t *testing.T) {
	r := newRig(t, 256*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	a, large := must(t, s, kib), must(t, s, 32*mib)
	leave := r.occupy(s)

	b := must(t, s, kib) // from the magazine
	assert.NotEqual(t, a.Ptr(), b.Ptr())
	assert.NoError(t, a.Free())
	assert.NoError(t, large.Free())
	var queued []futures.Future[Buffer]
	for range 10 {
		queued = append(queued, s.AllocAsync(context.Background(), Request{Bytes: mib}))
	}
	var waits sync.WaitGroup
	waits.Go(func() { // a request that waits, too
		c, err := s.Alloc(2 * mib)
		assert.NoError(t, err)
		assert.NoError(t, c.Free())
	})
	require.NoError(t, must(t, other, mib).Free())
	for _, f := range queued {
		assert.False(t, f.Completed())
	}
	control(s).Tick() // does not wait
	leave()
	for _, f := range queued {
		c, err := f.Await(context.Background())
		require.NoError(t, err)
		require.NoError(t, c.Free())
	}
	waits.Wait()
	require.NoError(t, b.Free())
	assert.Zero(t, r.stats(s).LiveCount)
	r.balanced(s, other)
}

// Many goroutines allocate, wait, cancel and free each other's buffers on a few streams with too
// little memory: every request has an answer, and in the end nothing is missing.
func TestManyGoroutinesLoseNothing(t *testing.T) {
	r := newRig(t, 64*mib)
	streams := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{CacheBytes: 4 * mib}), r.stream(core.Budget{CacheRanges: 2})}
	handed := make(chan Buffer, 64)
	var work sync.WaitGroup
	for g := range uint64(8) {
		work.Go(func() {
			random := rand.New(rand.NewPCG(g, 1))
			for range 300 {
				s := streams[random.IntN(len(streams))]
				ctx, cancel := context.WithCancel(context.Background())
				f := s.AllocAsync(ctx, Request{Bytes: []int64{0, 300, 5000, 70_000, 3 * mib, 9 * mib}[random.IntN(6)]})
				if random.IntN(4) == 0 {
					cancel()
				}
				b, err := f.Await(context.Background())
				cancel()
				if err != nil {
					assert.True(t, errors.Is(err, context.Canceled) || errors.Is(err, pool.ErrOutOfMemory), "%v", err)
					continue
				}
				if random.IntN(2) == 0 {
					assert.NoError(t, b.Free())
					continue
				}
				select {
				case handed <- b:
				case other := <-handed:
					assert.NoError(t, other.Free())
					assert.NoError(t, b.Free())
				}
				if random.IntN(20) == 0 {
					r.tick(s)
				}
			}
		})
	}
	work.Wait()
	close(handed)
	for b := range handed {
		assert.NoError(t, b.Free())
	}
	for _, s := range streams {
		r.tick(s)
		r.until(func() bool { return r.stats(s).Waiting == 0 }) // of a cancelled request the pool may still be at work
		n := r.stats(s)
		assert.Zero(t, n.LiveCount)
		assert.Zero(t, n.LiveBytes)
	}
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	for _, s := range streams {
		r.stats(s) // a turn after the pool's grants
	}
	r.balanced(streams...)
}
