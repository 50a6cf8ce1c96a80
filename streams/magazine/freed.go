package magazine

import "github.com/go-vram/vram/internal/sizeclass"

// The word at the top of the list of freed slots: the name of the slot there, and how often slots were taken from the
// list, in whole or one by one. Without the count a caller who has looked at the top, and comes back after it was taken
// and freed again on top of others, would put the wrong slot there.
const (
	nameMask  uint64 = 1<<32 - 1
	takenStep uint64 = 1 << 32
)

// entry is what stands aside of a slot in the list: the name of the slot below, and how many units its block has for
// whoever takes it from there, 0 if only the owner may.
func entry(units, below uint32) uint64 { return uint64(units)<<32 | uint64(below) }

// nextPush is the top after a slot was put there.
func nextPush(top uint64, name uint32) uint64 { return top&^nameMask | uint64(name) }

// nextPop is the top after the slot there, whose entry that is, was taken.
func nextPop(top, entry uint64) uint64 { return top&^nameMask + takenStep | entry&nameMask }

// nextEmpty is the top after all was taken.
func nextEmpty(top uint64) uint64 { return top&^nameMask + takenStep }

// The word at the top of the list of freed slots that other streams use: the name of the slot there, how many there are,
// and how long they are together, as far as there is room. It is taken whole only, so nobody is misled by a top that has come
// back. Slots of lanes are counted there and come home by their masks.
const (
	countShift  = 32
	countBits   = 8
	lengthShift = countShift + countBits
	// lengthStep is how long a step of the length is, in units: as the longest blocks of classes, which their number
	// bounds.
	lengthStep = sizeclass.MaxUnits
	mostCount  = 1<<countBits - 1
	mostLength = 1<<(64-lengthShift) - 1
)

// nextUsed is the top after a slot of so many units was put there; the name is that of the top before for one that is only
// counted.
func nextUsed(top uint64, name, units uint32) uint64 {
	count := min(top>>countShift&mostCount+1, mostCount)
	length := min(top>>lengthShift+uint64(units/lengthStep), mostLength)
	return length<<lengthShift | count<<countShift | uint64(name)
}

// isPile reports whether so much is in the list of used slots that the owner looks at them.
func (c *Cache) isPile(top uint64) bool {
	return top>>countShift&mostCount >= PileSlots || top>>lengthShift*lengthStep >= max(PileUnits, c.pileUnits.Load())
}

// handUsed gives a freed slot that others use to the owner, or counts one that comes home by its mask. It reports
// whether that makes a pile.
func (c *Cache) handUsed(s *Slot, units uint32, flags uint8, listed bool) (isPile bool) {
	for {
		top := c.used.Load()
		name := uint32(top & nameMask)
		if listed {
			s.flags = flags
			storePlain(&s.aside, entry(0, name))
			name = s.name()
		}
		if next := nextUsed(top, name, units); c.used.CompareAndSwap(top, next) {
			return c.isPile(next)
		}
	}
}

// Used takes the list of slots that others use. Follow it with Next before a slot is used. found says that there were
// some, perhaps only of lanes. With pile it leaves less than a pile alone: what others use serves nobody yet.
func (o *Owner) Used(pile bool) (s *Slot, found bool) {
	if top := o.cache.used.Load(); top == 0 || pile && !o.cache.isPile(top) {
		return nil, false
	}
	return o.cache.names.slot(uint32(o.cache.used.Swap(0) & nameMask)), true
}

// HasUsed reports whether there are any for Used.
func (o *Owner) HasUsed() bool { return o.cache.used.Load() != 0 }

// HasFreed reports whether there is anything that TakeBack might serve.
func (c *Cache) HasFreed() bool { return uint32(c.freed.Load()) != noSlot }

// TakeBack serves a request of that many bytes with the block that was freed last, if that has its
// length and is still on its way to the owner; or it returns nil. Without lock, wait or heap allocation. The owner
// never knows: for it the block was in use all the time. Requests of 0 bytes and less are not served.
func (c *Cache) TakeBack(bytes int64) (*Slot, uint64) {
	units := uint64(bytes-1)>>sizeclass.UnitShift + 1
	top := c.freed.Load()
	if uint32(top) == noSlot || units > uint64(c.backUnits.Load()) {
		return nil, 0
	}
	s := c.names.slot(uint32(top))
	if s == nil { // the list is another one by now
		return nil, 0
	}
	e := s.aside.Load()
	if e>>32 != units || !c.freed.CompareAndSwap(top, nextPop(top, e)) {
		return nil, 0
	}
	return s, s.word.Load() &^ flagMask
}
