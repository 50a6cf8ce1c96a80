package acceptance_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// churn lets many goroutines allocate and free on the streams that pick names, half of the buffers
// freed by another goroutine than the one that has allocated them, and holds all live ranges
// against each other.
func churn(t *testing.T, h *house, goroutines, rounds int, pick func(g int, r *rand.Rand) *vram.Stream) {
	t.Helper()
	var o overlaps
	handed := make(chan vram.Buffer, goroutines)
	var work sync.WaitGroup
	for g := range goroutines {
		work.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 7))
			for range rounds {
				bytes := []int64{0, 100, 600, 20 * kib, 70 * kib, 300 * kib, 2 * mib, 5 * mib}[random.IntN(8)]
				s := pick(g, random)
				var b vram.Buffer
				var err error
				if random.IntN(4) == 0 {
					b, err = s.AllocAsync(context.Background(), vram.Request{Bytes: bytes}).Await(context.Background())
				} else {
					b, err = s.Alloc(bytes)
				}
				if !assert.NoError(t, err) || !assert.NoError(t, o.enter(b)) {
					return
				}
				if random.IntN(2) == 0 {
					assert.NoError(t, o.free(b))
					continue
				}
				select {
				case handed <- b:
				case other := <-handed:
					assert.NoError(t, o.free(other))
					assert.NoError(t, o.free(b))
				}
			}
		})
	}
	work.Wait()
	close(handed)
	for b := range handed {
		assert.NoError(t, o.free(b))
	}
	n := h.addsUp()
	assert.InDelta(t, goroutines*rounds, n.AllocCount, float64(h.unsettled))
	assert.Equal(t, uint64(goroutines*rounds), n.FreeCount)
	assert.Zero(t, n.LiveBytes)
}

// Any number of goroutines may use one stream.
func TestManyGoroutinesOnOneStream(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	churn(t, h, 16, 1000, func(int, *rand.Rand) *vram.Stream { return s })
}

// Goroutines may use streams of their own, and free each other's buffers.
func TestManyGoroutinesOnTheirOwnStreams(t *testing.T) {
	h := openHouse(t, vram.Config{Footprint: vram.Lean}, sim.Config{})
	var streams []*vram.Stream
	for range 16 {
		streams = append(streams, h.stream())
	}
	churn(t, h, 16, 1000, func(g int, _ *rand.Rand) *vram.Stream { return streams[g] })
}

// Goroutines may use any stream, while streams come and go and one goroutine trims, warms up and
// reads figures.
func TestManyGoroutinesWhileTheDeviceChanges(t *testing.T) {
	h := openHouse(t, vram.Config{StreamCacheBytes: 4 * mib, PoolCacheBytes: 32 * mib}, sim.Config{})
	streams := []*vram.Stream{h.stream(), h.stream(), h.stream()}
	h.unsettled = 8 * len(streams) // all eight goroutines may be inside a free on each of them
	quit := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
			}
			s, err := h.NewStream()
			if !assert.NoError(t, err) {
				return
			}
			_, err = h.Trim(context.Background(), 8*mib)
			assert.NoError(t, err)
			assert.NoError(t, h.Warm(context.Background(), vram.Demand{Bytes: mib, Count: 3}))
			h.Stats()
			h.ResetPeaks()
			assert.NoError(t, s.Close())
		}
	})
	defer beside.Wait()
	defer close(quit)
	churn(t, h, 8, 500, func(_ int, r *rand.Rand) *vram.Stream { return streams[r.IntN(len(streams))] })
}
