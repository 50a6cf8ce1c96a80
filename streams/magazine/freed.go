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
	e := s.aside.Load()
	if e>>32 != units || !c.freed.CompareAndSwap(top, nextPop(top, e)) {
		return nil, 0
	}
	return s, s.word.Load() &^ flagMask
}
