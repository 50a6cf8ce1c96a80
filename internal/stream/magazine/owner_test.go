package magazine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// last is the class whose spans have four slots: 64 KiB blocks.
const last = sizeclass.Count - 1

// takeAll takes every free slot of a magazine.
func takeAll(m *Span) (taken []*Slot) {
	for s := m.Take(); s != nil; s = m.Take() {
		taken = append(taken, s)
	}
	return taken
}

// freeAll frees live slots as their owners would.
func freeAll(t *testing.T, slots ...*Slot) {
	t.Helper()
	for _, s := range slots {
		require.NoError(t, s.Free(s.Word()))
	}
}

// A new span has the slots that fit it, one block after the other, all free, and is in no bucket.
func TestSpanOfEveryClass(t *testing.T) {
	for class := range sizeclass.Count {
		o := NewOwner(new(Cache), nil)
		m := o.Spans.New(class, 5, 0x40000)
		count := int(sizeclass.SpanBlocks(class))
		assert.Equal(t, uint64(1)<<count-1, m.mask.Load(), "class %d", class)
		assert.Equal(t, slotBits&^m.mask.Load(), m.homes)
		assert.Equal(t, count, m.FreeSlots())
		assert.Equal(t, sizeclass.BlockUnits(class), m.Units())
		assert.True(t, m.Open)
		assert.False(t, m.Loose())
		assert.EqualValues(t, 5, m.Block)
		assert.EqualValues(t, class, m.Class)
		assert.False(t, m.IsInstalled())
		assert.Nil(t, o.Spans.At(class, 0))
		for i, s := range takeAll(m) {
			assert.Equal(t, cudadrv.Ptr(0x40000+i*int(m.Units())*512), s.Address())
			assert.Same(t, m, s.Magazine().Span())
		}
		assert.Equal(t, count, m.LiveSlots())
		assert.Zero(t, m.FreeSlots())
	}
}

// An exhausted magazine is parked and leaves its bucket; the first free hands it over, later ones do not;
// Ready puts it to use again.
func TestParkAndReady(t *testing.T) {
	c, o, m := cacheOf(last)
	held := takeAll(m)
	require.Len(t, held, 4)
	require.True(t, o.Spans.Park(m))
	assert.False(t, o.Spans.Park(m), "parked before")
	assert.Equal(t, parkedBit, m.mask.Load())
	assert.Nil(t, o.Spans.At(last, 0))
	assert.Nil(t, o.Spans.Ready(last), "nothing was freed")
	assert.False(t, o.HasParked())

	freeAll(t, held[2])
	assert.True(t, o.HasParked())
	assert.Same(t, m, c.parked.Load().Span())
	freeAll(t, held[0])
	assert.Nil(t, m.next, "handed over once")
	assert.Equal(t, parkedBit|5, m.mask.Load())
	assert.Equal(t, 2, m.FreeSlots())
	assert.Equal(t, 2, m.LiveSlots())
	assert.Nil(t, m.Take(), "out of use")

	require.Same(t, m, o.Spans.Ready(last))
	assert.False(t, o.HasParked())
	assert.EqualValues(t, 5, m.mask.Load())
	assert.Nil(t, o.Spans.Ready(last))
	assert.Nil(t, c.parked.Load())
	assert.Nil(t, o.Spans.At(last, 0), "not installed")
	assert.Same(t, held[0], m.Take())
}

// A magazine into which a slot was just freed cannot be parked and stays where it is.
func TestParkFailsAfterAFree(t *testing.T) {
	_, o, m := cacheOf(last)
	held := takeAll(m)
	freeAll(t, held[3])
	assert.False(t, o.Spans.Park(m))
	assert.EqualValues(t, 8, m.mask.Load())
	assert.Same(t, m, o.Spans.At(last, 0))
}

// Ready gives the magazine that was handed over last, and each once, also when others in between were closed.
func TestReadyGivesTheNewestFirst(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	parkedOf := func() (*Span, []*Slot) {
		m := o.Spans.New(last, 0, 0)
		held := takeAll(m)
		require.True(t, o.Spans.Park(m))
		return m, held
	}
	a, inA := parkedOf()
	b, inB := parkedOf()
	d, inD := parkedOf()
	e, inE := parkedOf()
	for _, held := range [][]*Slot{inA, inB, inD, inE} {
		freeAll(t, held...)
		assert.Nil(t, o.Spans.Ready(0), "of another class")
	}
	assert.True(t, o.Spans.CloseIdle(b), "in the middle")
	assert.True(t, o.Spans.CloseIdle(e), "the newest")
	assert.Same(t, d, o.Spans.Ready(last))
	assert.Same(t, a, o.Spans.Ready(last))
	assert.Nil(t, o.Spans.Ready(last))
}

// CloseIdle closes an unused magazine, and New reuses it, with its generations.
func TestCloseIdleAndSpanAnew(t *testing.T) {
	_, o, m := cacheOf(last)
	s := m.Take()
	assert.False(t, o.Spans.CloseIdle(m), "a slot is in use")
	assert.True(t, m.Open)
	assert.Same(t, m, o.Spans.At(last, 0))
	freeAll(t, s)
	require.True(t, o.Spans.CloseIdle(m))
	assert.False(t, o.Spans.CloseIdle(m), "closed before")
	assert.Equal(t, closedBit, m.mask.Load())
	assert.False(t, m.Open)
	assert.True(t, m.WholeHome())
	assert.Nil(t, o.Spans.At(last, 0))
	assert.Zero(t, m.LiveSlots())
	assert.Zero(t, m.FreeSlots())

	assert.EqualValues(t, 7, o.Spans.Retire(m))
	assert.Equal(t, none, m.Block)
	require.Same(t, m, o.Spans.New(last, 9, 0x80000))
	assert.NotSame(t, m, o.Spans.New(last, 10, 0x90000), "there is no other spare")
	assert.Same(t, s, m.Take())
	assert.EqualValues(t, 0x80000, s.Address())
	assert.EqualValues(t, generationStep, s.Word())
}

// A magazine that was parked and is whole again is closed once the owner has been handed it, not while a
// caller is yet to bring it.
func TestCloseIdleWaitsForTheHandOver(t *testing.T) {
	c, o, m := cacheOf(last)
	held := takeAll(m)
	require.True(t, o.Spans.Park(m))
	freeAll(t, held...)
	c.parked.Store(nil) // as before the push
	assert.False(t, o.Spans.CloseIdle(m))
	assert.Equal(t, parkedBit|15, m.mask.Load())
	c.parked.Store(&m.Magazine)
	assert.True(t, o.Spans.CloseIdle(m))
	assert.Nil(t, o.Spans.Ready(last))
}

// A caller that looked a magazine up and was stopped may take its slots the moment it is in use again, of
// the same span or of a new one, before the owner does.
func TestCallersOfBeforeTakeFirst(t *testing.T) {
	_, o, m := cacheOf(last)
	held := takeAll(m)
	require.True(t, o.Spans.Park(m))
	freeAll(t, held[0])
	require.Same(t, m, o.Spans.Ready(last))
	assert.Same(t, held[0], m.Take(), "by a caller")
	assert.Nil(t, m.Take())
	require.True(t, o.Spans.Park(m))

	freeAll(t, held...)
	require.True(t, o.Spans.CloseIdle(m))
	o.Spans.Retire(m)
	require.Same(t, m, o.Spans.New(last, 8, 0x80000))
	for range held {
		assert.NotNil(t, m.Take(), "by a caller")
	}
	assert.Nil(t, m.Take())
}

// A slot that the owner announced on after its free is collected without flags.
func TestSlotIsHomeWithoutFlagsOfAnother(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	m := o.Exacts.Of(300)
	o.Exacts.Reopen(m)
	s := o.Exacts.Assign(m)
	o.Exacts.Close(m, func(*Slot) {})
	freeAll(t, s)
	require.NoError(t, s.Announce(s.Word(), Detached))
	require.Same(t, s, o.Freed())
	assert.Zero(t, s.Flags())
	o.Collect(s)
	assert.Equal(t, s.Word(), s.word.Load(), "through the list")

	o.Exacts.Reopen(m)
	freeAll(t, o.Exacts.Assign(m))
	require.NoError(t, s.Announce(s.Word(), Detached))
	o.Exacts.Close(m, func(*Slot) {})
	assert.Equal(t, s.Word(), s.word.Load(), "through the mask")
}

// A slot collected with flags into a parked magazine makes it ready, once.
func TestFlaggedSlotComesHomeIntoAParkedMagazine(t *testing.T) {
	c, o, m := cacheOf(last)
	held := takeAll(m)
	for _, s := range held[:2] {
		require.NoError(t, s.Announce(s.Word(), Announced))
	}
	require.True(t, o.Spans.Park(m))
	freeAll(t, held[:2]...)
	eachFreed(o, func(s *Slot) { assert.False(t, o.Collect(s)) })
	assert.Nil(t, c.parked.Load())
	assert.Equal(t, parkedBit|3, m.mask.Load())
	freeAll(t, held[2:]...)
	assert.Nil(t, c.parked.Load(), "the owner has it already")
	require.True(t, o.Spans.CloseIdle(m))
	assert.Nil(t, o.Spans.Ready(last))
}

// A closed span is free when its last slot is collected.
func TestCloseOfASpan(t *testing.T) {
	_, o, m := cacheOf(last)
	held := takeAll(m)
	freeAll(t, held[1], held[3])
	o.Spans.Close(m)
	assert.Zero(t, m.homes>>held[0].index&1|m.homes>>held[2].index&1)
	assert.NotZero(t, m.homes>>held[1].index&m.homes>>held[3].index&1)
	assert.False(t, m.Open)
	assert.False(t, m.WholeHome())
	assert.Equal(t, 2, m.LiveSlots())
	assert.Nil(t, m.Take())
	assert.Nil(t, o.Spans.At(last, 0))
	o.Spans.Close(m)

	freeAll(t, held[0])
	assert.Equal(t, closedBit|1, m.mask.Load(), "the bit means nothing")
	assert.Zero(t, m.FreeSlots())
	require.Same(t, held[0], o.Freed())
	assert.False(t, o.Collect(held[0]))
	assert.Equal(t, 1, m.LiveSlots())
	freeAll(t, held[2])
	require.Same(t, held[2], o.Freed())
	assert.True(t, o.Collect(held[2]), "the last")
	assert.EqualValues(t, 7, o.Spans.Retire(m))
	assert.Nil(t, o.Freed())
}

// An idle magazine is found wherever it is, and one with a slot in use nowhere.
func TestIdleFindsEveryIdleMagazine(t *testing.T) {
	c, o, installed := cacheOf(last)
	o.Spans.Install(installed, 0)
	shelved, handed, used := o.Spans.New(last, 1, 0), o.Spans.New(last, 2, 0), o.Spans.New(last, 3, 0)
	o.Spans.Shelve(shelved)
	back, kept := takeAll(handed), takeAll(used)
	require.True(t, o.Spans.Park(handed))
	require.True(t, o.Spans.Park(used))
	assert.Equal(t, []*Span{installed, shelved}, o.Spans.Idle())
	freeAll(t, back...)
	freeAll(t, kept[1:]...)
	assert.Equal(t, []*Span{installed, shelved, handed}, o.Spans.Idle())
	slot, _ := c.Take(int64(installed.units) << sizeclass.UnitShift)
	require.NotNil(t, slot)
	assert.Equal(t, []*Span{shelved, handed}, o.Spans.Idle())
	for _, m := range o.Spans.Idle() {
		assert.True(t, o.Spans.CloseIdle(m))
	}
	assert.Empty(t, o.Spans.Idle())
}

// A ready magazine that is closed is ready no more, and one that was handed over before it was closed never
// will be.
func TestCloseOfAReadyMagazine(t *testing.T) {
	_, o, m := cacheOf(last)
	other := o.Spans.New(last, 8, 0)
	inOther := takeAll(other)
	require.True(t, o.Spans.Park(other))
	held := takeAll(m)
	require.True(t, o.Spans.Park(m))
	freeAll(t, held...)
	o.CollectParked()
	require.True(t, m.ready)
	o.Spans.Close(m)
	assert.True(t, m.WholeHome())
	freeAll(t, inOther[0])
	o.Spans.Close(other)
	assert.Nil(t, o.Spans.Ready(last))
}

// A magazine of a length is closed until it is opened, and then has the slots that were assigned.
func TestExactAssignClose(t *testing.T) {
	c := new(Cache)
	o := NewOwner(c, nil)
	m := o.Exacts.Of(300)
	assert.Same(t, m, o.Exacts.Of(300))
	assert.NotSame(t, m, o.Exacts.Of(301))
	assert.Equal(t, closedBit, m.mask.Load())
	assert.False(t, m.Open)
	assert.True(t, m.WholeHome())
	assert.EqualValues(t, 300, m.Units())
	assert.Nil(t, m.Span())

	o.Exacts.Reopen(m)
	o.Exacts.Install(m, 0)
	a, b := o.Exacts.Assign(m), o.Exacts.Assign(m)
	assert.Same(t, &m.slots[0], a)
	assert.Same(t, &m.slots[1], b)
	assert.Equal(t, 2, m.Attached())
	assert.True(t, m.Kept(a))
	assert.Equal(t, slotBits&^3, m.homes)
	assert.Equal(t, 2, m.LiveSlots())
	assert.Zero(t, m.FreeSlots())
	freeAll(t, a)
	assert.Equal(t, 1, m.FreeSlots())
	assert.Equal(t, 1, m.LiveSlots())
	assert.Equal(t, 2, m.Attached(), "it stays")
	d := o.Exacts.Assign(m)
	require.NoError(t, d.Announce(d.Word(), Detached))
	freeAll(t, d)
	require.Same(t, d, o.Freed())
	assert.True(t, m.Kept(d))
	assert.False(t, o.Collect(d))
	assert.Equal(t, 2, m.Attached(), "it does not")
	assert.Equal(t, slotBits&^3, m.homes)

	o.Exacts.Close(m, func(s *Slot) { assert.Same(t, a, s) })
	assert.Zero(t, m.Attached())
	assert.Equal(t, slotBits&^2, m.homes)
	assert.Nil(t, o.Exacts.At(BucketOf(300), 0))
	freeAll(t, b)
	require.Same(t, b, o.Freed())
	assert.False(t, o.Collect(b), "it has no span")
	assert.True(t, m.WholeHome())
}

// Assign gives each slot once.
func TestAssignEndsWithTheSlots(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	m := o.Exacts.Of(300)
	o.Exacts.Reopen(m)
	for i := range m.slots {
		assert.Same(t, &m.slots[i], o.Exacts.Assign(m))
	}
	assert.Nil(t, o.Exacts.Assign(m))
	assert.Equal(t, SlotCount, m.Attached())
	assert.Equal(t, SlotCount, m.LiveSlots())
}

// If a magazine is reopened while earlier slots are live, those stay out until freed, whether they were freed into the
// closed magazine and are in the list, or are freed into the open one.
func TestReopenWithSlotsStillLive(t *testing.T) {
	c := new(Cache)
	o := NewOwner(c, nil)
	m := o.Exacts.Of(300)
	o.Exacts.Reopen(m)
	a, b, d := o.Exacts.Assign(m), o.Exacts.Assign(m), o.Exacts.Assign(m)
	o.Exacts.Close(m, func(*Slot) { t.Error("all were live") })
	freeAll(t, a)
	assert.Equal(t, closedBit|1, m.mask.Load())

	o.Exacts.Reopen(m)
	assert.Zero(t, m.mask.Load(), "the slot in the list is not free")
	assert.Nil(t, m.Take())
	fresh := o.Exacts.Assign(m)
	assert.Same(t, &m.slots[3], fresh)
	freeAll(t, b)
	assert.EqualValues(t, 2, m.mask.Load())
	assert.False(t, m.Kept(b), "it was attached before the close")
	assert.Same(t, b, m.Take())

	require.Same(t, a, o.Freed())
	o.Collect(a)
	assert.Same(t, a, o.Exacts.Assign(m), "home, it may be assigned")
	assert.Equal(t, 4, m.LiveSlots())
	freeAll(t, a, b, d, fresh)
	assert.EqualValues(t, 15, m.mask.Load())
	count := 0
	o.Exacts.Close(m, func(*Slot) { count++ })
	assert.Equal(t, 4, count)
	assert.True(t, m.WholeHome())
}

// Loose slots are used one by one, come back through the list and are used again.
func TestLooseSlots(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	seen := map[*Slot]bool{}
	for i := range int32(SlotCount + 1) {
		s := o.Loose.Take()
		require.False(t, seen[s])
		seen[s] = true
		assert.True(t, s.Magazine().Loose())
		assert.Zero(t, s.Magazine().Units())
		s.Block = i
	}
	magazines, liveSlots := 0, 0
	o.All(func(m *Magazine) {
		magazines++
		liveSlots += m.LiveSlots()
		assert.Nil(t, m.Take())
		assert.Zero(t, m.FreeSlots())
	})
	assert.Equal(t, 2, magazines)
	assert.Equal(t, SlotCount+1, liveSlots)
	for s := range seen {
		freeAll(t, s)
	}
	assert.GreaterOrEqual(t, cap(o.Loose.unused), 2*SlotCount, "what comes home allocates nothing")
	for s := o.Freed(); s != nil; {
		next := o.Next(s)
		s.Block = none
		assert.False(t, o.Collect(s))
		s = next
	}
	o.All(func(m *Magazine) { assert.Zero(t, m.LiveSlots()) })
	for range 2*SlotCount + 5 {
		o.Loose.Take()
	}
	magazines = 0
	o.All(func(*Magazine) { magazines++ })
	assert.Equal(t, 3, magazines)
}

// Uninstall takes out the magazine that is meant and no other.
func TestUninstallLeavesOthersInPlace(t *testing.T) {
	_, o, m := cacheOf(last)
	other := o.Spans.New(last, 8, 0)
	o.Spans.Install(other, 0)
	o.Spans.Uninstall(m)
	assert.False(t, m.IsInstalled())
	assert.Same(t, other, o.Spans.At(last, 0))
	o.Spans.Uninstall(m)
	assert.Same(t, other, o.Spans.At(last, 0))
}

// In a sharded bucket a magazine leaves only its own place, and comes back to it.
func TestAShardIsLeftAndComeBackTo(t *testing.T) {
	t.Parallel()
	_, o, m := cacheOf(last)
	m.contended.Store(contendedLimit)
	require.True(t, o.Spans.Shard(m, 3))
	first, second := o.Spans.New(last, 8, 0), o.Spans.New(last, 9, 0)
	o.Spans.Install(first, 5)
	o.Spans.Install(second, 5) // takes the place
	o.Spans.Uninstall(first)
	assert.Same(t, second, o.Spans.At(last, 5))
	assert.Same(t, m, o.Spans.At(last, 3))
	o.Spans.Uninstall(second)
	assert.Nil(t, o.Spans.At(last, 5))
	o.Spans.Reinstall(first)
	assert.Same(t, first, o.Spans.At(last, 5))
	assert.Same(t, m, o.Spans.At(last, 3))
	assert.Nil(t, o.Spans.At(last, 0))
}

// The remainder of a span has no slot.
func TestEachOffsetOfASpanHasItsSlot(t *testing.T) {
	t.Parallel()
	for class := range sizeclass.Count {
		_, _, m := cacheOf(class)
		units := sizeclass.BlockUnits(class)
		for at := range sizeclass.SpanUnits(class) {
			var want *Slot
			if i := at / units; i < sizeclass.SpanBlocks(class) {
				want = m.At(int(i))
			}
			require.Same(t, want, m.Carved(at), "class %d, offset %d", class, at)
		}
	}
}

// A handle that no caller has seen can be ended, unless it has flags; nothing is taken back from a cache that has ended.
func TestRetractAndEnd(t *testing.T) {
	t.Parallel()
	c, o, _ := cacheOf(0)
	s, handle := c.Take(512)
	require.NoError(t, s.Announce(handle, Watched))
	assert.False(t, o.Retract(s))
	assert.True(t, s.Live(handle))
	require.NoError(t, s.Free(handle))
	s, handle = c.Take(512)
	assert.True(t, o.Retract(s))
	assert.False(t, s.Live(handle))
	assert.True(t, s.FreedSince(handle))

	for _, end := range []func(*Owner){(*Owner).Drain, (*Owner).End} {
		c, o, _ := cacheOf(0)
		o.LetTakeBack(1)
		h := lend(o, 1)
		require.NoError(t, h.Free(h.word))
		end(o)
		back, _ := c.TakeBack(512)
		assert.Nil(t, back)
	}
}

// Magazines of too many lengths are dropped when closed and all slots are returned; their frees stay counted;
// those in use stay.
func TestBoundExactForgetsWhatIsHome(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	isOpen := o.Exacts.Of(1)
	o.Exacts.Reopen(isOpen)
	out := o.Exacts.Of(2)
	o.Exacts.Reopen(out)
	s := o.Exacts.Assign(out)
	o.Exacts.Close(out, func(*Slot) {})
	span := o.Spans.New(0, 0, 0)
	freeAll(t, span.Take())
	l := o.Loose.Take()
	for units := uint32(3); units <= exactLimit; units++ {
		m := o.Exacts.Of(units)
		o.Exacts.Reopen(m)
		freeAll(t, o.Exacts.Assign(m))
		o.Exacts.Close(m, func(*Slot) {})
	}
	require.Len(t, o.Exacts.byUnits, exactLimit)
	assert.Zero(t, o.carried)

	m := o.Exacts.Of(exactLimit + 1)
	assert.Len(t, o.Exacts.byUnits, 3)
	var carried uint64
	for _, n := range o.carried {
		carried += n
	}
	assert.EqualValues(t, exactLimit-2, carried)
	assert.Same(t, isOpen, o.Exacts.Of(1))
	assert.Same(t, out, o.Exacts.Of(2))
	assert.Same(t, m, o.Exacts.Of(exactLimit+1))
	var kept []*Magazine
	o.All(func(m *Magazine) { kept = append(kept, m) })
	assert.Equal(t, []*Magazine{&isOpen.Magazine, &out.Magazine, &span.Magazine, l.Magazine(), &m.Magazine}, kept)
	assert.Equal(t, 1, out.LiveSlots())
	freeAll(t, s)
	assert.EqualValues(t, 1, out.Frees())
}

// Each visits all slots, EachLive those that callers have.
func TestEachAndEachLive(t *testing.T) {
	_, _, m := cacheOf(last)
	held := takeAll(m)
	freeAll(t, held[0], held[2])
	var seen []*Slot
	m.EachLive(func(s *Slot) { seen = append(seen, s) })
	assert.Equal(t, []*Slot{held[1], held[3]}, seen)
	count := 0
	m.Each(func(*Slot) { count++ })
	assert.Equal(t, SlotCount, count)
	assert.EqualValues(t, 2, m.Frees())
}

// Loose slots are used up before there are more of them, each once, and the table of magazines grows only by doubling.
func TestLooseSlotsAreUsedUp(t *testing.T) {
	t.Parallel()
	c := new(Cache)
	o := NewOwner(c, nil)
	const magazines = 70
	taken := map[*Slot]bool{}
	tables := map[any]bool{}
	for n := range magazines * SlotCount {
		s := o.Loose.Take()
		require.False(t, taken[s])
		taken[s] = true
		require.Len(t, o.all, n/SlotCount+1)
		tables[c.magazines.Load()] = true
	}
	assert.LessOrEqual(t, len(tables), 4, "16, 32, 64 and 128 or fewer")
}

// Idle finds each open magazine of which no slot is in use, installed in a bucket of any kind or ready.
func TestIdleFindsUnusedMagazines(t *testing.T) {
	t.Parallel()
	for name, sharded := range map[string]bool{"one place": false, "a place for each shard": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, o, m := cacheOf(last)
			if sharded {
				m.contended.Store(contendedLimit)
				require.True(t, o.Spans.Shard(m, 3))
			}
			assert.Equal(t, []*Span{m}, o.Spans.Idle())
			s := m.Take()
			assert.Empty(t, o.Spans.Idle())
			freeAll(t, s)
			assert.Equal(t, []*Span{m}, o.Spans.Idle())
			freeAll(t, takeAll(m)[:3]...)
			assert.Empty(t, o.Spans.Idle())
		})
	}
}

// A slot that was collected has no flag, whichever flags its block was freed with: its next handle begins without.
func TestACollectedSlotHasNoFlag(t *testing.T) {
	t.Parallel()
	for _, flags := range []Flag{Announced, Detached, Announced | Detached} {
		c, o, _ := cacheOf(0)
		s, word := c.Take(512)
		require.NoError(t, s.Announce(word, flags))
		require.NoError(t, s.Free(word))
		eachFreed(o, func(s *Slot) { o.Collect(s) })
		assert.Zero(t, s.Word()&flagMask)
		assert.Zero(t, s.Flags())
	}
}

// Numbers of dropped magazines are used again: there are never more numbers than there were magazines at one time.
func TestNumbersAreUsedAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := register{home: new(Home)}
		most := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(*rapid.T) {
				m := new(layout)
				r.add(&m.Magazine, exactKind, 1, nil)
				most = max(most, len(r.all))
			},
			"drop": func(t *rapid.T) {
				if len(r.all) > 0 {
					gone := r.all[rapid.IntRange(0, len(r.all)-1).Draw(t, "which")]
					r.keep(func(m *Magazine) bool { return m != gone })
				}
			},
			"": func(t *rapid.T) {
				seen := map[uint32]bool{}
				for _, m := range r.all {
					require.False(t, seen[m.number])
					seen[m.number] = true
					require.Same(t, m, (*r.home.magazines.Load())[m.number].Load())
				}
				require.Equal(t, most, r.count)
			},
		})
	})
}
