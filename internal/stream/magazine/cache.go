package magazine

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Cache is the callers' side of a stream's cache. The zero value serves nothing until NewOwner.
type Cache struct {
	Home
	buckets buckets
	beyond  beyond
}

// beyond serves the requests for which no magazine has a slot, and records sampled ones. Alloc calls it
// directly, which saves every allocation a call.
type beyond interface {
	// AllocBeyond returns a handle and its bytes.
	AllocBeyond(bytes int64) (*Slot, uint64, int64, error)
	// AllocSampled finally decides whether an allocation is sampled, records it if so, and returns its
	// arguments.
	AllocSampled(s *Slot, handle uint64, bytes int64) (*Slot, uint64, int64, error)
}

// Extend sets the server of requests that the magazines do not serve. Call it before the first Alloc.
func (c *Cache) Extend(b beyond) { c.beyond = b }

// Alloc serves a request of that many bytes: from a magazine, without lock, wait or heap allocation, or
// through AllocBeyond. It tries the likeliest magazine once, and Take if that is contended.
func (c *Cache) Alloc(bytes int64) (s *Slot, handle uint64, gotBytes int64, err error) {
	units := (uint64(bytes-1) >> sizeclass.UnitShift) + 1
	if bytes <= 0 {
		return c.allocBeyond(bytes)
	}
	b := &c.buckets[bucketOf(units)]
	if b.shards.Load() != nil {
		return c.allocContended(bytes)
	}
	m := b.magazine.Load()
	if m == nil {
		return c.allocBeyond(bytes)
	}
	if units > sizeclass.MaxUnits && uint64(m.units) != units {
		return c.allocBeyond(bytes)
	}
	w := m.mask.Load()
	next, i, ok := nextTake(w)
	if !ok {
		return c.allocBeyond(bytes)
	}
	if !m.mask.CompareAndSwap(w, next) {
		return c.allocContended(bytes)
	}
	s = &m.slots()[i]
	handle = s.word.Load() &^ flagMask
	if share := c.Share(); share != 0 && share.Samples(s.Draw(handle), uint64(m.units)) {
		return c.beyond.AllocSampled(s, handle, bytes)
	}
	return s, handle, bytes, nil
}

// allocBeyond is Alloc for requests that the magazines do not serve.
func (c *Cache) allocBeyond(bytes int64) (*Slot, uint64, int64, error) {
	if c.beyond == nil { // in a zero Stream
		return nil, 0, 0, cudadrv.ErrNotOpen
	}
	return c.beyond.AllocBeyond(bytes)
}

// allocContended is Alloc for a contended magazine.
func (c *Cache) allocContended(bytes int64) (*Slot, uint64, int64, error) {
	s, handle := c.Take(bytes)
	if s == nil {
		return c.allocBeyond(bytes)
	}
	if c.Share().Samples(s.Draw(handle), uint64(s.magazine.UnitsOf(s))) {
		return c.beyond.AllocSampled(s, handle, bytes)
	}
	return s, handle, bytes, nil
}

// Take serves a request of that many bytes from a magazine, without lock, wait or heap allocation. It returns
// nil if it cannot, also for requests of 0 bytes and less. It samples nothing: the caller must, with
// Slot.Draw, as for TakeBack and TakeMany.
func (c *Cache) Take(bytes int64) (*Slot, uint64) {
	units := (uint64(bytes-1) >> sizeclass.UnitShift) + 1
	if bytes <= 0 {
		return nil, 0
	}
	b := &c.buckets[bucketOf(units)]
	if b.shards.Load() != nil {
		return b.takeShard(units)
	}
	m := b.magazine.Load()
	if m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {
		return nil, 0
	}
	for {
		w := m.mask.Load()
		next, i, ok := nextTake(w)
		if !ok {
			return nil, 0
		}
		if m.mask.CompareAndSwap(w, next) {
			s := &m.slots()[i]
			return s, s.word.Load() &^ flagMask
		}
		if m.contended.Add(1) >= contendedLimit {
			return nil, 0 // the owner will shard the bucket
		}
	}
}

// takeShard is Take on a sharded bucket.
func (b *bucket) takeShard(units uint64) (*Slot, uint64) {
	m := b.shards.Load()[shardHint()].magazine.Load()
	if m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {
		return nil, 0
	}
	if s := m.Take(); s != nil {
		return s, s.word.Load() &^ flagMask
	}
	return nil, 0
}

// shardHint distinguishes goroutines by their stacks, which never overlap: the address of a local, in steps
// of the minimum stack, spread by Fibonacci hashing.
func shardHint() uintptr {
	var local byte
	const fibonacci = 0x9E3779B97F4A7C15
	return uintptr(uint64(uintptr(unsafe.Pointer(&local))>>11) * fibonacci >> (64 - 3))
}

// TakeBack serves a request of that many bytes with the block that was freed last, if it has the length and
// the owner has not collected it. It returns nil otherwise, also for requests of 0 bytes and less. It needs
// no lock, wait or heap allocation. The owner does not notice: in its books the block stayed in use.
func (c *Cache) TakeBack(bytes int64) (*Slot, uint64) {
	units := uint64(bytes-1)>>sizeclass.UnitShift + 1
	top := c.freed.Load()
	if uint32(top) == noSlot || units > uint64(c.backUnits.Load()) {
		return nil, 0
	}
	s := c.slot(uint32(top))
	if s == nil { // the list has changed
		return nil, 0
	}
	e := s.aside.Load()
	if e>>32 != units || !c.freed.CompareAndSwap(top, nextPop(top, e)) {
		return nil, 0
	}
	return s, s.word.Load() &^ flagMask
}

// TakeMany takes up to most free slots for blocks of that many units, by one access of the magazine that
// serves them, and returns their bits; usually all are in one magazine. Precondition: units and most are
// positive. The owner serves the rest.
func (c *Cache) TakeMany(units uint64, most int) (m *Magazine, taken uint64) {
	b := &c.buckets[bucketOf(units)]
	if sh := b.shards.Load(); sh != nil {
		m = sh[shardHint()].magazine.Load()
	} else {
		m = b.magazine.Load()
	}
	if m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {
		return nil, 0
	}
	return m, m.TakeMany(most)
}

// Hint returns the shard hint of the calling goroutine.
func Hint() int { return int(shardHint()) }
