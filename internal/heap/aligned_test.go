package heap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Lengths and alignments from half of the countable range up are found or refused, and not truncated.
func TestAlignedAtTheEndOfWhatCanBeCounted(t *testing.T) {
	t.Parallel()
	const pageUnits, pages = 4096, 1<<20 - 1
	h := New(pageUnits)
	h.Grant(0, pages)
	for _, c := range []struct {
		units, align, phase uint32
		from                int64 // -1: no place
	}{
		{3 << 30, 1 << 31, 1 << 30, -1}, // the end would be 2^32
		{3<<30 - pageUnits, 1 << 31, 1 << 30, 1 << 30},
		{1 << 31, 1 << 31, 1, 1},
		{1 << 31, 1 << 31, 1<<31 - pageUnits, 1<<31 - pageUnits},
		{1 << 31, 1 << 31, 1<<31 - 1, -1},
		{pages * pageUnits, 1 << 31, 0, 0},
		{pages * pageUnits, 1 << 31, 1, -1},
		{1<<32 - 1, 1 << 31, 0, -1},
	} {
		b := h.TakeAligned(c.units, c.align, c.phase)
		if c.from < 0 {
			require.Equal(t, None, b, "%+v", c)
		} else {
			require.NotEqual(t, None, b, "%+v", c)
			assert.EqualValues(t, c.from, h.Offset(b))
			assert.Equal(t, c.units, h.Units(b))
			h.Give(b)
		}
		require.NoError(t, h.Check())
	}
}

// Among many ranges without the alignment the search ends soon.
func TestAlignedLooksAtFewOfManyRanges(t *testing.T) {
	t.Parallel()
	const pageUnits = 4096
	h := New(pageUnits)
	for i := range uint32(1000) {
		h.Grant(3*i, 2) // a place for two pages and nothing around
	}
	h.Grant(4000, 6)
	before := h.Visits()
	b := h.TakeAligned(2*pageUnits, 4*pageUnits, 1)
	require.NotEqual(t, None, b)
	assert.EqualValues(t, 4000*pageUnits+1, h.Offset(b))
	assert.EqualValues(t, alignedVisits+1, h.Visits()-before, "both searches count; the second finds the longest at once")
	require.NoError(t, h.Check())
}
