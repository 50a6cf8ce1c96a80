package magazine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
)

// lend hands a loose slot out with a block of that many units.
func lend(o *Owner, units uint32) handle {
	s := o.Loose.Take()
	s.Block, s.Units = 7, units
	return handle{s, s.Word()}
}

// A block that was freed last is taken back for its length, and for no other.
func TestTakeBackOfTheLength(t *testing.T) {
	var c Cache
	o := NewOwner(&c, nil)
	a, b := lend(o, 300), lend(o, 400)
	require.NoError(t, a.Free(a.word))
	s, _ := c.TakeBack(300 << sizeclass.UnitShift)
	assert.Nil(t, s, "nobody has allowed it")

	o.LetTakeBack(350)
	require.NoError(t, b.Free(b.word))
	s, _ = c.TakeBack(400 << sizeclass.UnitShift)
	assert.Nil(t, s, "too long")
	s, _ = c.TakeBack(300 << sizeclass.UnitShift)
	assert.Nil(t, s, "not on top")

	o.LetTakeBack(400)
	s, word := c.TakeBack(400<<sizeclass.UnitShift - 511)
	require.Same(t, b.Slot, s)
	assert.EqualValues(t, 7, s.Block, "its block stays")
	require.ErrorIs(t, b.Free(b.word), ErrDoubleFree)
	assert.True(t, s.Live(word))
	s, _ = c.TakeBack(301 << sizeclass.UnitShift)
	assert.Nil(t, s)
	for _, bytes := range []int64{0, -1, -300 << sizeclass.UnitShift, 1 << 62} {
		s, _ = c.TakeBack(bytes)
		assert.Nil(t, s, "%d bytes", bytes)
	}

	require.Same(t, a.Slot, o.Freed(), "the rest is the owner's")
	assert.Nil(t, o.Next(a.Slot))
	require.NoError(t, b.Free(word))
	require.ErrorIs(t, b.Free(b.word), ErrStale)
	require.Same(t, b.Slot, o.Freed())
}

// A caller preempted after loading the top may find that the owner has collected the slot and dropped its magazine.
func TestTakeBackFromAForgottenMagazine(t *testing.T) {
	var c Cache
	o := NewOwner(&c, nil)
	o.LetTakeBack(400)
	a := lend(o, 300)
	require.NoError(t, a.Free(a.word))
	top := c.freed.Load()
	require.Same(t, a.Slot, o.Freed())
	o.keep(func(m *Magazine) bool { return m != a.magazine })
	c.freed.Store(top) // the value that the caller loaded
	s, _ := c.TakeBack(300 << sizeclass.UnitShift)
	assert.Nil(t, s)
}

// TakeBack leaves the slots that the owner must collect: flagged slots, slots of a magazine that was closed, and all once
// the cache drains.
func TestTakeBackLeavesToTheOwner(t *testing.T) {
	var c Cache
	o := NewOwner(&c, wakes(func() {}))
	o.LetTakeBack(1 << 20)

	a := lend(o, 300)
	require.NoError(t, a.Announce(a.word, Announced))
	require.NoError(t, a.Free(a.word))
	s, _ := c.TakeBack(300 << sizeclass.UnitShift)
	assert.Nil(t, s, "others use it")

	m := o.Exacts.Of(500)
	o.Exacts.Reopen(m)
	b := handle{o.Exacts.Assign(m), 0}
	b.word, b.Units = b.Word(), 500
	o.Exacts.Close(m, func(*Slot) {})
	require.NoError(t, b.Free(b.word))
	s, _ = c.TakeBack(500 << sizeclass.UnitShift)
	assert.Nil(t, s, "its slot belongs to a magazine")

	d := lend(o, 600)
	require.NoError(t, d.Free(d.word))
	o.Drain()
	s, _ = c.TakeBack(600 << sizeclass.UnitShift)
	assert.Nil(t, s, "the cache drains")
}

// Who walks the list learns which slots are loose and were freed without flags, one by one or many at once.
func TestPassTellsWhatIsPlain(t *testing.T) {
	var c Cache
	o := NewOwner(&c, wakes(func() {}))
	plain, many, watched := lend(o, 300), lend(o, 350), lend(o, 400)
	m := o.Exacts.Of(500)
	o.Exacts.Reopen(m)
	kept := handle{o.Exacts.Assign(m), 0}
	kept.word, kept.Units = kept.Word(), 500
	o.Exacts.Close(m, func(*Slot) {})

	require.NoError(t, plain.Free(plain.word))
	var f Frees
	require.NoError(t, f.Free(many.Slot, many.word))
	require.NoError(t, f.Flush())
	require.NoError(t, watched.Announce(watched.word, Watched))
	require.NoError(t, watched.Free(watched.word))
	require.NoError(t, kept.Free(kept.word))

	s := o.Freed()
	for _, want := range []struct {
		slot  *Slot
		units uint32
	}{{kept.Slot, 0}, {watched.Slot, 0}, {many.Slot, 350}, {plain.Slot, 300}} {
		require.Same(t, want.slot, s)
		next, units := o.Pass(s)
		assert.Equal(t, want.units, units)
		assert.Same(t, o.Next(s), next)
		if s = next; units == 0 {
			o.Collect(want.slot)
			continue
		}
		o.Loose.Put(want.slot)
		assert.Same(t, want.slot, o.Loose.Take(), "it is home")
	}
	assert.Nil(t, s)
}

// The list is a stack whose top may be taken: frees one by one and many at once, takes back and the owner's takes, in any
// order, against a slice.
func TestListOfFreedSlotsIsAStack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cache
		o := NewOwner(&c, nil)
		o.LetTakeBack(1 << 20)
		var live, stack []handle
		pick := func() handle {
			i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
			h := live[i]
			live = append(live[:i], live[i+1:]...)
			return h
		}
		for range rapid.IntRange(1, 200).Draw(t, "operations") {
			switch rapid.IntRange(0, 5).Draw(t, "operation") {
			case 0, 1:
				live = append(live, lend(o, rapid.Uint32Range(200, 202).Draw(t, "units")))
			case 2:
				if len(live) == 0 {
					continue
				}
				h := pick()
				require.NoError(t, h.Free(h.word))
				stack = append(stack, h)
			case 3:
				var f Frees
				for range min(len(live), 3) {
					h := pick()
					require.NoError(t, f.Free(h.Slot, h.word))
					stack = append(stack, h)
				}
				require.NoError(t, f.Flush())
			case 4:
				units := rapid.Uint32Range(200, 202).Draw(t, "units")
				s, word := c.TakeBack(int64(units) << sizeclass.UnitShift)
				if n := len(stack); n == 0 || stack[n-1].Units != units {
					require.Nil(t, s)
					continue
				}
				require.Same(t, stack[len(stack)-1].Slot, s)
				stack = stack[:len(stack)-1]
				live = append(live, handle{s, word})
			default:
				s := o.Freed()
				for _, h := range slices.Backward(stack) {
					require.Same(t, h.Slot, s)
					next := o.Next(s)
					o.Collect(s)
					s = next
				}
				require.Nil(t, s)
				stack = nil
			}
		}
	})
}
