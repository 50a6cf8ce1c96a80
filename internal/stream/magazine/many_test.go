package magazine

import (
	"math/bits"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
)

// TakeMany equals as many consecutive takes, for any mask.
func TestTakingManyIsTakingOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.Uint64().Draw(t, "mask")
		if rapid.Bool().Draw(t, "open") {
			mask &= slotBits
		}
		most := rapid.IntRange(1, SlotCount+2).Draw(t, "most")
		want, taken := mask, uint64(0)
		for range most {
			next, slot, ok := nextTake(want)
			if !ok {
				break
			}
			want, taken = next, taken|1<<slot
		}
		next, got := nextTakeMany(mask, most)
		require.Equal(t, taken, got)
		if taken != 0 {
			require.Equal(t, want, next)
		}
	})
}

// Frees of several magazines, small and large and loose, in any order, equal as many single frees: in the
// slots that can be taken, that the owner gets, and that are refused.
func TestFreesGoWhereSingleFreesGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &Cache{}
		o := NewOwner(c, nil)
		var slots []*Slot
		for _, class := range []int{0, 1, 3, 5, 7, 8, 20, 32, 33, 35, 37, 39} { // some go the same way
			m := o.Spans.New(class, 1, 0)
			for taken := m.TakeMany(3); taken != 0; taken &= taken - 1 {
				slots = append(slots, m.At(bits.TrailingZeros64(taken)))
			}
			if class%5 == 0 {
				for m.Take() != nil { // exhausted: its first free hands it over
				}
				require.True(t, o.Spans.Park(m))
			}
			if class%7 == 0 {
				o.Spans.Close(m)
			}
		}
		for range 5 {
			slots = append(slots, o.Loose.Take())
		}
		var frees Frees
		freed := map[*Slot]bool{}
		for _, i := range rapid.SliceOf(rapid.IntRange(0, len(slots)-1)).Draw(t, "order") {
			s := slots[i]
			word := s.Word()
			if freed[s] {
				word -= generationStep
				require.ErrorIs(t, frees.Free(s, word), ErrDoubleFree)
				continue
			}
			require.NoError(t, frees.Free(s, word))
			freed[s] = true
		}
		require.NoError(t, frees.Flush())

		handed := map[*Slot]bool{}
		for s := o.Freed(); s != nil; s = o.Next(s) {
			require.False(t, handed[s], "handed over twice")
			handed[s] = true
		}
		parked := map[*Magazine]bool{}
		for m := c.parked.Load(); m != nil; m = m.next {
			require.False(t, parked[m])
			parked[m] = true
		}
		for s := range freed {
			m := s.Magazine()
			if m.Loose() || m.Exact() != nil && !m.Exact().Open || m.Span() != nil && !m.Span().Open {
				require.True(t, handed[s], "the owner has it")
				delete(handed, s)
				continue
			}
			require.NotZero(t, m.mask.Load()>>s.index&1, "it can be taken")
			if m.Span().Class%5 == 0 {
				require.True(t, parked[m], "the owner has the magazine")
			}
		}
		require.Empty(t, handed)
	})
}

// TakeReady finds a magazine that callers have handed over.
func TestTakeReadyFindsWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	o := NewOwner(&Cache{}, nil)
	m := o.Spans.New(5, 1, 0)
	taken := m.TakeMany(SlotCount)
	require.True(t, o.Spans.Park(m))
	none, _ := o.Spans.TakeReady(5, 1)
	require.Nil(t, none)
	s := m.At(bits.TrailingZeros64(taken))
	require.NoError(t, s.Free(s.Word()))
	found, again := o.Spans.TakeReady(5, 3)
	require.Same(t, m, found)
	assert.Equal(t, uint64(1)<<s.index, again)
	assert.Equal(t, parkedBit, m.mask.Load(), "exhausted again, and out of use")
}

// Slots of more than one cache reach their own owners.
func TestFreesOfSeveralCaches(t *testing.T) {
	t.Parallel()
	owners := []*Owner{NewOwner(&Cache{}, nil), NewOwner(&Cache{}, nil)}
	var frees Frees
	for i := range 9 {
		s := owners[i%2].Loose.Take()
		require.NoError(t, frees.Free(s, s.Word()))
	}
	require.NoError(t, frees.Flush())
	for i, o := range owners {
		n := 0
		for s := o.Freed(); s != nil; s = o.Next(s) {
			assert.Same(t, o.home, s.Magazine().home)
			n++
		}
		assert.Equal(t, 5-i, n)
	}
}

// When the memory is gone Flush returns an error; a free of a wanted cache wakes the owner.
func TestFreesOfAnEndedCache(t *testing.T) {
	t.Parallel()
	for _, loose := range []bool{false, true} {
		o := NewOwner(&Cache{}, nil)
		m := o.Spans.New(0, 1, 0)
		s := m.Take()
		if loose {
			s = o.Loose.Take()
		} else {
			o.Spans.Close(m)
		}
		o.End()
		var frees Frees
		require.NoError(t, frees.Free(s, s.Word()))
		require.ErrorIs(t, frees.Flush(), ErrClosed)
	}
	for name, end := range map[string]func(o *Owner, m *Span){
		"parked": func(o *Owner, m *Span) { require.True(t, o.Spans.Park(m)) },
		"closed": func(o *Owner, m *Span) { o.Spans.Close(m) },
	} {
		_, o, m := cacheOf(last)
		held := takeAll(m)
		end(o, m)
		o.End()
		s := held[0]
		s.Watch(s.Word(), &History{})
		require.ErrorIs(t, s.Free(s.Word()), ErrClosed, name)
		var frees Frees
		for _, s := range held[1:] {
			require.NoError(t, frees.Free(s, s.Word()))
		}
		require.ErrorIs(t, frees.Flush(), ErrClosed, name)
		require.ErrorIs(t, frees.Flush(), ErrClosed, name)
	}
}

// Goroutines that take and free several at a time never share a slot and lose none.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := &Cache{}
	o := NewOwner(c, nil)
	class := sizeclass.Of(8)
	m := o.Spans.New(class, 1, 0)
	o.Spans.Install(m, 0)
	held := make([]int32, SlotCount) // written by the holder of the slot: the race detector sees two
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for round := range 2000 {
				_, taken := c.TakeMany(8, 1+(g+round)%7)
				var frees Frees
				for left := taken; left != 0; left &= left - 1 {
					i := bits.TrailingZeros64(left)
					held[i]++
					s := m.At(i)
					assert.NoError(t, frees.Free(s, s.Word()))
				}
				assert.NoError(t, frees.Flush())
			}
		})
	}
	all.Wait()
	assert.Equal(t, SpanSlots(class), m.mask.Load())
}

// A free that wakes the owner comes after the frees before it: a turn that the wake runs would count their slots as live.
func TestAWakeSeesTheFreesBeforeIt(t *testing.T) {
	t.Parallel()
	c := &Cache{}
	var o *Owner
	var m *Span
	var inList []*Slot
	var inMask uint64
	o = NewOwner(c, wakes(func() {
		inMask = m.mask.Load() & slotBits
		for s := o.Freed(); s != nil; s = o.Next(s) {
			inList = append(inList, s)
		}
	}))
	m = o.Spans.New(0, 1, 0)
	plain, loose, used := m.Take(), o.Loose.Take(), o.Loose.Take()
	before := m.mask.Load() & slotBits
	require.NoError(t, used.Announce(used.Word(), Detached))
	o.Want(true)
	var frees Frees
	require.NoError(t, frees.Free(plain, plain.Word()))
	require.NoError(t, frees.Free(loose, loose.Word()))
	require.NoError(t, frees.Free(used, used.Word()))
	assert.Equal(t, before|1<<plain.index, inMask)
	assert.Contains(t, inList, loose)
	require.NoError(t, frees.Flush())
}
