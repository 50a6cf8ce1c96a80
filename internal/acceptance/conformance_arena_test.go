package acceptance_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// These tests are about pieces that become whole again; docs/conformance.md says where they are
// from.

// RMM: ArenaTest.Defragment. Four goroutines leave crumbs on a stream each; then one allocation of
// all there is must succeed.
func TestCrumbsOfFourStreamsBecomeOneBlock(t *testing.T) {
	for _, limitBytes := range []int64{64 * mib, gib} {
		for range 3 {
			h := openHouse(t, vram.Config{LimitBytes: limitBytes}, sim.Config{})
			var all sync.WaitGroup
			var streams []*vram.Stream
			for range 4 {
				s := h.stream()
				streams = append(streams, s)
				all.Go(func() {
					for _, bytes := range []int64{kib, 64 * kib, 100 * kib, mib, 3 * mib, 64 * kib} {
						var held []vram.Buffer
						for range 3 {
							b, err := s.Alloc(bytes)
							if assert.NoError(t, err) {
								held = append(held, b)
							}
						}
						for _, b := range held {
							assert.NoError(t, b.Free())
						}
					}
				})
			}
			all.Wait()
			freeAll(t, must(t, streams[0], limitBytes))
			freeAll(t, must(t, h.stream(), limitBytes)) // and for one that had no part in it
			h.addsUp()
		}
	}
}

// RMM: ArenaTest.SmallMediumLarge and GlobalArenaDeallocateFromOtherArena: every kind of size
// next to the others, freed by a goroutine of another stream.
func TestSmallMediumLarge(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	var o overlaps
	for range 3 {
		var held []vram.Buffer
		for _, bytes := range []int64{1, 512, 4 * kib, 64*kib + 1, mib, 32 * mib, 512 * mib, gib} {
			x := must(t, a, bytes)
			require.NoError(t, o.enter(x))
			held = append(held, x)
			y := must(t, b, bytes)
			require.NoError(t, o.enter(y))
			held = append(held, y)
		}
		var other sync.WaitGroup
		other.Go(func() {
			for _, x := range held {
				assert.NoError(t, o.free(x))
			}
		})
		other.Wait()
	}
	assert.Zero(t, h.addsUp().LiveBytes)
}

// RMM: ArenaTest.CoalesceMergePreviousAndNext. The one in the middle is freed last, and all are
// one.
func TestAFreeMergesWithBothNeighbours(t *testing.T) {
	for _, last := range []int{0, 1, 2} {
		h := openHouse(t, vram.Config{}, sim.Config{})
		s := h.stream()
		whole := must(t, s, 12*mib)
		freeAll(t, whole)
		parts := []vram.Buffer{must(t, s, 4*mib), must(t, s, 4*mib), must(t, s, 4*mib)}
		for i, part := range parts {
			assert.Equal(t, whole.Ptr()+vram.Ptr(int64(i)*4*mib), part.Ptr())
			if i != last {
				freeAll(t, part)
			}
		}
		calls := h.driverCalls()
		freeAll(t, parts[last])
		again := must(t, s, 12*mib)
		assert.Equal(t, whole.Ptr(), again.Ptr())
		assert.Equal(t, calls, h.driverCalls())
		freeAll(t, again)
	}
}
