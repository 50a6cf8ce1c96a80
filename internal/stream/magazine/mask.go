package magazine

import (
	"math/bits"

	"github.com/go-vram/vram/internal/sizeclass"
)

// The mask of a magazine.
const (
	// SlotCount is the number of slots in a magazine: the bits of a word without the two state bits.
	SlotCount = sizeclass.MostBlocks

	slotBits  uint64 = 1<<SlotCount - 1
	parkedBit uint64 = 1 << 62
	closedBit uint64 = 1 << 63

	// The owner parks by compare-and-swap of exhaustedMask with parkedBit, unparks by AND with unparkMask,
	// closes by Swap with closedBit and reopens by Swap with openMask.
	exhaustedMask uint64 = 0
	unparkMask           = ^parkedBit
	openMask      uint64 = 0
)

// nextTake returns the mask after the lowest free slot was taken; ok is false if there is none.
func nextTake(mask uint64) (next uint64, slot int, ok bool) {
	if mask == 0 || mask >= parkedBit {
		return mask, 0, false
	}
	return mask & (mask - 1), bits.TrailingZeros64(mask), true
}

// nextTakeMany returns the mask after up to most consecutive takes, and the bits of the taken slots: the
// lowest. Precondition: most > 0.
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

// nextTakeParked is nextTakeMany for the owner of a parked magazine, which stays parked.
func nextTakeParked(mask uint64, most int) (next, taken uint64) {
	next, taken = nextTakeMany(mask&^parkedBit, most)
	return next | parkedBit, taken
}

// put returns the next step of the caller whose OR returned old.
func put(old uint64) home {
	switch {
	case old < parkedBit:
		return inMask
	case old >= closedBit:
		return handSlot
	case old == parkedBit:
		return handMagazine
	default:
		return inMask
	}
}

// nextIdle returns the mask after a magazine without slots in use was closed for reuse; ok is false if a slot
// is in use, or if a caller has yet to hand the magazine over. whole has all slots of the magazine; handed
// says that, if it is parked, the owner has it.
func nextIdle(mask, whole uint64, handed bool) (next uint64, ok bool) {
	if mask&^parkedBit != whole || (mask&parkedBit != 0 && !handed) {
		return mask, false
	}
	return closedBit, true
}

// broughtHome returns the slots that the owner gets because a Swap with closedBit returned old.
func broughtHome(old uint64) uint64 {
	if old >= closedBit {
		return 0
	}
	return old & slotBits
}

// A freed slot has one of three destinations.
type home uint8

const (
	inMask       home = iota // callers can take it again
	handMagazine             // likewise, once the caller has handed the magazine to the owner
	handSlot                 // to the owner
)
