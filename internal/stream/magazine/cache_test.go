package magazine

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
)

// cacheOf is a cache with a span of a class installed, and the magazine.
func cacheOf(class int) (*Cache, *Owner, *Span) {
	c := new(Cache)
	o := NewOwner(c, wakes(func() {}))
	m := o.Spans.New(class, 7, 0x10000)
	o.Spans.Install(m, 0)
	return c, o, m
}

// Buckets of classes rise with the length and are the classes; larger lengths follow.
func TestBucketsOfClassesRise(t *testing.T) {
	last := uint64(0)
	for units := uint64(1); units <= sizeclass.MaxUnits; units++ {
		b := bucketOf(units)
		assert.GreaterOrEqual(t, b, last)
		assert.EqualValues(t, sizeclass.Of(units), b)
		last = b
	}
	assert.EqualValues(t, FirstLarge-1, last)
}

// Every length beyond the classes has a bucket after the classes, always the same.
func TestBucketsOfLargeLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Uint64Range(sizeclass.MaxUnits+1, math.MaxInt64>>sizeclass.UnitShift+1).Draw(t, "units")
		b := bucketOf(units)
		assert.GreaterOrEqual(t, b, uint64(FirstLarge))
		assert.Less(t, b, uint64(bucketCount))
		assert.EqualValues(t, b, BucketOf(units))
	})
}

// Lengths that are multiples of a page spread over the buckets: typical requests do not collide
// more than by chance.
func TestLargeBucketsSpread(t *testing.T) {
	for _, step := range []uint64{1, 4, 128, 2048, 4096, 4097} {
		used := map[uint64]bool{}
		for i := range uint64(LargeBuckets / 2) {
			used[bucketOf(sizeclass.MaxUnits+1+i*step)] = true
		}
		assert.Greater(t, len(used), LargeBuckets/2*3/4, "in steps of %d units", step)
	}
}

// Sizes of 0 and less, and sizes that nothing was installed for, are left to the owner.
func TestTakeServesOnlyWhatIsInstalled(t *testing.T) {
	c, _, m := cacheOf(0)
	for _, bytes := range []int64{0, -1, -512, math.MinInt64, math.MinInt64 + 1, 513, 65536, 65537, 1 << 40, math.MaxInt64} {
		s, word := c.Take(bytes)
		assert.Nil(t, s, "%d bytes", bytes)
		assert.Zero(t, word)
	}
	assert.Equal(t, slotBits, m.mask.Load())
	for i, bytes := range []int64{1, 512} {
		s, _ := c.Take(bytes)
		assert.Same(t, &m.slots[i], s)
	}
	assert.Equal(t, slotBits&^3, m.mask.Load())
}

// The zero cache serves nothing.
func TestZeroCacheServesNothing(t *testing.T) {
	var c Cache
	for _, bytes := range []int64{math.MinInt64, 0, 1, 65536, 65537, math.MaxInt64} {
		s, _ := c.Take(bytes)
		assert.Nil(t, s)
	}
}

// Two lengths that share a bucket are told apart by their units, also where the length does not fit the
// magazine's field.
func TestTakeTellsLengthsApartThatMeetInABucket(t *testing.T) {
	const units = 1000
	c := new(Cache)
	o := NewOwner(c, nil)
	m := o.Exacts.Of(units)
	o.Exacts.Reopen(m)
	require.Same(t, &m.slots[0], o.Exacts.Assign(m))
	require.NoError(t, m.slots[0].Free(m.slots[0].Word()))
	o.Exacts.Install(m, 0)

	other := uint64(units + 1)
	for bucketOf(other) != bucketOf(units) {
		other++
	}
	wrapped := uint64(units + 1<<32)
	for ; bucketOf(wrapped) != bucketOf(units); wrapped += 1 << 32 {
		require.Less(t, wrapped, uint64(math.MaxInt64>>sizeclass.UnitShift))
	}
	for _, u := range []uint64{other, wrapped} {
		s, _ := c.Take(int64(u << sizeclass.UnitShift))
		assert.Nil(t, s, "%d units", u)
	}
	s, word := c.Take(units << sizeclass.UnitShift)
	require.Same(t, &m.slots[0], s)
	assert.EqualValues(t, generationStep, word, "freed once")
	s, _ = c.Take(units << sizeclass.UnitShift)
	assert.Nil(t, s, "exhausted")
}

// A free puts the lowest bit back and bumps the generation; a second one is a double free, also when the
// slot was handed out again; once that owner has freed it too the handle is stale.
func TestFreeAndItsRefusals(t *testing.T) {
	c, _, m := cacheOf(0)
	s, first := c.Take(100)
	require.Zero(t, first)
	assert.True(t, s.Live(first))
	require.NoError(t, s.Free(first))
	assert.False(t, s.Live(first))
	assert.Equal(t, slotBits, m.mask.Load())
	assert.EqualValues(t, generationStep, s.word.Load())
	assert.Equal(t, ErrDoubleFree, s.Free(first))

	again, second := c.Take(100)
	require.Same(t, s, again)
	assert.EqualValues(t, generationStep, second)
	assert.Equal(t, ErrDoubleFree, s.Free(first))
	assert.True(t, s.Live(second), "a double free did no harm")
	require.NoError(t, s.Free(second))
	assert.Equal(t, ErrStale, s.Free(first))
	assert.Equal(t, ErrDoubleFree, s.Free(second))
	assert.Equal(t, ErrStale, s.Announce(second, Announced))
	assert.EqualValues(t, 2*generationStep, s.word.Load())
	assert.EqualValues(t, 2, s.Frees())
	for _, err := range []error{ErrDoubleFree, ErrStale} {
		assert.ErrorIs(t, err, ErrBadFree)
		assert.NotErrorIs(t, err, ErrClosed)
	}
	assert.NotErrorIs(t, ErrStale, ErrDoubleFree)
}

// An announced handle's free goes through the list with its flags; the collected slot has none.
func TestAnnouncedFreeGoesTheSlowWay(t *testing.T) {
	c, o, m := cacheOf(0)
	s, word := c.Take(512)
	require.NoError(t, s.Announce(word, Announced))
	require.NoError(t, s.Announce(word, Detached))
	assert.True(t, s.Live(word))
	assert.Equal(t, word, s.Word())
	require.NoError(t, s.Free(word))
	assert.Equal(t, ErrDoubleFree, s.Free(word))
	assert.Equal(t, slotBits&^1, m.mask.Load(), "not in the mask")
	assert.EqualValues(t, generationStep, s.word.Load(), "whoever freed it has the flags")

	assert.Nil(t, o.Freed())
	assert.Nil(t, o.Used(true), "it is no pile")
	require.Same(t, s, o.Used(false))
	assert.Nil(t, o.Next(s))
	assert.Nil(t, o.Used(false))
	assert.Equal(t, Announced|Detached, s.Flags())
	assert.False(t, o.Collect(s))
	assert.Zero(t, s.Flags())
	assert.EqualValues(t, generationStep, s.word.Load())
	assert.Equal(t, slotBits, m.mask.Load(), "it can be taken again")
	require.NoError(t, s.Free(s.Word()))
}

// After End every free says so, whichever way it goes, and gives the block back all the same.
func TestFreeAfterEnd(t *testing.T) {
	c, o, m := cacheOf(0)
	s, word := c.Take(512)
	l := o.Loose.Take()
	flagged, flaggedWord := c.Take(512)
	require.NoError(t, flagged.Announce(flaggedWord, Announced))
	o.Drain()
	o.Spans.Close(m)
	o.End()
	o.Drain()
	require.ErrorIs(t, s.Free(word), ErrClosed)
	require.ErrorIs(t, l.Free(l.Word()), ErrClosed)
	require.ErrorIs(t, flagged.Free(flaggedWord), ErrClosed)
	assert.Equal(t, ErrDoubleFree, s.Free(word))
	again, _ := c.Take(512)
	assert.Nil(t, again)
}

// A draining cache wakes its owner for each free, and for none before.
func TestDrainingCacheWakesItsOwner(t *testing.T) {
	c := new(Cache)
	wakeCount := 0
	o := NewOwner(c, wakes(func() { wakeCount++ }))
	m := o.Spans.New(0, 0, 0)
	o.Spans.Install(m, 0)
	var held []*Slot
	for range SlotCount {
		s, _ := c.Take(1)
		held = append(held, s)
	}
	require.True(t, o.Spans.Park(m))
	require.NoError(t, held[0].Free(held[0].Word()))
	assert.Zero(t, wakeCount)
	o.Drain()
	require.NoError(t, held[1].Free(held[1].Word()))
	assert.Equal(t, 1, wakeCount, "into the mask of a parked magazine")
	o.Spans.Close(m)
	require.NoError(t, held[2].Free(held[2].Word()))
	assert.Equal(t, 2, wakeCount, "through the list")
}

// A cache that drains or has ended stays so, whatever is wanted of it before or later: every free wakes its owner, or is refused.
func TestADrainingCacheServesNoMore(t *testing.T) {
	t.Parallel()
	for _, before := range []func(o *Owner){
		func(*Owner) {}, func(o *Owner) { o.Want(true) }, func(o *Owner) { o.Alert() },
		func(o *Owner) { o.Want(true); o.Alert() },
	} {
		for _, later := range []func(o *Owner){func(*Owner) {}, func(o *Owner) { o.Want(true) }, func(o *Owner) { o.Want(false) }} {
			c := new(Cache)
			woken := 0
			o := NewOwner(c, wakes(func() { woken++ }))
			free := func() error {
				s := o.Loose.Take()
				s.Units = 300
				return s.Free(s.Word())
			}
			before(o)
			o.Drain()
			later(o)
			for n := range 3 {
				require.NoError(t, free())
				require.Equal(t, n+1, woken)
			}
			o.End()
			later(o)
			require.ErrorIs(t, free(), ErrClosed)
		}
	}
}

// Lost races end in the owner's hands: the bucket is sharded, and each hint has a place of its own.
func TestContendedTakeAsksForShards(t *testing.T) {
	c, o, m := cacheOf(0)
	assert.False(t, o.Spans.Shard(m, 3), "not contended")
	m.contended.Store(contendedLimit)
	require.True(t, o.Spans.Shard(m, 3))
	assert.False(t, o.Spans.Shard(m, 3), "sharded before")
	assert.Nil(t, c.buckets[0].magazine.Load(), "the old place names it no more")
	for hint := range Shards {
		if hint == 3 {
			assert.Same(t, m, o.Spans.At(0, hint))
		} else {
			assert.Nil(t, o.Spans.At(0, hint))
		}
	}
	assert.Same(t, m, o.Spans.At(0, 3+Shards), "hints are taken modulo")

	others := map[int]*Span{}
	for hint := range Shards {
		if hint != 3 {
			others[hint] = o.Spans.New(0, int32(hint), 0)
			o.Spans.Install(others[hint], hint)
		}
	}
	s, _ := c.Take(1)
	require.NotNil(t, s)
	assert.Same(t, o.Spans.At(0, int(s.magazine.Span().shard)), s.magazine.Span())
	o.Spans.Uninstall(m)
	assert.Nil(t, o.Spans.At(0, 3))
	assert.Same(t, others[4], o.Spans.At(0, 4))
}

// A length has one magazine: its sharded bucket names it in the shard of one hint, and after it was closed
// and reopened in the shard of another.
func TestShardsOfALength(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	m := o.Exacts.Of(1000)
	bucket := BucketOf(1000)
	o.Exacts.Reopen(m)
	o.Exacts.Install(m, 5)
	m.contended.Store(contendedLimit)
	require.True(t, o.Exacts.Shard(m, 5))
	at := func() (hints []int) {
		for hint := range Shards {
			if o.Exacts.At(bucket, hint) == m {
				hints = append(hints, hint)
			}
		}
		return hints
	}
	assert.Equal(t, []int{5}, at())
	o.Exacts.Close(m, func(*Slot) {})
	assert.Empty(t, at())
	o.Exacts.Reopen(m)
	o.Exacts.Install(m, 2)
	assert.Equal(t, []int{2}, at())
}

// neighbour is another length of blocks that is looked up in the same bucket.
func neighbour(units uint64) uint64 {
	other := units + 1
	for bucketOf(other) != bucketOf(units) {
		other++
	}
	return other
}

// unserved counts the requests that no magazine serves.
type unserved struct{ count int }

func (u *unserved) AllocBeyond(int64) (*Slot, uint64, int64, error) {
	u.count++
	return nil, 0, 0, nil
}

func (u *unserved) AllocSampled(s *Slot, handle uint64, bytes int64) (*Slot, uint64, int64, error) {
	return s, handle, bytes, nil
}

// A magazine serves its own length and no other that is looked up in the same bucket, sharded or not, whichever way the
// request takes.
func TestABucketServesOneLength(t *testing.T) {
	const units = sizeclass.MaxUnits + 1000
	other := neighbour(units)
	for _, sharded := range []bool{false, true} {
		c := new(Cache)
		o := NewOwner(c, nil)
		beyond := new(unserved)
		c.Extend(beyond)
		m := o.Exacts.Of(units)
		o.Exacts.Reopen(m)
		for range 8 {
			s := o.Exacts.Assign(m)
			require.NoError(t, s.Free(s.Word()))
		}
		o.Exacts.Install(m, 0)
		if sharded {
			m.contended.Store(contendedLimit)
			require.True(t, o.Exacts.Shard(m, 0))
			for hint := range Shards { // wherever the goroutine looks
				o.Exacts.Install(m, hint)
			}
		}
		free := m.FreeSlots()
		require.Equal(t, 8, free)

		s, _ := c.Take(int64(other) << sizeclass.UnitShift)
		assert.Nil(t, s, "sharded: %t", sharded)
		none, taken := c.TakeMany(other, 2)
		assert.Nil(t, none, "sharded: %t", sharded)
		assert.Zero(t, taken, "sharded: %t", sharded)
		s, _, _, _ = c.Alloc(int64(other) << sizeclass.UnitShift)
		assert.Nil(t, s, "sharded: %t", sharded)
		assert.Equal(t, 1, beyond.count, "sharded: %t", sharded)
		assert.Equal(t, free, m.FreeSlots(), "sharded: %t", sharded)

		s, _ = c.Take(units << sizeclass.UnitShift)
		assert.NotNil(t, s, "sharded: %t", sharded)
		_, taken = c.TakeMany(units, 2)
		assert.NotZero(t, taken, "sharded: %t", sharded)
		s, _, bytes, err := c.Alloc(units << sizeclass.UnitShift)
		assert.NoError(t, err)
		assert.NotNil(t, s, "sharded: %t", sharded)
		assert.EqualValues(t, units<<sizeclass.UnitShift, bytes)
		assert.Equal(t, free-4, m.FreeSlots(), "sharded: %t", sharded)
	}
}

// Goroutines take from a magazine that is sharded under them, and nobody gets a slot twice.
func TestShardUnderTakes(t *testing.T) {
	c, o, m := cacheOf(0)
	m.contended.Store(contendedLimit)
	var all sync.WaitGroup
	got := make([][]*Slot, 4)
	for i := range got {
		all.Go(func() {
			for range 1000 {
				if s, _ := c.Take(1); s != nil {
					got[i] = append(got[i], s)
				}
			}
		})
	}
	o.Spans.Shard(m, Hint())
	all.Wait()
	seen := map[*Slot]bool{}
	for _, slots := range got {
		for _, s := range slots {
			assert.False(t, seen[s])
			seen[s] = true
		}
	}
	assert.Equal(t, len(seen), m.LiveSlots())
	assert.Equal(t, SlotCount, len(seen)+m.FreeSlots())
}

// Take and Free make no garbage, and neither does a free that is refused.
func TestTakeAndFreeAllocateNothing(t *testing.T) {
	c, o, m := cacheOf(0)
	pair := func() {
		s, word := c.Take(512)
		if s.Free(word) != nil || s.Free(word) == nil {
			t.Error("a free went wrong")
		}
	}
	assert.Zero(t, testing.AllocsPerRun(1000, pair))
	m.contended.Store(contendedLimit)
	require.True(t, o.Spans.Shard(m, Hint()))
	for hint := range Shards {
		o.Spans.Install(m, hint)
	}
	assert.Zero(t, testing.AllocsPerRun(1000, pair), "sharded")
	listed := func() {
		s, word := c.Take(512)
		if s.Announce(word, Announced) != nil || s.Free(word) != nil {
			t.Error("a free went wrong")
		}
		o.Collect(o.Used(false))
	}
	assert.Zero(t, testing.AllocsPerRun(1000, listed), "through the list")
}

// Each way to a block serves any request with a block that is long enough, and of the shortest class that is.
func TestBlocksAreAsLongAsTheirRequests(t *testing.T) {
	t.Parallel()
	for units := int64(1); units <= sizeclass.MaxUnits; units++ {
		for _, bytes := range []int64{units*sizeclass.UnitBytes - sizeclass.UnitBytes + 1, units*sizeclass.UnitBytes - 1, units * sizeclass.UnitBytes} {
			class := sizeclass.Of(uint64(units))
			c, _, m := cacheOf(class)
			s, _ := c.Take(bytes)
			require.NotNil(t, s, "%d bytes", bytes)
			require.Same(t, m, s.Magazine().Span(), "%d bytes", bytes)
			s, _, got, err := c.Alloc(bytes)
			require.NoError(t, err)
			require.Same(t, m, s.Magazine().Span(), "%d bytes", bytes)
			require.Equal(t, bytes, got)
		}
	}
}
