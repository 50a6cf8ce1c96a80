package magazine

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
)

// tenant is a part with one leased magazine, all of whose slots have a block, and their lane.
type tenant struct {
	Magazine
	_ [BooksBytes]byte
	_ [SlotCount]Slot

	owner   *Owner
	arrived bool // the magazine was handed over
}

func newTenant() *tenant {
	n := &tenant{owner: NewOwner(new(Cache), wakes(func() {}))}
	n.owner.Lease(&n.Magazine, n)
	n.Each(func(s *Slot) { (*Leased)(s).Forget() })
	return n
}

// SlotHome implements Part.
func (n *tenant) SlotHome(*Slot) bool { return false }

// MagazineHome implements Part.
func (n *tenant) MagazineHome(*Magazine) { n.arrived = true }

// LiveMask implements Part.
func (n *tenant) LiveMask(*Magazine) uint64 { return n.OutMask(slotBits) }

// alloc hands a slot out as the lane does.
func (n *tenant) alloc(i int) handle {
	s := n.At(i)
	return handle{s, (*Leased)(s).HandOut()}
}

func (n *tenant) sift() {
	n.owner.CollectParked()
	n.owner.Sift(&n.Magazine, slotBits)
}

// What others freed of a leased magazine comes home once, and hands the magazine over once.
func TestLeasedSlotsComeHome(t *testing.T) {
	n := newTenant()
	a, b := n.alloc(3), n.alloc(5)
	assert.Equal(t, 2, n.LiveSlots())
	require.NoError(t, a.Free(a.word))
	require.NoError(t, b.Free(b.word))
	n.owner.CollectParked()
	require.True(t, n.arrived)
	assert.Equal(t, []int{3, 5}, bitsOf(n.owner.CameHome(&n.Magazine, slotBits)))
	assert.Zero(t, n.owner.CameHome(&n.Magazine, slotBits))
	assert.Zero(t, n.LiveSlots())
	assert.Equal(t, ErrDoubleFree, a.Free(a.word))
}

func bitsOf(mask uint64) (set []int) {
	for ; mask != 0; mask &= mask - 1 {
		set = append(set, bits.TrailingZeros64(mask))
	}
	return set
}

// Behind two frees of one handle that raced a slot has a bit that means nothing. The owner that looks at it may have read the word
// before the lane handed the slot out again: what is announced for the live handle is not taken for a use of the freed one.
func TestALiveHandleKeepsItsUsesBesideASort(t *testing.T) {
	n := newTenant()
	var kept []int
	n.owner.KeepLeased(func(s *Slot) bool {
		s.TakeUses(func(number int) { kept = append(kept, number) }, nil)
		return true
	})
	h := n.alloc(0)
	s := (*Leased)(h.Slot)
	s.End(h.word)
	require.NoError(t, n.putSlow(h.Slot, n.mask.Or(1))) // by the free that raced
	w, ok := s.isBack()
	require.True(t, ok)

	again := n.alloc(0) // while the owner is about to look at the flags
	require.NoError(t, again.Record(again.word, 3))
	n.owner.keeps(s, w)
	assert.Empty(t, kept)
	assert.NotZero(t, s.word.Load()&uint64(Announced))

	require.NoError(t, again.Free(again.word))
	n.sift()
	assert.Equal(t, []int{3}, kept)
}

// A slot that is kept when a free that raced gave it to its lane, too, comes back from its fence without the flags of the handle that
// lives by then.
func TestAReturnLeavesTheFlagsOfALaterHandle(t *testing.T) {
	n := newTenant()
	keeps := 0
	n.owner.KeepLeased(func(*Slot) bool { keeps++; return true })
	h := n.alloc(0)
	require.NoError(t, h.Record(h.word, 3))
	require.NoError(t, h.Free(h.word))
	n.sift()
	require.Equal(t, 1, keeps)
	assert.Zero(t, h.Slot.word.Load()&flagMask, "they are the owner's")

	later := n.alloc(0) // by the lane, which has the slot as well
	require.NoError(t, later.Record(later.word, 5))
	(*Leased)(later.Slot).Return()
	assert.NotZero(t, later.Slot.word.Load()&uint64(Announced))
	require.NoError(t, later.Free(later.word))
	n.sift()
	assert.Equal(t, 2, keeps)
}

// A handle that is found in the word while its move is under way is not settled before the holder is there.
func TestAMoveIsSettledWhenItsHolderStands(t *testing.T) {
	s := newTenant().alloc(0).Slot
	first := s.Word()
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

// The owner is asked about the slots of a lane that were announced, and about no others; what it does not keep is the lane's.
func TestTheOwnerIsAskedAboutAnnouncedSlotsOfALane(t *testing.T) {
	n := newTenant()
	asked, keep := 0, false
	n.owner.KeepLeased(func(s *Slot) bool {
		assert.NotZero(t, s.Flags()&Announced)
		asked++
		return keep
	})
	home := func(f Flag) uint64 {
		h := n.alloc(0)
		require.NoError(t, h.Announce(h.word, f))
		require.NoError(t, h.Free(h.word))
		return n.owner.CameHome(&n.Magazine, slotBits)
	}
	assert.EqualValues(t, 1, home(Detached))
	assert.Zero(t, asked)
	assert.EqualValues(t, 1, home(Announced))
	assert.Equal(t, 1, asked)
	keep = true
	assert.Zero(t, home(Announced))
	assert.Equal(t, 2, asked)
}
