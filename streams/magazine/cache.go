package magazine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// The errors of a free.
var (
	// ErrBadFree is the kind of every refused free: errors.Is holds for both of the others.
	ErrBadFree = errors.New("vram: free of a buffer that is not live")
	// ErrDoubleFree says that the buffer was freed before, and its memory not freed since by a later owner.
	ErrDoubleFree = fmt.Errorf("%w: it was freed before", ErrBadFree)
	// ErrStale says that the buffer was freed, and its memory handed out and freed again since.
	ErrStale = fmt.Errorf("%w: its memory was handed out since", ErrBadFree)
	// ErrTransferred says that the buffer was handed over: the memory lives, and belongs to whoever has the new one.
	ErrTransferred = fmt.Errorf("%w: it was handed over to another stream", ErrBadFree)
	// ErrClosed says that the stream or the device was closed.
	ErrClosed = errors.New("vram: closed")
)

const (
	// LargeBuckets is the number of buckets for lengths beyond the classes.
	LargeBuckets = 1 << largeBits
	// FirstLarge is the first of them; those before it are the classes.
	FirstLarge = sizeclass.Count
	// largeBits: not smaller, since two lengths that meet in a bucket push each other out and real
	// programs use up to a thousand; not larger, since a bucket costs 16 bytes of every stream.
	largeBits   = 11
	bucketCount = FirstLarge + LargeBuckets

	// Shards is the number of magazines that a contended bucket has.
	Shards = 8
	// contendedLimit is the number of lost races after which a bucket is sharded. Not smaller: a rare
	// collision is cheaper than seven more magazines. Not larger: each one costs a cache miss.
	contendedLimit = 64
)

// bucket is where a length is looked up.
type bucket struct {
	magazine atomic.Pointer[Magazine]
	shards   atomic.Pointer[shards] // in use instead, once set
}

type shards [Shards]struct {
	magazine atomic.Pointer[Magazine]
	_        [cacheLine - 8]byte
}

// life is how a cache treats what comes home.
type life uint32

const (
	serving  life = iota
	wanted        // as serving, but what comes home through the list or to a parked magazine wakes the owner
	draining      // no more allocations: every block that comes home wakes the owner
	ended         // the memory is gone
)

// Cache is the side of a stream's cache that callers see. The zero value serves nothing until NewOwner
// has made it ready.
type Cache struct {
	life      atomic.Uint32
	backUnits atomic.Uint32 // most units of a block that TakeBack serves
	waker     Waker
	beyond    AllocBeyond
	watcher   Watcher       // nil if nobody is told of frees
	pileUnits atomic.Uint64 // what a pile of announced blocks is, if it is more than PileUnits
	_         [cacheLine - 2*8 - 3*16]byte
	freed     atomic.Uint64 // the top of a list of slots; pushed by callers, taken whole by the owner, or one by one by callers
	used      atomic.Uint64 // likewise, of those that others use: see nextUsed
	_         [cacheLine - 2*8]byte
	parked    atomic.Pointer[Magazine] // likewise
	_         [cacheLine - 8]byte

	buckets [bucketCount]bucket
	names   names
}

// Waker is told of what callers of Free have done, on their goroutines.
type Waker interface {
	// Wake says that a block came home to a cache that is draining or wanted.
	Wake()
	// Piled says that so many announced blocks were freed that somebody should look at their uses.
	Piled()
}

// bucketOf is where requests of that many units are looked up.
func bucketOf(units uint64) uint64 {
	if units <= sizeclass.MaxUnits {
		return uint64(sizeclass.Of(units))
	}
	return sizeclass.Count + (units*0x9E3779B97F4A7C15)>>(64-largeBits)
}

// AllocBeyond serves the requests for which no magazine has anything. That Alloc calls it, rather than return to
// somebody who would, saves every allocation a call.
type AllocBeyond interface {
	// AllocBeyond returns a handle and its bytes.
	AllocBeyond(bytes int64) (*Slot, uint64, int64, error)
}

// Extend says who serves what the magazines do not. It comes before the first Alloc.
func (c *Cache) Extend(beyond AllocBeyond) { c.beyond = beyond }

// Alloc serves a request of that many bytes: from a magazine, without lock, wait or heap allocation, or through
// AllocBeyond. It tries the likeliest magazine once; what is left of a contended one is Take's.
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
	s = &m.slots[i]
	return s, s.word.Load() &^ flagMask, bytes, nil
}

// allocBeyond is Alloc of what the magazines do not serve.
func (c *Cache) allocBeyond(bytes int64) (*Slot, uint64, int64, error) {
	if c.beyond == nil { // of a zero Stream
		return nil, 0, 0, cudadrv.ErrNotOpen
	}
	return c.beyond.AllocBeyond(bytes)
}

// allocContended is Alloc where many allocate from the same magazine.
func (c *Cache) allocContended(bytes int64) (*Slot, uint64, int64, error) {
	if s, handle := c.Take(bytes); s != nil {
		return s, handle, bytes, nil
	}
	return c.allocBeyond(bytes)
}

// Take serves a request of that many bytes from a magazine, or returns nil, without lock, wait or heap allocation.
// Requests of 0 bytes and less are not served.
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
			s := &m.slots[i]
			return s, s.word.Load() &^ flagMask
		}
		if m.contended.Add(1) >= contendedLimit {
			return nil, 0 // the owner will shard the bucket
		}
	}
}

// takeShard is Take on a bucket that many goroutines use.
func (b *bucket) takeShard(units uint64) (*Slot, uint64) {
	m := b.shards.Load()[shardHint()].magazine.Load()
	if m == nil || (units > sizeclass.MaxUnits && uint64(m.units) != units) {
		return nil, 0
	}
	if s := m.take(); s != nil {
		return s, s.word.Load() &^ flagMask
	}
	return nil, 0
}

// shardHint tells goroutines apart by their stacks, which never overlap: the address of a local, in
// steps of the least stack, spread by Fibonacci hashing.
func shardHint() uintptr {
	var local byte
	const fibonacci = 0x9E3779B97F4A7C15
	return uintptr(uint64(uintptr(unsafe.Pointer(&local))>>11) * fibonacci >> (64 - 3))
}

// Free ends a handle and gives its block back. Of several frees of one handle one succeeds. It may be
// called from any goroutine, waits for nobody and allocates nothing.
func (s *Slot) Free(handle uint64) error {
	if !s.word.CompareAndSwap(handle, freed(handle)) {
		return s.freeSlow(handle)
	}
	m := s.magazine
	if m.loose {
		s.flags = 0
		for c := m.cache; ; { // handSlot, without its call
			head := c.freed.Load()
			storePlain(&s.aside, entry(s.Units, uint32(head)))
			if c.freed.CompareAndSwap(head, nextPush(head, s.name())) {
				if life(c.life.Load()) == serving {
					return nil
				}
				return c.wake()
			}
		}
	}
	if old := m.mask.Or(1 << s.index); old >= parkedBit {
		return m.putSlow(s, old)
	}
	return nil
}

// freeSlow frees a handle whose slot carries flags, or says why it is not live.
func (s *Slot) freeSlow(handle uint64) error {
	next := nextFree
	if s.magazine.leased {
		next = nextFreeLeased
	}
	for {
		w := s.word.Load()
		next, ok := next(w, handle)
		if !ok {
			return s.refused(w, handle)
		}
		if !s.word.CompareAndSwap(w, next) {
			continue
		}
		if w&uint64(Watched) != 0 {
			s.tellFreed(handle)
			s.pay()
		}
		if w&uint64(Announced) != 0 {
			return s.giveAnnounced(w)
		}
		return s.giveFlagged(w)
	}
}

// giveFlagged gives a slot back whose word was that when it was freed.
func (s *Slot) giveFlagged(word uint64) error {
	m := s.magazine
	if m.leased { // the word keeps the flags until the owner has seen them
		return m.putSlow(s, m.mask.Or(1<<s.index))
	}
	flags := uint8(word & flagMask &^ uint64(Watched))
	if word&uint64(Watched) == 0 || flags != 0 || m.loose {
		return m.cache.handSlot(s, flags)
	}
	return m.putWatched(s)
}

// putWatched gives a slot back as if it had not been watched.
func (m *Magazine) putWatched(s *Slot) error {
	if old := m.mask.Or(1 << s.index); old >= parkedBit {
		return m.putSlow(s, old)
	}
	return nil
}

func (m *Magazine) putSlow(s *Slot, old uint64) error {
	switch put(old) {
	case handSlot:
		return m.cache.handSlot(s, 0)
	case handMagazine:
		m.cache.handMagazine(m)
	case inMask:
	}
	return m.cache.wake()
}

// handSlot gives a freed slot to the owner.
func (c *Cache) handSlot(s *Slot, flags uint8) error {
	s.flags = flags
	for {
		head := c.freed.Load()
		storePlain(&s.aside, entry(0, uint32(head)))
		if c.freed.CompareAndSwap(head, nextPush(head, s.name())) {
			return c.wake()
		}
	}
}

// handMagazine gives a parked magazine with a free slot to the owner.
func (c *Cache) handMagazine(m *Magazine) {
	for {
		head := c.parked.Load()
		m.next = head
		if c.parked.CompareAndSwap(head, m) {
			return
		}
	}
}

// wake tells the owner of a cache that serves no more, or whose memory is wanted, that a block came home.
func (c *Cache) wake() error {
	switch life(c.life.Load()) {
	case serving:
	case wanted, draining:
		c.waker.Wake()
	case ended:
		return ErrClosed
	}
	return nil
}

// Announce sets a flag on a live handle, so that its free goes the slow way.
func (s *Slot) Announce(handle uint64, f Flag) error {
	for {
		w := s.word.Load()
		next, ok := nextFlag(w, handle, f)
		if !ok {
			return ErrStale
		}
		if next == w || s.word.CompareAndSwap(w, next) {
			return nil
		}
	}
}
