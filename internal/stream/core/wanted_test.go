package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// A failed trial restores the state and reports nothing: otherwise two waiting batches would retry each other
// forever. Memory that is freed during the trial is reported.
func TestATrialInVainTellsNobody(t *testing.T) {
	t.Parallel()
	for name, frees := range map[string]bool{"alone": false, "beside a free": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4096, Budget{})
			require.True(t, w.lend(0, 4))
			other, another := w.alloc(4096, 0, w.always), w.alloc(4096, 0, w.always)
			w.core.SetWanted(true)
			w.core.DrainAll()
			w.core.TakeCame()
			for n := range 2 {
				meanwhile := frees && n == 0
				var got []*magazine.Slot
				found := w.core.Trial(func() bool {
					for range 300 { // more than a span has
						slot, _ := w.core.Alloc(512, 0)
						require.NotNil(t, slot)
						got = append(got, slot)
					}
					if meanwhile {
						w.free(other)
						w.free(another) // the last of its span
					}
					return false
				}, func() {
					for _, slot := range got {
						w.core.PutBack(slot)
					}
				})
				require.False(t, found)
				came := w.core.TakeCame()
				w.core.DrainAll()
				came = w.core.TakeCame() || came
				assert.Equal(t, meanwhile, came)
			}
		})
	}
}

// A failed search retires spans whose last buffer was freed. Another search that this free wakes finds
// nothing, so the retirement is reported.
func TestASearchInVainTellsWhatItRetired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	require.True(t, w.lend(0, 4))
	other := w.alloc(4096, 0, w.always)
	w.core.SetWanted(true)
	w.core.DrainAll()
	w.core.TakeCame()
	w.free(other)
	slot, need := w.core.Alloc(1<<30, 0)
	require.Nil(t, slot)
	require.Positive(t, need)
	w.core.DrainAll()
	assert.True(t, w.core.TakeCame())
	assert.False(t, w.core.TakeCame())
}

// A trial reports whether it found everything, and undoes nothing then.
func TestATrialThatFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	for _, found := range []bool{true, false} {
		undone := false
		assert.Equal(t, found, w.core.Trial(func() bool { return found }, func() { undone = true }))
		assert.Equal(t, !found, undone)
	}
}

// A free into a magazine without free slots is reported while requests wait.
func TestAFreeIntoAFullMagazineIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	var all []*buffer
	for range sizeclass.SpanBlocks(sizeclass.Count - 1) {
		all = append(all, w.alloc(64*kib, 0, w.always))
	}
	w.core.SetWanted(true)
	w.core.DrainAll()
	w.core.TakeCame()
	for i, b := range all {
		w.free(b)
		w.core.DrainAll()
		assert.Equal(t, i == 0 || i == len(all)-1, w.core.TakeCame(), "the first, and the last, which frees the span")
	}
}
