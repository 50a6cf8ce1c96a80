package acceptance_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// An allocation and its free that the cache serves allocate nothing on the heap and make no driver
// call, whichever way a size is kept.
func TestAHitAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		for _, bytes := range sizes() {
			pair := func() {
				b, err := s.Alloc(bytes)
				if err != nil || b.Free() != nil {
					t.Error("a pair failed")
				}
			}
			for range 20 { // until the size has its place
				pair()
			}
			before, calls := h.Stats(), h.driverCalls()
			assert.Zero(t, testing.AllocsPerRun(200, pair), "%d bytes", bytes)
			assert.Equal(t, calls, h.driverCalls())
			assert.Equal(t, uint64(201), h.Stats().MagazineHits-before.MagazineHits, "%d bytes: all by the magazine", bytes)
			assert.Zero(t, testing.AllocsPerRun(200, func() {
				b, err := s.AllocAsync(context.Background(), vram.Request{Bytes: bytes}).Await(context.Background())
				if err != nil || b.Free() != nil {
					t.Error("a pair failed")
				}
			}), "%d bytes as a future", bytes)
		}
	})
}

// A request that no magazine serves and the stream's own free ranges do allocates nothing either.
func TestAMissInTheStreamsOwnMemoryAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, 256*mib))
		bytes := 65 * kib
		pair := func() { // a size that never comes again
			bytes += 512
			b, err := s.Alloc(bytes)
			if err != nil || b.Free() != nil {
				t.Error("a pair failed")
			}
		}
		for range 100 {
			pair()
		}
		before, calls := h.Stats(), h.driverCalls()
		allocs := testing.AllocsPerRun(500, pair)
		if !raceDetector { // under it every turn is checked for being inside another
			assert.Zero(t, allocs)
		}
		assert.Equal(t, calls, h.driverCalls())
		assert.Equal(t, uint64(501), h.Stats().StreamHits-before.StreamHits)
		require.NoError(t, h.Close())
	})
}
