package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// bare is a core without the reference, with unlimited pages.
type bare struct {
	core  *Core
	cache *magazine.Cache
}

// Wake implements magazine.Waker.
func (*bare) Wake() {}

func (*bare) Piled() {}

func (*bare) Refused() {}

// Freed implements Waker.
func (*bare) Freed() {}

const barePages = 1 << 14 // of 2 MiB

func newBare() *bare {
	b := &bare{cache: &magazine.Cache{}}
	b.core = New(Config{Base: worldBase, PageBytes: 2 * mib}, b.cache, b)
	b.core.Grant(Run{First: 0, Pages: barePages})
	return b
}

// alloc allocates as Stream.Alloc does.
func (b *bare) alloc(bytes int64) (*magazine.Slot, uint64) {
	if slot, word := b.cache.Take(bytes); slot != nil {
		return slot, word
	}
	slot, _ := b.core.Alloc(bytes, 0)
	b.core.Served(false)
	return slot, slot.Word()
}

// ramp yields large sizes that recur only after thousands of others.
type ramp uint64

func (r *ramp) next() int64 {
	*r = (*r*25173 + 13849) & 0xffff // all of 16 bits, in an order that looks like none
	return sizeclass.MaxBytes + int64(*r+1)*sizeclass.UnitBytes
}

// TestPairFromTheMagazineDoesNotAllocate takes and frees a slot on the fast path.
func TestPairFromTheMagazineDoesNotAllocate(t *testing.T) {
	for _, bytes := range []int64{1000, 64 * kib, mib} {
		b := newBare()
		pair := func() {
			slot, word := b.alloc(bytes)
			require.NoError(t, slot.Free(word))
		}
		for range 2 * heatKept {
			pair()
		}
		turns := b.core.misses.Turns
		assert.Zero(t, testing.AllocsPerRun(1000, pair), "%d bytes", bytes)
		assert.Equal(t, turns, b.core.misses.Turns, "served by the magazine, %d bytes", bytes)
	}
}

// TestMissFromOwnRangesDoesNotAllocate uses sizes that do not recur and a live set that turns over: the core
// serves every request from its free ranges, and every free goes through the list.
func TestMissFromOwnRangesDoesNotAllocate(t *testing.T) {
	const liveCount = 100
	b := newBare()
	var r ramp
	var slots [liveCount]*magazine.Slot
	var words [liveCount]uint64
	n := 0
	turn := func() {
		i := n % liveCount
		n++
		if slots[i] != nil {
			require.NoError(t, slots[i].Free(words[i]))
		}
		slots[i], words[i] = b.alloc(r.next())
	}
	for range 50 * liveCount { // until the books are as long as they get
		turn()
	}
	turns := b.core.misses.Turns
	assert.Zero(t, testing.AllocsPerRun(1000, turn))
	assert.EqualValues(t, 1001, b.core.misses.Turns-turns, "served by the core")
	require.NoError(t, b.core.Check())
}

// TestSmallChurnOverMagazinesDoesNotAllocate fills and frees several spans of a class, so that magazines
// are parked, handed over and installed again.
func TestSmallChurnOverMagazinesDoesNotAllocate(t *testing.T) {
	const liveCount = 5 * magazine.SlotCount
	b := newBare()
	var slots [liveCount]*magazine.Slot
	var words [liveCount]uint64
	churn := func() {
		for i := range slots {
			slots[i], words[i] = b.alloc(512)
		}
		for i := range slots {
			_ = slots[i].Free(words[i])
		}
	}
	churn()
	turns := b.core.misses.Turns
	assert.Zero(t, testing.AllocsPerRun(100, churn))
	assert.Greater(t, b.core.misses.Turns-turns, uint64(300), "several magazines took turns")
	require.NoError(t, b.core.Check())
}

// TestReleaseDoesNotAllocate releases pages and gets them granted again, like a stream that the pool often
// asks.
func TestReleaseDoesNotAllocate(t *testing.T) {
	b := newBare()
	var held []*magazine.Slot
	for range 20 { // holes of pages between them
		slot, _ := b.alloc(3 * mib)
		held = append(held, slot)
		b.alloc(3*mib + sizeclass.UnitBytes)
	}
	for _, slot := range held {
		require.NoError(t, slot.Free(slot.Word()))
	}
	var runs [64]Run
	turn := func() {
		n := copy(runs[:], b.core.Release(^uint32(0), false))
		for _, r := range runs[:n] {
			b.core.Grant(r)
		}
	}
	turn()
	assert.Zero(t, testing.AllocsPerRun(100, turn))
	require.NoError(t, b.core.Check())
}
