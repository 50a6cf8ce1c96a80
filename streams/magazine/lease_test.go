package magazine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
)

// Behind two frees of one handle that raced a slot has a bit that means nothing. The owner that looks at it may have read the word
// before the lane handed the slot out again: what is announced for the live handle is not taken for a use of the freed one.
func TestALiveHandleKeepsItsUsesBesideASort(t *testing.T) {
	d := newLandlord(t)
	var kept []int
	d.owner.Keep = func(s *Slot) bool {
		s.TakeUses(func(number int) { kept = append(kept, number) }, nil)
		return true
	}
	l := d.lane(1 << 20)
	h := d.alloc(l, 1000)
	require.Equal(t, Kept, d.free(l, h))
	s := h.Slot
	require.NoError(t, s.magazine.putSlow(s, s.magazine.mask.Or(1<<s.index))) // by the free that raced
	w := s.word.Load()
	require.True(t, isBack(w, s.aside.Load()))

	again := d.alloc(l, 1000) // while the owner is about to look at the flags
	require.Equal(t, s, again.Slot)
	require.NoError(t, s.Record(again.word, 3))
	d.owner.kept(s, w)
	assert.Empty(t, kept)
	assert.NotZero(t, s.word.Load()&uint64(Announced))

	require.NoError(t, s.Free(again.word))
	d.owner.SortLeased()
	assert.Equal(t, []int{3}, kept)
}

// A slot that is kept when a free that raced gave it to its lane, too, comes back from its fence without the flags of the handle that
// lives by then.
func TestAReturnLeavesTheFlagsOfALaterHandle(t *testing.T) {
	d := newLandlord(t)
	keeps := 0
	d.owner.Keep = func(*Slot) bool { keeps++; return true }
	l := d.lane(1 << 20)
	h := d.alloc(l, 1000)
	s := h.Slot
	require.NoError(t, s.Record(h.word, 3))
	require.NoError(t, s.Free(h.word))
	d.owner.SortLeased()
	require.Equal(t, 1, keeps)
	assert.Zero(t, s.word.Load()&flagMask, "they are the owner's")

	storePlain(&s.aside, s.word.Load()) // the lane, which has the slot as well, hands it out
	later := s.word.Load()
	require.NoError(t, s.Record(later, 5))
	d.owner.ReturnLeased(s)
	assert.NotZero(t, s.word.Load()&uint64(Announced))
	require.NoError(t, s.Free(later))
	d.owner.SortLeased()
	assert.Equal(t, 2, keeps)
}

// Who finds a handle in the word while its move is under way waits until the holder stands.
func TestAMoveIsSettledWhenItsHolderStands(t *testing.T) {
	d := newLandlord(t)
	s := d.alloc(d.lane(1<<20), 1000).Slot
	first := s.Word()
	assert.True(t, s.Settled(first))
	var there line.Line
	there.Init(nil)
	second, err := s.Move(first, &there, 0)
	require.NoError(t, err)
	assert.True(t, s.Settled(second))

	to, ok := nextMove(s.word.Load(), second) // the first half of a move
	require.True(t, ok)
	s.word.Store(to)
	assert.False(t, s.Settled(s.Word()))
	require.True(t, s.Live(s.Word()))
}
