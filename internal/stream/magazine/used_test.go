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
	places := 0
	c.SetReach(func(place string) {
		if place == useMoved {
			places++
			assert.NotEqual(t, first, s.Word())
			assert.False(t, s.Settled(s.Word()))
		}
	})
	second, err := s.Move(first, &there, 0, nil)
	require.NoError(t, err)
	assert.True(t, s.Settled(second))
	assert.Equal(t, 1, places)

	to, ok := nextMove(s.word.Load(), second) // the first half of a move
	require.True(t, ok)
	s.word.Store(to)
	assert.False(t, s.Settled(s.Word()))
	require.True(t, s.Live(s.Word()))
}

// A freed slot reports the streams that were recorded for its block, each once, for all numbers and all earlier users
// of the slot.
func TestAFreedSlotReportsItsUsers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, o, m := cacheOf(last)
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			s, handle := c.Take(64 << 10)
			require.Same(t, m.At(0), s)
			want := map[int]int{}
			for range rapid.IntRange(0, 5).Draw(t, "uses") {
				number := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(userCount-1, userCount+1), rapid.IntRange(0, line.Count-1)).Draw(t, "number")
				require.NoError(t, s.Record(handle, number))
				want[number] = 1
			}
			require.NoError(t, s.Free(handle))
			if len(want) == 0 {
				require.Zero(t, s.Flags())
				continue
			}
			require.NotZero(t, s.Flags()&Announced)
			require.Same(t, s, o.Used(false))
			number, alone := s.User()
			got := map[int]int{}
			s.TakeUses(func(number int) { got[number]++ }, func(*line.Line, uint64, bool) { require.Fail(t, "no use is listed") })
			require.Equal(t, want, got)
			if alone {
				require.Equal(t, map[int]int{number: 1}, got)
			}
			o.Collect(s)
		}
	})
}

// A freed slot has one user where one stream was recorded, whose number fits the word, as often as one likes; of any two streams
// none is the only one.
func TestOneOfTwoUsersIsNotAlone(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	for first := range line.Count {
		for second := range line.Count {
			s, handle := c.Take(512)
			require.NoError(t, s.Record(handle, first))
			require.NoError(t, s.Record(handle, second))
			require.NoError(t, s.Free(handle))
			require.Same(t, s, o.Used(false))
			number, alone := s.User()
			require.Equal(t, first == second && first < userCount, alone, "%d and %d", first, second)
			if alone {
				require.Equal(t, first, number)
			}
			s.TakeUses(func(int) {}, func(*line.Line, uint64, bool) {})
			o.Collect(s)
		}
	}
}

// A recorded use by a stream without a number lasts until the free, also where another use by that stream has ended.
func TestARecordedUseOutlastsOneThatEnds(t *testing.T) {
	t.Parallel()
	c, _, _ := cacheOf(0)
	s, handle := c.Take(512)
	var other line.Line
	other.Init(nil)
	use, err := s.Begin(handle, &other)
	require.NoError(t, err)
	require.NoError(t, s.RecordLine(handle, &other))
	require.NoError(t, use.End(7))
	require.NoError(t, s.Free(handle))
	listed := 0
	s.TakeUses(func(int) {}, func(l *line.Line, _ uint64, open bool) {
		listed++
		assert.Same(t, &other, l)
		assert.True(t, open)
	})
	assert.Equal(t, 1, listed)
}

// A begin or a move that is refused, since the block is freed while it is noted, leaves no open use: no later fence of its stream
// is waited for.
func TestARefusedUseIsNotOpen(t *testing.T) {
	t.Parallel()
	var other line.Line
	other.Init(nil)
	for name, use := range map[string]func(s *Slot, handle uint64) error{
		"begin": func(s *Slot, handle uint64) error {
			_, err := s.Begin(handle, &other)
			return err
		},
		"move": func(s *Slot, handle uint64) error {
			_, err := s.Move(handle, &other, 0, nil)
			return err
		},
	} {
		c, o, _ := cacheOf(0)
		free := func() {}
		c.SetReach(func(string) { free() })
		s, handle := c.Take(512)
		require.NoError(t, s.Record(handle, userCount), "it has a note, and goes to the owner")
		free = func() {
			free = func() {}
			require.NoError(t, s.Free(handle))
		}
		require.ErrorIs(t, use(s, handle), ErrStale, name)
		require.Same(t, s, o.Used(false))
		listed := 0
		s.TakeUses(func(int) {}, func(_ *line.Line, _ uint64, open bool) {
			listed++
			assert.False(t, open, name)
		})
		assert.Equal(t, 1, listed, name)
	}
}

// An announcement or a record that meets another one is repeated, and both take effect; one that meets the free is refused.
func TestAnAnnouncementThatMeetsAnotherIsRepeated(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	for name, announce := range map[string]func(s *Slot, w, handle uint64) error{
		"announce": func(s *Slot, w, handle uint64) error { return s.announceFrom(w, handle, Announced) },
		"record":   func(s *Slot, w, handle uint64) error { return s.recordFrom(w, handle, 3) },
	} {
		s, handle := c.Take(512)
		seen := s.word.Load()
		require.NoError(t, s.Announce(handle, Detached))
		require.NoError(t, announce(s, seen, handle))
		require.NoError(t, s.Free(handle))
		assert.Equal(t, Announced|Detached, s.Flags()&(Announced|Detached), name)
		number, alone := s.User()
		assert.Equal(t, name == "record", alone && number == 3, name)
		word := s.word.Load()
		require.ErrorIs(t, announce(s, seen, handle), ErrStale, name)
		assert.Equal(t, word, s.word.Load(), name)
		require.Same(t, s, o.Used(false))
		o.Collect(s)
	}
}

// An allocation has one value: the first call of Attach makes it. Calls for earlier handles are refused.
func TestAttachMakesOneValue(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	made := 0
	value := func() any {
		made++
		return made
	}
	s, first := c.Take(512)
	for range 2 {
		got, err := s.Attach(first, value)
		require.NoError(t, err)
		assert.Equal(t, 1, got)
		assert.Equal(t, 1, s.Attached(first))
	}
	require.NoError(t, s.Free(first))
	require.Same(t, s, o.Used(false))
	o.Collect(s)
	again, second := c.Take(512)
	require.Same(t, s, again)
	assert.Nil(t, s.Attached(second))
	for range 2 {
		got, err := s.Attach(second, value)
		require.NoError(t, err)
		assert.Equal(t, 2, got)
	}
	_, err := s.Attach(first, value)
	require.ErrorIs(t, err, ErrStale)
	assert.Equal(t, 2, made)

	// Of two that meet all get the value of one.
	require.NoError(t, s.Free(second))
	o.Collect(o.Used(false))
	_, third := c.Take(512)
	got, err := s.Attach(third, func() any {
		inner, err := s.Attach(third, value)
		require.NoError(t, err)
		assert.Equal(t, 3, inner)
		return "too late"
	})
	require.NoError(t, err)
	assert.Equal(t, 3, got)
	assert.Equal(t, 3, s.Attached(third))
}

// Frees wake the owner while memory is wanted, and no more once it is not.
func TestFreesWakeTheOwnerWhileMemoryIsWanted(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	woken := 0
	c.waker = wakes(func() { woken++ })
	for i, wanted := range []bool{false, true, true, false, true, false} {
		o.Want(wanted)
		before := woken
		s, handle := c.Take(512)
		require.NoError(t, s.Announce(handle, Detached))
		require.NoError(t, s.Free(handle))
		assert.Equal(t, wanted, woken > before, "step %d", i)
	}
}

// The zero Use is over.
func TestTheZeroUseIsOver(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, Use{}.End(1), ErrUseOver)
	require.ErrorIs(t, Use{}.Open(), ErrUseOver)
}
