package magazine

import "github.com/go-vram/vram/internal/sizeclass"

// The word at the top of the list of freed slots: the name of the slot there, and how often slots
// were taken from the list, in whole or one by one. Without the count a caller that has looked at
// the top, and comes back after it was taken and freed again on top of others, would put the wrong
// slot there.
const (
	nameMask  uint64 = 1<<32 - 1
	takenStep uint64 = 1 << 32
)

// entry is what stands aside of a slot in the list: the name of the slot below, and how many units
// its block has for a caller that takes it from there, 0 if only the owner may.
func entry(units, below uint32) uint64 { return uint64(units)<<32 | uint64(below) }

// nextPush is the top after a slot was put there.
func nextPush(top uint64, name uint32) uint64 { return top&^nameMask | uint64(name) }

// nextPop is the top after the slot there, whose entry that is, was taken.
func nextPop(top, entry uint64) uint64 { return top&^nameMask + takenStep | entry&nameMask }

// nextEmpty is the top after all was taken.
func nextEmpty(top uint64) uint64 { return top&^nameMask + takenStep }

// The word at the top of the list of freed slots that other streams use: the name of the slot
// there, how many there are, and how long they are together, as far as there is room. It is taken
// whole only, so a top that has come back misleads no caller.
const (
	countShift  = 32
	countBits   = 8
	lengthShift = countShift + countBits
	// lengthStep is how long a step of the length is, in units: as the longest blocks of classes,
	// which their number bounds.
	lengthStep = sizeclass.MaxUnits
	mostCount  = 1<<countBits - 1
	mostLength = 1<<(64-lengthShift) - 1
)

// nextUsed is the top after a slot of so many units was put there.
func nextUsed(top uint64, name, units uint32) uint64 {
	count := min(top>>countShift&mostCount+1, mostCount)
	length := min(top>>lengthShift+uint64(units/lengthStep), mostLength)
	return length<<lengthShift | count<<countShift | uint64(name)
}

const (
	// PileSlots is how many announced blocks may be freed before the owner looks at their uses and
	// fences are taken for them. Not smaller: a fence costs as much as ten allocations, and covers
	// all of them. Not larger: what is submitted to their streams meanwhile is waited for too.
	PileSlots = 128
	// PileUnits is how long they may be together, if the owner allows no more: so long ones have a
	// fence of their own at once where they are few.
	PileUnits = 16 << 20 >> sizeclass.UnitShift
)
