package magazine

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// byHand is a Take or a Free that is performed one atomic operation at a time, like a goroutine that is
// stopped before each of them.
type byHand struct {
	handle // the freed handle, or the taken one
	d      *desk
	bytes  int64
	at     step
	m      *Magazine
	seen   uint64
	flags  uint8
	slots  uint64
	parked *Magazine
	steps  int
}

// Steps of a take that the model leaves out.
const (
	shardsLoad step = 100 + iota
	bucketLoad
)

func takeByHand(d *desk, bytes int64) *byHand { return &byHand{d: d, bytes: bytes, at: shardsLoad} }

func freeByHand(d *desk, h handle) *byHand {
	return &byHand{d: d, handle: h, m: h.magazine, at: freeFast}
}

// step performs the next atomic operation; it reports false when there was none left.
func (b *byHand) step() bool {
	if b.at == resting {
		return false
	}
	b.steps++
	switch b.at {
	case shardsLoad, bucketLoad, takeLoad, takeSwap, takeWord:
		b.at = b.take()
	case freeFast, freePut, freeLoad, freeSwap:
		b.at = b.free()
	default:
		b.at = b.handOver()
	}
	return true
}

func (b *byHand) take() step {
	bucket := &b.d.cache.buckets[bucketOf(sizeclass.Units(b.bytes))]
	switch b.at {
	case shardsLoad:
		if sh := bucket.shards.Load(); sh != nil {
			b.m = sh[shardHint()].magazine.Load()
			return takeLoad
		}
		return bucketLoad
	case bucketLoad:
		b.m = bucket.magazine.Load()
		return takeLoad
	case takeLoad:
		if b.m == nil {
			return resting
		}
		b.seen = b.m.mask.Load()
		if _, _, ok := nextTake(b.seen); !ok {
			return resting
		}
		return takeSwap
	case takeSwap:
		next, i, _ := nextTake(b.seen)
		if !b.m.mask.CompareAndSwap(b.seen, next) {
			return takeLoad
		}
		b.Slot = b.m.At(i)
		return takeWord
	default:
		b.word = b.Slot.word.Load()
		return resting
	}
}

func (b *byHand) free() step {
	switch b.at {
	case freeFast:
		if !b.Slot.word.CompareAndSwap(b.word, freed(b.word)) {
			return freeLoad
		}
		b.d.frees.Add(1)
		if b.m.kind == looseKind {
			return freedLoad
		}
		return freePut
	case freePut:
		old := b.m.mask.Or(1 << b.index)
		switch where := put(old); {
		case where == handSlot:
			return freedLoad
		case where == handMagazine:
			return parkedLoad
		case old >= parkedBit:
			return lifeLoad
		default:
			return resting
		}
	case freeLoad:
		b.seen = b.Slot.word.Load()
		if _, ok := nextFree(b.seen, b.word); !ok {
			panic("the handle is live")
		}
		return freeSwap
	default:
		next, _ := nextFree(b.seen, b.word)
		if !b.Slot.word.CompareAndSwap(b.seen, next) {
			return freeLoad
		}
		b.d.frees.Add(1)
		b.flags = uint8(b.seen & flagMask)
		if b.flags&uint8(Announced) != 0 {
			return usedLoad
		}
		return freedLoad
	}
}

func (b *byHand) handOver() step {
	c := &b.d.cache
	switch b.at {
	case freedLoad:
		b.slots = c.freed.Load()
		return freedSwap
	case freedSwap:
		b.Slot.flags = b.flags
		units := uint32(0)
		if b.m.kind == looseKind && b.flags == 0 {
			units = b.Units
		}
		b.aside.Store(entry(units, uint32(b.slots)))
		if !c.freed.CompareAndSwap(b.slots, nextPush(b.slots, b.name())) {
			return freedLoad
		}
		return lifeLoad
	case usedLoad:
		b.slots = c.used.Load()
		return usedSwap
	case usedSwap:
		b.Slot.flags = b.flags
		b.aside.Store(entry(0, uint32(b.slots&nameMask)))
		if !c.used.CompareAndSwap(b.slots, nextUsed(b.slots, b.name(), b.m.UnitsOf(b.Slot))) {
			return usedLoad
		}
		return lifeLoad
	case parkedLoad:
		b.parked = c.parked.Load()
		return parkedSwap
	case parkedSwap:
		b.m.next = b.parked
		if !c.parked.CompareAndSwap(b.parked, b.m) {
			return parkedLoad
		}
		return lifeLoad
	default:
		if life(c.life.Load()) == draining {
			c.waker.Wake()
		}
		return resting
	}
}

const (
	frozenSmall = sizeclass.MaxBytes // of the class with the fewest slots: four
	frozenLarge = 200_000
)

// frozenCase makes a desk and an operation that is about to begin on it. others are live handles.
type frozenCase struct {
	name  string
	steps int // of the operation when nobody interferes
	make  func(d *desk) (b *byHand, others []handle)
}

func allocate(d *desk, bytes int64, count int) []handle {
	held := make([]handle, count)
	for i := range held {
		held[i], _ = d.alloc(bytes)
	}
	return held
}

func frozenCases() []frozenCase {
	freeOf := func(d *desk, held []handle) (*byHand, []handle) {
		return freeByHand(d, held[0]), held[1:]
	}
	return []frozenCase{
		{"take", 5, func(d *desk) (*byHand, []handle) {
			return takeByHand(d, frozenSmall), allocate(d, frozenSmall, 2)
		}},
		{"take of a length", 5, func(d *desk) (*byHand, []handle) {
			held := allocate(d, frozenLarge, 2)
			_ = d.free(held[0])
			return takeByHand(d, frozenLarge), held[1:]
		}},
		{"free into an open magazine", 2, func(d *desk) (*byHand, []handle) {
			return freeOf(d, allocate(d, frozenSmall, 3))
		}},
		{"free into a parked magazine", 5, func(d *desk) (*byHand, []handle) {
			return freeOf(d, allocate(d, frozenSmall, 5)) // the fifth parks the magazine of the four
		}},
		{"second free into a parked magazine", 3, func(d *desk) (*byHand, []handle) {
			held := allocate(d, frozenSmall, 5)
			_ = d.free(held[1])
			return freeByHand(d, held[0]), held[2:]
		}},
		{"free into a closed magazine", 5, func(d *desk) (*byHand, []handle) {
			held := allocate(d, frozenLarge, 3)
			d.evict(d.kept[0])
			return freeOf(d, held)
		}},
		{"free of an announced handle", 6, func(d *desk) (*byHand, []handle) {
			held := allocate(d, frozenSmall, 3)
			_ = held[0].Announce(held[0].word, Announced)
			return freeOf(d, held)
		}},
		{"free of a loose slot", 4, func(d *desk) (*byHand, []handle) {
			held := allocate(d, frozenLarge, 4) // the desk keeps three
			return freeByHand(d, held[3]), held[:3]
		}},
	}
}

// meanwhile runs other callers while one goroutine is stopped: four of them allocate and free, and then the
// owner works on the cache.
func meanwhile(t *testing.T, d *desk, others []handle, closes bool) {
	t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 8 {
				var held []handle
				for _, bytes := range []int64{frozenSmall, frozenSmall, frozenSmall, frozenLarge, frozenLarge, 512} {
					h, err := d.alloc(bytes)
					assert.NoError(t, err)
					held = append(held, h)
				}
				for _, h := range held {
					assert.NoError(t, d.free(h))
					assert.ErrorIs(t, h.Free(h.word), ErrBadFree)
				}
			}
		})
	}
	for _, h := range others {
		assert.NoError(t, d.free(h))
	}
	all.Wait()
	d.releaseUnused()
	allOfSome := allocate(d, frozenSmall, 9)
	if closes {
		d.close()
	}
	for _, h := range allOfSome {
		assert.NoError(t, d.free(h))
	}
	if !closes {
		d.releaseUnused()
	}
}

// A goroutine that is stopped before any atomic operation inside Take or Free stops nobody: the others
// allocate, free, park, evict and close, and all slots but the one it has are accounted for. When it goes
// on, the books balance.
func TestFrozenGoroutineStopsNobody(t *testing.T) {
	for _, c := range frozenCases() {
		for k := range c.steps + 1 {
			for _, closes := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/steps=%d/closes=%v", c.name, k, closes), func(t *testing.T) {
					frozen(t, c, k, closes)
				})
			}
		}
	}
}

func frozen(t *testing.T, c frozenCase, k int, closes bool) {
	t.Helper()
	d := newDesk()
	b, others := c.make(d)
	takes := b.at == shardsLoad
	if !takes {
		require.NoError(t, d.unclaim(b.handle))
	}
	for range k {
		require.True(t, b.step(), "the operation has fewer steps")
	}
	require.Equal(t, k == c.steps, b.at == resting, "the operation has more steps")

	meanwhile(t, d, others, closes)
	want := map[*Slot]bool{}
	if b.hasSlot(takes) {
		want[b.Slot] = true
	}
	require.Equal(t, want, d.live(), "slots that nobody has, or that somebody has and is not said to")

	for b.step() {
	}
	if !takes {
		require.ErrorIs(t, b.Free(b.word), ErrBadFree, "freed twice")
	} else if b.Slot != nil {
		require.NoError(t, d.claim(b.handle))
		require.NoError(t, d.free(b.handle))
	}
	if !closes {
		d.releaseUnused()
	}
	require.Empty(t, d.live())
	require.Zero(t, d.out, "regions in use")
	d.check(t)
}

// hasSlot reports whether the stopped goroutine is the one that has the slot.
func (b *byHand) hasSlot(takes bool) bool {
	switch b.at {
	case freeFast, freePut, freeLoad, freeSwap, freedLoad, freedSwap, usedLoad, usedSwap:
		return true
	default:
		return takes && b.Slot != nil
	}
}
