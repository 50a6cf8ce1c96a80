package acceptance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A program that makes a stream for each step, uses it, and does not close it: the memory of
// earlier steps serves the later ones, of any sizes. Between the steps all goroutines come to rest:
// a goroutine that lost its processor inside a turn makes its stream count as active.
func TestNewStreamsAtEachStepDoNotAddUp(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		for step := range int64(40) {
			s := h.stream()
			for i := range int64(4) {
				x, y := must(t, s, (64+7*i+step)*mib), must(t, s, 128*mib)
				require.NoError(t, h.gpu.Launch(s.Handle(), time.Millisecond))
				freeAll(t, x, y)
			}
			h.gpu.Advance(3 * time.Millisecond)
			synctest.Wait()
		}
		n := h.addsUp()
		assert.LessOrEqual(t, n.PeakReservedBytes, 2*(64+39+21+128)*mib*105/100, "that of the step before, which has work, and this one")
	})
}
