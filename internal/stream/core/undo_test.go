package core

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After PutBack another goroutine can immediately take and free the block: only that free counts.
func TestPutBackCountsItsOwnFreeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 128, Budget{})
	w.core.Grant(Run{First: 0, Pages: 8})
	keep, _ := w.core.Alloc(kib, 0) // from now on a magazine serves the class
	require.NotNil(t, keep)
	var over atomic.Bool
	var taken uint64
	var caller sync.WaitGroup
	caller.Go(func() {
		for !over.Load() {
			if s, word := w.cache.Take(kib); s != nil {
				assert.NoError(t, s.Free(word))
				taken++
			}
		}
	})
	for range 500_000 {
		if s, _ := w.core.Alloc(kib, 0); s != nil {
			w.core.PutBack(s)
		}
	}
	over.Store(true)
	caller.Wait()
	assert.Equal(t, taken, w.core.Snapshot().FreeCount)
}

// A block that is put back leaves the counts as they were, of any length, and whether memory is wanted or not.
func TestPutBackLeavesTheCounts(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		for _, bytes := range []int64{512, 300 * kib, 5 * mib} {
			w := newWorld(t, 4096, Budget{})
			w.core.Grant(Run{First: 0, Pages: 8})
			w.core.SetWanted(wanted)
			counts := func() [3]uint64 {
				s := w.core.Snapshot()
				return [3]uint64{s.AllocCount, s.FreeCount, uint64(s.LiveBytes)}
			}
			before := counts()
			for range 3 {
				s, _ := w.core.Alloc(bytes, 0)
				require.NotNil(t, s)
				w.core.PutBack(s)
				w.core.Drain()
				assert.Equal(t, before, counts(), "%d bytes, wanted: %t", bytes, wanted)
			}
		}
	}
}

// A batch sees that the books were read since it began, or are being read, and nothing else.
func TestABatchSeesReadings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	p := w.core.Parts()
	for range 3 {
		before := p.Reading()
		require.False(t, p.Seen(before))
		w.core.Snapshot()
		require.True(t, p.Seen(before))
	}
	p.readings.Add(1) // as Snapshot begins
	require.True(t, p.Seen(p.Reading()))
}
