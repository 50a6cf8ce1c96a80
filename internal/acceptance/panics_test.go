package acceptance_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// A panic that was recovered is counted, reported to Events and logged with its stack, wherever it
// came from; the device keeps working.
func TestARecoveredPanicIsToldCountedAndLogged(t *testing.T) {
	for _, place := range []string{"cuMemCreate", "cuStreamSynchronize", "OnOutOfMemory", "Growth"} {
		t.Run(place, func(t *testing.T) {
			var out text
			var told []vram.PanicEvent
			var armed atomic.Bool
			crash := func(here string) {
				if here == place && armed.CompareAndSwap(true, false) {
					panic(recoveredtest.Planted("in " + here))
				}
			}
			h := openHouse(t, vram.Config{
				LimitBytes: 16 * mib, Logger: out.logger(),
				OnOutOfMemory: func(*vram.OutOfMemoryError) bool { crash("OnOutOfMemory"); return false },
				Events: vram.Events{
					Growth: func(vram.GrowthEvent) { crash("Growth") },
					Panic:  func(e vram.PanicEvent) { told = append(told, e) },
				},
			}, sim.Config{})
			h.faults.SetBefore(crash)
			s := h.stream()
			armed.Store(true)
			first, err := s.Alloc(8 * mib)
			if place == "cuMemCreate" {
				require.ErrorContains(t, err, "in cuMemCreate")
				first, err = s.Alloc(8 * mib)
			}
			require.NoError(t, err)
			_, err = s.Alloc(16 * mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			freeAll(t, first)
			_ = s.Close() // an error if the driver panicked in it
			require.NoError(t, h.Close())

			assert.EqualValues(t, 1, h.Stats().Panics)
			assert.Contains(t, out.String(), "in "+place)
			if place == "Growth" { // a panic of a function of Events is told to none of them
				assert.Empty(t, told)
				return
			}
			require.Len(t, told, 1)
			assert.NotEmpty(t, told[0].Place)
			assert.Equal(t, recoveredtest.Planted("in "+place), told[0].Value)
			assert.Contains(t, string(told[0].Stack), "panics_test.go", "the stack shows where it was")
			assert.Contains(t, out.String(), "recovered from a panic")
		})
	}
}

// A refusal is no panic: not for a single request, a batch, or one that waited.
func TestARefusalHidesNoPanic(t *testing.T) {
	before := recovered.UnplantedCount()
	h := openHouse(t, vram.Config{LimitBytes: 8 * mib}, sim.Config{})
	s := h.stream()
	x := must(t, s, 4*mib)
	for range 3 {
		_, err := s.Alloc(6 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.ErrorIs(t, s.AllocBatch(make([]vram.Buffer, 2), []int64{mib, 6 * mib}), vram.ErrOutOfMemory)
	}
	assert.Zero(t, h.Stats().Panics)
	assert.Equal(t, before, recovered.UnplantedCount())
	freeAll(t, x)
}
