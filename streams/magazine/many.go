package magazine

import (
	"math/bits"

	"github.com/go-vram/vram/internal/sizeclass"
)

// nextTakeMany is the mask after as many takes in a row, at most most, as it has free slots, and the bits of
// those slots: the lowest. Precondition: most > 0.
func nextTakeMany(mask uint64, most int) (next, taken uint64) {
	if mask >= parkedBit {
		return mask, 0
	}
	if bits.OnesCount64(mask) <= most {
		return exhaustedMask, mask
	}
	next = mask
	for range most {
		next &= next - 1
	}
	return next, mask &^ next
}

// TakeMany takes up to most free slots for blocks of that many units, by one access of the magazine that
// serves them, and returns their bits; most often all are of one magazine. Precondition: units and most are
// positive. What cannot be served this way is left to the owner.
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
	return m, m.takeMany(most)
}

func (m *Magazine) takeMany(most int) uint64 {
	for {
		w := m.mask.Load()
		next, taken := nextTakeMany(w, most)
		if taken == 0 || m.mask.CompareAndSwap(w, next) {
			return taken
		}
		m.contended.Add(1)
	}
}

// nextTakeParked is nextTakeMany for the owner of a parked magazine, which stays parked.
func nextTakeParked(mask uint64, most int) (next, taken uint64) {
	next, taken = nextTakeMany(mask&^parkedBit, most)
	return next | parkedBit, taken
}

// Shelve puts an open magazine that is in no bucket among those that Ready returns, or, if it is exhausted,
// parks it.
func (o *Owner) Shelve(m *Magazine) {
	if m.mask.Or(parkedBit) != exhaustedMask {
		o.makeReady(m)
	}
}

// TakeReady takes up to most free slots of a magazine that Ready would return, which stays as it is; if those
// were its last, whoever frees one hands it over again. It returns nil if there is none.
func (o *Owner) TakeReady(class, most int) (m *Magazine, taken uint64) {
	o.collectParked()
	m = o.ready[class]
	if m == nil {
		return nil, 0
	}
	for {
		w := m.mask.Load()
		next, taken := nextTakeParked(w, most)
		if !m.mask.CompareAndSwap(w, next) {
			continue
		}
		if next == parkedBit {
			o.unready(m)
		}
		return m, taken
	}
}

// TakeMany takes up to most free slots of a magazine, as a caller does.
func (o *Owner) TakeMany(m *Magazine, most int) uint64 { return m.takeMany(most) }

// At is the slot of a bit, counted from 0.
func (m *Magazine) At(bit int) *Slot { return &m.slots[bit] }

// waysOut is the number of magazines whose freed slots Frees gathers at a time: a power of two. Not more:
// they are cleared for each batch. Not fewer: a batch of mixed lengths goes back and forth between them, and each
// change of a magazine in its place costs the access that a batch is to save.
const waysOut = 32

// way is a magazine's place among them: that of its class, or of its length.
func (m *Magazine) way() uint32 { return (uint32(m.Class) + m.units>>sizeclass.UnitShift) % waysOut }

// Frees frees slots and gives them back by one access for each magazine. Until Flush they are freed, and
// cannot be taken. The zero value is ready.
type Frees struct {
	magazines [waysOut]*Magazine
	bits      [waysOut]uint64
	used      uint32 // those of the above
	cache     *Cache // of the slots in the list
	head      uint32 // names the first of the slots that go to the owner
	tail      *Slot
	err       error
}

// Free ends a handle as Slot.Free does. A slot that has something to tell the owner is given back at once.
func (f *Frees) Free(s *Slot, handle uint64) error {
	if !s.word.CompareAndSwap(handle, freed(handle)) {
		return s.freeSlow(handle)
	}
	m := s.magazine
	if m.loose {
		f.list(s)
		return nil
	}
	way := m.way()
	if f.magazines[way] != m {
		f.put(way)
		f.magazines[way] = m
		f.used |= 1 << way
	}
	f.bits[way] |= 1 << s.index
	return nil
}

// list adds a slot to those that go to the owner together.
func (f *Frees) list(s *Slot) {
	c := s.magazine.cache
	if f.cache != c {
		f.push()
		f.cache = c
	}
	s.flags = 0
	if f.tail == nil {
		f.tail = s
	}
	storePlain(&s.aside, entry(s.Units, f.head))
	f.head = s.name()
}

// push gives the listed slots to their owner.
func (f *Frees) push() {
	if f.head == noSlot {
		return
	}
	c := f.cache
	for {
		head := c.freed.Load()
		storePlain(&f.tail.aside, entry(f.tail.Units, uint32(head)))
		if c.freed.CompareAndSwap(head, nextPush(head, f.head)) {
			break
		}
	}
	f.head, f.tail = noSlot, nil
	f.keep(c.wake())
}

// put gives the freed slots of one magazine back.
func (f *Frees) put(way uint32) {
	m, freed := f.magazines[way], f.bits[way]
	f.bits[way] = 0
	if freed == 0 {
		return
	}
	old := m.mask.Or(freed)
	if old < parkedBit {
		return
	}
	if put(old) != handSlot {
		f.keep(m.putSlow(nil, old))
		return
	}
	for ; freed != 0; freed &= freed - 1 {
		f.keep(m.putSlow(&m.slots[bits.TrailingZeros64(freed)], old))
	}
}

func (f *Frees) keep(err error) {
	if err != nil {
		f.err = err
	}
}

// Flush makes all slots that were freed available again. It reports ErrClosed if their memory is gone.
func (f *Frees) Flush() error {
	for used := f.used; used != 0; used &= used - 1 {
		f.put(uint32(bits.TrailingZeros32(used)))
	}
	f.push()
	return f.err
}
