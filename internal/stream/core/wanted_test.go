package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/magazine"
)

// A trial in vain leaves what there was, and tells nobody: else two batches that wait would have each other tried for ever.
// What came home meanwhile is told.
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

// A search in vain retires spans of which the last buffer has come home. Whoever is woken by that buffer finds nothing any more, and
// tells of it all the same.
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
