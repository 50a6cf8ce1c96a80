package streams

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// holders maps each unit of memory to its holder.
type holders struct{ units sync.Map }

// take claims a buffer's memory: it must have no holder.
func (c *holders) take(t *testing.T, b Buffer) {
	t.Helper()
	for p := b.Ptr(); p < b.Ptr()+cudadrv.Ptr(max(b.Bytes(), 1)); p += 16 << 10 {
		if _, other := c.units.LoadOrStore(p, b.word); other {
			t.Errorf("%x has two owners", p)
		}
	}
}

func (c *holders) drop(b Buffer) {
	for p := b.Ptr(); p < b.Ptr()+cudadrv.Ptr(max(b.Bytes(), 1)); p += 16 << 10 {
		c.units.Delete(p)
	}
}

// tenants runs lanes of two streams at the limit of the device, with other goroutines that free
// their buffers, some twice, until count operations each; during is called meanwhile.
func tenants(t *testing.T, r *rig, count int, during func([]*Stream)) {
	t.Helper()
	owners := &holders{}
	streams := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{})}
	mail := make(chan Buffer, 64)
	var lanes, others sync.WaitGroup
	lawful := func(err error) bool {
		return errors.Is(err, ErrClosed) || errors.Is(err, pool.ErrOutOfMemory)
	}
	for i := range 4 {
		l, err := streams[i%2].Lane([]int64{0, mib, 16 * mib, 64 * mib}[i])
		require.NoError(t, err)
		lanes.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			var mine []Buffer
			for range count {
				bytes := []int64{512, 3 * kib, 64 * kib, 100 * kib, mib, 5 * mib}[rnd.IntN(6)]
				b, err := l.Alloc(bytes)
				if err != nil {
					assert.True(t, lawful(err), "%v", err)
				} else {
					owners.take(t, b)
					mine = append(mine, b)
				}
				for len(mine) > 12 || err != nil && len(mine) > 0 {
					at := rnd.IntN(len(mine))
					b := mine[at]
					mine[at] = mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					owners.drop(b)
					if rnd.IntN(2) == 0 {
						mail <- b
						continue
					}
					if err := l.Free(b); err != nil {
						assert.ErrorIs(t, err, ErrClosed)
					}
					if rnd.IntN(4) == 0 {
						assert.Error(t, l.Free(b), "freed twice")
					}
				}
			}
			assert.NoError(t, l.Close())
			for _, b := range mine {
				owners.drop(b)
				mail <- b
			}
		})
	}
	for range 2 {
		others.Go(func() {
			for b := range mail {
				free := b.Free
				if b.word>>8&1 == 0 {
					free = func() error { return streams[0].FreeBatch([]Buffer{b}) }
				}
				if err := free(); err != nil {
					assert.ErrorIs(t, err, ErrClosed)
				}
				assert.Error(t, b.Free(), "freed twice")
			}
		})
	}
	during(streams)
	lanes.Wait()
	close(mail)
	others.Wait()
}

// Lanes allocate and free, with frees by other goroutines, and one goroutine that sends reclaim
// requests and reads the books.
func TestLanesUnderPressure(t *testing.T) {
	r := newRig(t, 96*mib)
	tenants(t, r, 1000, func(streams []*Stream) {
		for i := range 200 {
			s := streams[i%2]
			if b, err := s.Alloc(20 * mib); err == nil {
				assert.NoError(t, b.Free())
			}
			control(s).Tick()
			_, err := s.Stats(context.Background())
			assert.NoError(t, err)
		}
	})
	for _, s := range r.streams {
		n := r.stats(s)
		assert.Zero(t, n.LiveCount)
		assert.Zero(t, n.LaneBytes)
		r.sound(s)
	}
	_, err := r.pool.Trim(context.Background(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.books().LentBytes, "all memory came back")
}

// Streams are closed while their lanes are at work: all that they had comes back.
func TestStreamsAreClosedUnderLanesAtWork(t *testing.T) {
	for moment := range 8 {
		r := newRig(t, 96*mib)
		tenants(t, r, 500, func(streams []*Stream) {
			for range moment * 10 {
				control(streams[0]).Tick()
			}
			assert.NoError(t, streams[0].Close())
			assert.NoError(t, streams[1].Close())
		})
		for _, s := range r.streams {
			r.until(control(s).Gone)
		}
		r.until(func() bool { return r.books().LentBytes == 0 }) // the goroutine of the last free performs the return after its turn
	}
}

// The device ends while lanes are at work.
func TestDeviceEndsUnderLanesAtWork(t *testing.T) {
	for moment := range 8 {
		r := newRig(t, 96*mib)
		tenants(t, r, 500, func(streams []*Stream) {
			for range moment * 10 {
				control(streams[0]).Tick()
			}
			for _, s := range streams {
				assert.NoError(t, s.Close())
			}
			for _, s := range streams {
				control(s).End()
			}
		})
	}
}

// A buffer that a lane and another goroutine free at the same time is freed at least once, and
// nothing else happens: no memory is lost, and none has two owners.
func TestRacingFreesDoNoHarm(t *testing.T) {
	r := newRig(t, 96*mib)
	s := r.stream(core.Budget{})
	owners := &holders{}
	l, err := s.Lane(64 * mib)
	require.NoError(t, err)
	var racing atomic.Pointer[Buffer]
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !stop.Load() {
			if b := racing.Load(); b != nil {
				_ = b.Free() // misuse: the lane frees it too, or has
			}
		}
	})
	for i := range 20_000 {
		b := alloc(t, l, []int64{512, 100 * kib}[i/64%2])
		c := alloc(t, l, b.Bytes())
		owners.take(t, b)
		owners.take(t, c)
		owners.drop(b)
		racing.Store(&b)
		if err := l.Free(b); err != nil {
			require.ErrorIs(t, err, ErrBadFree)
		}
		owners.drop(c)
		require.NoError(t, l.Free(c))
		if i%1000 == 0 {
			control(s).Tick()
		}
	}
	stop.Store(true)
	all.Wait()
	require.NoError(t, l.Close())
	r.sound(s)
	assert.Zero(t, r.stats(s).LiveBytes)
	assert.Zero(t, r.stats(s).LaneBytes)
}
