package heap

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyRanges is too many for a walk over them to pass as a bounded search.
const manyRanges = 100_000

// TestTakeLooksAtFewOfManyRanges checks that a search among a hundred thousand free ranges of all lengths
// visits at most VisitLimit of them, if any range is in a bin above the wanted one.
func TestTakeLooksAtFewOfManyRanges(t *testing.T) {
	t.Parallel()
	h := perforated(manyRanges, 1, 6000)
	require.Equal(t, manyRanges, h.FreeRanges())
	longest := binOf(h.LargestFree())
	r := rand.New(rand.NewPCG(5, 6))
	for range manyRanges {
		units := 1 + r.Uint32N(5800)
		require.Less(t, binOf(units), longest)
		before := h.Visits()
		b := h.Take(units)
		require.LessOrEqual(t, h.Visits()-before, uint64(VisitLimit), "for %d units", units)
		require.NotEqual(t, None, b)
		h.Give(b)
	}
	require.NoError(t, h.Check())
}

// TestVainSearchIsLongOnce has a bin of many ranges that are all a little too short, and none above. Failed
// searches visit none of them, except for the first one after a range that was long enough was inserted and
// removed.
func TestVainSearchIsLongOnce(t *testing.T) {
	t.Parallel()
	const short, want = 1024, 1040
	require.Equal(t, binOf(short), binOf(want))
	h := perforated(manyRanges, short, short+1)
	take := func(units uint32) (b int32, visits uint64) {
		before := h.Visits()
		b = h.Take(units)
		return b, h.Visits() - before
	}
	inVain := func(units uint32, want int) {
		t.Helper()
		b, visits := take(units)
		assert.Equal(t, None, b)
		assert.EqualValues(t, want, visits, "for %d units", units)
	}
	inVain(want, 0)

	const page = 1 << 19 // far from the others
	h.Grant(page, 1)
	long, visits := take(want)
	require.NotEqual(t, None, long)
	assert.LessOrEqual(t, visits, uint64(VisitLimit))
	h.Take(h.LargestFree())
	inVain(want, 0)

	h.Give(long)
	again, visits := take(want)
	assert.Equal(t, long, again)
	assert.EqualValues(t, 1, visits)
	inVain(want, manyRanges)
	inVain(want, 0)
	inVain(want+5, 0)

	b, visits := take(short)
	require.NotEqual(t, None, b, "those that are long enough are still found")
	assert.LessOrEqual(t, visits, uint64(VisitLimit))
	h.Give(b)
	inVain(want, 0)
	require.NoError(t, h.Check())
}

// TestVainSearchOfFewIsLongOnce has a bin of a few ranges that are too short, so that one look visits all of them, and none above.
func TestVainSearchOfFewIsLongOnce(t *testing.T) {
	t.Parallel()
	const short, want, few = 1024, 1040, scanLimit - 1
	require.Equal(t, binOf(short), binOf(want))
	h := perforated(few, short, short+1)
	inVain := func(units uint32, want int) {
		t.Helper()
		before := h.Visits()
		assert.Equal(t, None, h.Take(units))
		assert.EqualValues(t, want, h.Visits()-before, "for %d units", units)
	}
	const page = 1 << 19 // far from the others
	h.Grant(page, 1)
	long := h.Take(want)
	h.Take(h.LargestFree())
	h.Give(long)
	h.Take(want)
	inVain(want, few)
	inVain(want, 0)
	inVain(want+5, 0)
	require.NoError(t, h.Check())
}

// TestLastFitIsFoundBehindManyThatAreShort has the only range that is long enough at the end of its bin and
// none above: it is found, if late.
func TestLastFitIsFoundBehindManyThatAreShort(t *testing.T) {
	t.Parallel()
	const short, want = 1024, 1040
	h := New(1 << 20)
	h.Grant(0, 1)
	long := h.Take(want)
	h.Take(1)
	var holes []int32
	for range 500 {
		holes = append(holes, h.Take(short))
		h.Take(1)
	}
	h.Take(h.LargestFree())
	h.Give(long) // first into its bin, so last out
	for _, hole := range holes {
		h.Give(hole)
	}
	before := h.Visits()
	assert.Equal(t, long, h.Take(want))
	assert.EqualValues(t, 501, h.Visits()-before)
	before = h.Visits()
	assert.Equal(t, None, h.Take(want))
	assert.EqualValues(t, 500, h.Visits()-before)
	require.NoError(t, h.Check())
}

// TestTakeAndGiveDoNotAllocate checks that the books are reused once they are long enough.
func TestTakeAndGiveDoNotAllocate(t *testing.T) {
	h := perforated(1000, 128, 4096)
	r := rand.New(rand.NewPCG(7, 8))
	turn := func() { h.Give(h.Take(128 + r.Uint32N(3000))) }
	turn()
	assert.Zero(t, testing.AllocsPerRun(1000, turn))
}
