package magazine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/fence/line"
)

// The top of the list of used slots names the last, and says how many there are and how long they are, as far as there is
// room.
func TestUsedListSaysWhatIsInIt(t *testing.T) {
	t.Parallel()
	assert.Equal(t, ^uint64(0), nameMask|mostCount<<countShift|mostLength<<lengthShift)
	rapid.Check(t, func(t *rapid.T) {
		var c Cache
		var top, count, length uint64
		for range rapid.IntRange(1, 400).Draw(t, "slots") {
			name := rapid.Uint32Min(1).Draw(t, "name")
			units := rapid.Uint32Range(1, 1<<28).Draw(t, "units")
			count++
			length += uint64(units / lengthStep)
			top = nextUsed(top, name, units)
			require.EqualValues(t, name, top&nameMask)
			require.Equal(t, min(count, mostCount), top>>countShift&mostCount)
			require.Equal(t, min(length, mostLength), top>>lengthShift)
			require.Equal(t, count >= PileSlots || length*lengthStep >= PileUnits, c.isPile(top))
		}
	})
}

// Slots that other streams use stay in their list until they are a pile or all are requested; they hide no free slot.
func TestUsedSlotsWaitForAPile(t *testing.T) {
	c, o, _ := cacheOf(0)
	give := func(record bool) *Slot {
		s, word := c.Take(512)
		require.NotNil(t, s)
		if record {
			require.NoError(t, s.Record(word, 0))
		} else {
			require.NoError(t, s.Announce(word, Detached))
		}
		require.NoError(t, s.Free(word))
		return s
	}
	assert.False(t, o.HasUsed())
	assert.False(t, o.HasFreed())
	other := give(false)
	assert.False(t, o.HasUsed(), "nobody uses it")
	assert.True(t, o.HasFreed())
	used := give(true)
	require.Same(t, other, o.Freed())
	assert.False(t, o.HasFreed())
	assert.Nil(t, o.Used(true))
	assert.True(t, o.HasUsed(), "it is left")
	number, ok := used.User()
	assert.Zero(t, number)
	assert.True(t, ok)
	c.used.Store(nextUsed(c.used.Load(), used.name(), PileUnits))
	assert.Same(t, used, o.Used(true))
	assert.False(t, o.HasUsed())
	o.SetPile(2 * PileUnits)
	assert.False(t, c.isPile(nextUsed(0, 1, PileUnits)), "the owner allows more")
	assert.True(t, c.isPile(nextUsed(0, 1, 2*PileUnits)))
}

// A handle that is found in the word while its move has not ended is not settled before the holder is there.
func TestAMoveIsSettledWhenItsHolderStands(t *testing.T) {
	c, _, _ := cacheOf(0)
	s, first := c.Take(512)
	require.NotNil(t, s)
	assert.True(t, s.Settled(first))
	var there line.Line
	there.Init(nil)
	second, err := s.Move(first, &there, 0, nil)
	require.NoError(t, err)
	assert.True(t, s.Settled(second))

	to, ok := nextMove(s.word.Load(), second) // the first half of a move
	require.True(t, ok)
	s.word.Store(to)
	assert.False(t, s.Settled(s.Word()))
	require.True(t, s.Live(s.Word()))
}
