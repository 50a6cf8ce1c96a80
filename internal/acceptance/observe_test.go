package acceptance_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A later observer is called for the live buffers, their frees and all following ones, in addition to the one of the
// configuration; once it has gone it is told of nothing, and nothing is sampled any more.
func TestObserveWhileInUse(t *testing.T) {
	for _, configured := range []bool{false, true} {
		var first []string
		cfg := vram.Config{LimitBytes: 256 << 20}
		if configured {
			cfg.Observer.Allocated = func(e vram.BufferEvent) { first = append(first, e.Tag) }
		}
		h := openHouse(t, cfg, sim.Config{})
		s := h.stream()
		early, err := s.AllocFor(t.Context(), vram.Request{Bytes: 5000, Tag: "early"})
		require.NoError(t, err)
		small, err := s.Alloc(700)
		require.NoError(t, err)
		var told []string
		var changeBytes, mappedBytes atomic.Int64 // the pool's goroutine may change them at any tick
		note := func(what string) func(vram.BufferEvent) {
			return func(e vram.BufferEvent) { told = append(told, what+" "+e.Tag) }
		}
		stop, err := h.Observe(vram.Observer{
			Allocated: note("allocated"), Freed: note("freed"), Found: note("found"),
			Reserved: func(change, _ int64) {
				assert.Equal(t, changeBytes.Add(change), mappedBytes.Load(), "told before")
			},
			Mapped: func(at vram.Ptr, change int64) {
				assert.NotZero(t, at)
				mappedBytes.Add(change)
			},
			Denied: func(*vram.OutOfMemoryError) { told = append(told, "denied") },
		})
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"found early", "found "}, told)
		told = nil
		require.NoError(t, early.Free())
		require.NoError(t, small.Free())
		late, err := s.AllocFor(t.Context(), vram.Request{Bytes: 100 << 20, Tag: "late"})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, changeBytes.Load(), int64(98<<20))
		_, err = s.Alloc(200 << 20)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		other := h.stream()
		inOther, err := other.AllocFor(t.Context(), vram.Request{Bytes: 100, Tag: "other"})
		require.NoError(t, err)
		stop()
		stop()
		require.NoError(t, late.Free()) // sampled, but nobody listens
		require.NoError(t, inOther.Free())
		b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 100, Tag: "last"})
		require.NoError(t, err)
		require.NoError(t, b.Free())
		assert.Equal(t, []string{"freed early", "freed ", "allocated late", "denied", "allocated other"}, told)
		if configured {
			assert.Equal(t, []string{"early", "", "late", "other", "last"}, first)
		}
		for _, of := range []*vram.Stream{s, other} {
			b, err := of.Alloc(100)
			require.NoError(t, err)
			require.NoError(t, b.Free())
			err = b.Free()
			require.ErrorIs(t, err, vram.ErrDoubleFree)
			_, sampled := errors.AsType[*vram.FreeError](err)
			assert.Equal(t, configured, sampled, "the places of a buffer that was allocated after the stop")
		}
	}
	var none *vram.Device
	_, err := none.Observe(vram.Observer{})
	require.ErrorIs(t, err, vram.ErrNotOpen)
}
