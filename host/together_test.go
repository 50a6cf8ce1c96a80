package host

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/together"
)

// keeping is memory whose uses are kept.
type keeping struct{}

func (keeping) usable(cudadrv.Stream) (keep bool, err error) { return true, nil }

// Each of the streams that are announced at the same time is a use of the block, once.
func TestManyGoroutinesAnnounceUses(t *testing.T) {
	const streams = 4
	for round := range 1000 {
		s := &slot{where: keeping{}}
		together.Run(streams, func(number int) {
			for i := range 1 + round%2*(streams-1) { // one of its own, or the same ones in other orders
				assert.NoError(t, s.announce(cudadrv.Stream(1+(number+i)%streams), 0))
			}
		})
		count := map[cudadrv.Stream]int{}
		for _, stream := range s.streams(nil, 0) {
			count[stream]++
		}
		require.Equal(t, map[cudadrv.Stream]int{1: 1, 2: 1, 3: 1, 4: 1}, count)
	}
}

// The event of a use is released once, after the last of those that have a share of it: looks, and waits for the oldest use.
func TestManyGoroutinesShareStamps(t *testing.T) {
	r := newRig(t)
	p := r.cache(1 << 30)
	s := r.stream()
	const blocks, bytes = 3, 4096
	for range 200 {
		var all []Block
		for range blocks {
			b := alloc(t, p, bytes, 0)
			require.NoError(t, b.Use(s))
			all = append(all, b)
		}
		for _, b := range all {
			r.busy(s, time.Second)
			free(t, b)
		}
		r.sim.Advance(time.Hour)
		together.Run(4, func(number int) {
			if number == 0 {
				p.look()
				return
			}
			if one := p.oldest(p.stampCount.Load()); one != nil {
				p.drop(one)
			}
		})
		for p.look() {
		}
		require.Zero(t, p.Stats().PendingBytes)
		marks := map[fence.Mark]int{}
		for range 2 * blocks { // more than there are: each is a mark of its own
			m, err := p.events.Record(s)
			require.NoError(t, err)
			marks[m]++
		}
		require.Len(t, marks, 2*blocks, "an event was released twice")
		for m := range marks {
			require.NoError(t, p.events.Release(m))
		}
	}
	r.end(p)
}

// One goroutine at a time releases memory, however many find some to release, and all of it is released.
func TestManyGoroutinesReleaseMemory(t *testing.T) {
	r := newRig(t)
	p := r.cache(1 << 20)
	var releasing, releases, overlaps atomic.Int32
	r.faults.SetBefore(func(function string) {
		if function != "cuMemFreeHost" {
			return
		}
		releases.Add(1)
		if releasing.Add(1) > 1 {
			overlaps.Add(1)
		}
		runtime.Gosched() // others may begin
		releasing.Add(-1)
	})
	for range 100 {
		var blocks [4]Block
		for i := range blocks {
			blocks[i] = alloc(t, p, 4096, 0)
		}
		together.Run(len(blocks), func(number int) {
			assert.NoError(t, p.Free(blocks[number]))
			_, err := p.Trim(t.Context())
			assert.NoError(t, err)
		})
		stats := p.Stats()
		require.Zero(t, stats.ReleasingBytes+stats.KeptBytes)
	}
	assert.Positive(t, releases.Load())
	assert.Zero(t, overlaps.Load())
	r.faults.SetBefore(nil)
	r.end(p)
}

// Of several calls of a Close at once one closes.
func TestManyGoroutinesCloseOnce(t *testing.T) {
	for range 500 {
		var once closeOnce
		var calls atomic.Int32
		together.Run(4, func(int) { assert.NoError(t, once.do(func() error { calls.Add(1); return nil })) })
		require.EqualValues(t, 1, calls.Load())
		require.True(t, once.done())
	}
}

// Each request, free, refusal and release among goroutines is counted once, by each wrapper and by the source.
func TestFiguresAmongGoroutines(t *testing.T) {
	const goroutineCount, rounds, bytes = 4, 200, 4096
	r := newRig(t)
	source := must[*PageLockedMemory](t)(PageLockedSource(r.device))
	p := must[*Pool](t)(Pooled(source, PoolConfig{Device: r.device, KeepBytes: 2 * bytes}))
	track := must[*Track](t)(Tracked(p))
	limit := must[*Limit](t)(Limited(track, Bounds{Blocks: 9, Bytes: 2 * bytes}))
	var served, limited, wrong atomic.Uint64
	together.Run(goroutineCount, func(int) {
		for range rounds {
			var blocks [3]Block // more than the limit
			for i := range blocks {
				b, err := limit.Alloc(bytes, 0)
				if errors.Is(err, ErrLimit) {
					limited.Add(1)
					continue
				}
				assert.NoError(t, err)
				served.Add(1)
				blocks[i] = b
			}
			_, err := track.Alloc(-1, 0)
			assert.Error(t, err)
			_, err = source.Alloc(-1, 0)
			assert.Error(t, err)
			wrong.Add(1)
			for _, b := range blocks {
				if b.Live() {
					assert.NoError(t, limit.Free(b))
				}
			}
		}
	})
	_, err := p.Trim(t.Context())
	require.NoError(t, err)
	outside, inside := track.Stats(), source.Stats()
	assert.Equal(t, served.Load(), outside.Allocs)
	assert.Equal(t, served.Load(), outside.Frees)
	assert.Equal(t, wrong.Load(), outside.Refusals)
	assert.Equal(t, wrong.Load(), inside.Refusals)
	for name, s := range map[string]Stats{"limit": limit.Stats(), "track": outside, "pool": p.Stats(), "source": inside} {
		assert.Zero(t, s.LiveBlocks, name)
		assert.Zero(t, s.LiveBytes, name)
		assert.Zero(t, s.KeptBytes+s.PendingBytes+s.ReleasingBytes, name)
	}
	assert.Equal(t, inside.Allocs, inside.Frees)
	assert.Equal(t, inside.Allocs, p.Stats().Misses-p.Stats().Refusals+wrong.Load())
	assert.Equal(t, inside.Frees, p.Stats().Releases)
	_, err = limit.Alloc(3*bytes, 0)
	var full *LimitError
	require.ErrorAs(t, err, &full)
	assert.Zero(t, full.LiveBlocks)
	assert.Zero(t, full.LiveBytes)
	r.end(limit)
}
