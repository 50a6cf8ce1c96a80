package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// Unused spans are retired before the pool is asked: a buffer as long as all held memory fits.
func TestIdleSpansGoBackBeforeThePoolIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	require.True(t, w.lend(0, 8))
	nothing := func(uint32) bool { return false }
	all := []*buffer{w.alloc(6*mib, 0, nothing), w.alloc(100, 0, nothing), w.alloc(6*mib, 0, nothing)}
	for _, b := range all {
		w.free(b)
	}
	assert.NotNil(t, w.alloc(16*mib, 0, nothing), "the span is not in the way any more")
	w.check()
}

// Once almost all buffers are gone, free slots of spans and magazines in the middle of a range return to the
// heap before the next buffer is placed, also those that other streams have used.
func TestAQuiescentStreamMakesLongRanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		turns int
		used  bool
		fits  bool
	}{
		{"after many turns", quiescentTurns, false, true},
		{"after few turns", quiescentTurns / 2, false, false}, // counts as just swept
		{"used by others", quiescentTurns, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4096, Budget{})
			require.True(t, w.lend(0, 8))
			nothing := func(uint32) bool { return false }
			all := []*buffer{w.alloc(6*mib, 0, nothing), w.alloc(100, 0, nothing), w.alloc(6*mib, 0, nothing)}
			for i := range c.turns {
				w.free(w.alloc(mib+int64(i)*512, 0, nothing))
			}
			lines, _ := newLines(t, w, 2)
			if c.used { // the one in the middle, which alone is no pile
				use, err := all[1].slot.Begin(all[1].word, lines[0])
				require.NoError(t, err)
				require.NoError(t, use.End(lines[0].Next()))
			}
			for _, b := range all {
				w.free(b)
			}
			if c.used { // and its fence has passed
				number := lines[0].Begin()
				lines[0].Took(number)
				lines[0].Pass(number)
			}
			require.NotNil(t, w.alloc(mib, 0, nothing))
			assert.Equal(t, c.fits, w.core.heap.LargestFits(14*mib>>sizeclass.UnitShift), "the span is not in the way any more")
			w.check()
		})
	}
}

// The sweep is armed by a rise and fires once.
func TestQuiescence(t *testing.T) {
	t.Parallel()
	var e quiescence
	assert.False(t, e.due(0, 1000), "nothing ever lived")
	e.arm(1000, 4000)
	assert.False(t, e.due(499, 1000), "a quarter of the peak is no rise")
	e.arm(1001, 4000)
	assert.False(t, e.due(500, 1000), "an eighth is not quiescent")
	assert.False(t, e.due(499, quiescentTurns-1), "too soon")
	assert.True(t, e.due(499, quiescentTurns))
	assert.False(t, e.due(0, 2*quiescentTurns), "once")
	e.arm(4000, 4000)
	assert.False(t, e.due(499, 2*quiescentTurns-1))
	assert.True(t, e.due(499, 2*quiescentTurns))
}
