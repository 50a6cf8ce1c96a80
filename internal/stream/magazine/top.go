package magazine

import "github.com/go-vram/vram/internal/sizeclass"

// The word at the top of the list of freed slots: the name of the top slot, and how many times slots were
// taken from the list, all or one. Without the count, a caller could load the top, see it taken and freed
// again on top of others, and then swap in the wrong slot.
const (
	nameMask  uint64 = 1<<32 - 1
	takenStep uint64 = 1 << 32
)

// entry is a slot's link in the list: the name of the slot below, and the units of its block if callers may
// pop it, 0 if only the owner may.
func entry(units, below uint32) uint64 { return uint64(units)<<32 | uint64(below) }

// nextPush returns the top after a slot was pushed.
func nextPush(top uint64, name uint32) uint64 { return top&^nameMask | uint64(name) }

// nextPop returns the top after the slot with that entry was popped.
func nextPop(top, entry uint64) uint64 { return top&^nameMask + takenStep | entry&nameMask }

// nextEmpty returns the top after all slots were taken.
func nextEmpty(top uint64) uint64 { return top&^nameMask + takenStep }

// The word at the top of the list of freed slots that other streams use: the name of the top slot, the number
// of slots, and their total length, saturated. The list is only taken as a whole, so a recurring top misleads
// no caller.
const (
	countShift  = 32
	countBits   = 8
	lengthShift = countShift + countBits
	// lengthStep is the unit of the length: as long as the longest blocks of classes, which the count bounds.
	lengthStep = sizeclass.MaxUnits
	mostCount  = 1<<countBits - 1
	mostLength = 1<<(64-lengthShift) - 1
)

// nextUsed returns the top after a slot of that many units was pushed.
func nextUsed(top uint64, name, units uint32) uint64 {
	count := min(top>>countShift&mostCount+1, mostCount)
	length := min(top>>lengthShift+uint64(units/lengthStep), mostLength)
	return length<<lengthShift | count<<countShift | uint64(name)
}

const (
	// PileSlots is how many announced blocks may be freed before the owner checks their uses and fences are
	// recorded for them. Not smaller: a fence costs as much as ten allocations, and covers all of them. Not
	// larger: the blocks also wait for work submitted to their streams until then.
	PileSlots = 128
	// PileUnits is the total length that they may have, if the owner allows no more: a few long ones
	// immediately get a fence of their own.
	PileUnits = 16 << 20 >> sizeclass.UnitShift
)
