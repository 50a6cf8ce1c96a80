package magazine

import (
	"math/bits"

	"github.com/go-vram/vram/internal/sizeclass"
)

// The mask of a magazine.
const (
	// SlotCount is the number of slots in a magazine: what a word holds beside its two states.
	SlotCount = sizeclass.MostBlocks

	slotBits  uint64 = 1<<SlotCount - 1
	parkedBit uint64 = 1 << 62
	closedBit uint64 = 1 << 63

	// The owner parks by compare-and-swap of exhaustedMask with parkedBit, unparks by AND with
	// unparkMask, closes by Swap with closedBit and opens anew by Swap with openMask.
	exhaustedMask uint64 = 0
	unparkMask           = ^parkedBit
	openMask      uint64 = 0
)

// nextTake is the mask after the lowest free slot was taken, or ok == false if there is none to take.
func nextTake(mask uint64) (next uint64, slot int, ok bool) {
	if mask == 0 || mask >= parkedBit {
		return mask, 0, false
	}
	return mask & (mask - 1), bits.TrailingZeros64(mask), true
}

// nextTakeMany is the mask after as many takes in a row, at most most, as it has free slots, and
// the bits of those slots: the lowest. Precondition: most > 0.
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

// put says what the caller whose OR returned old must do with its slot.
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

// nextIdle is the mask after a magazine none of whose slots is in use was closed to be used anew,
// or ok == false if one is in use, or if a caller is yet to hand the magazine over. whole are all
// slots that the magazine has; handed says that, if it is parked, the owner has been handed it.
func nextIdle(mask, whole uint64, handed bool) (next uint64, ok bool) {
	if mask&^parkedBit != whole || (mask&parkedBit != 0 && !handed) {
		return mask, false
	}
	return closedBit, true
}

// broughtHome are the slots that are home because a Swap with closedBit returned old.
func broughtHome(old uint64) uint64 {
	if old >= closedBit {
		return 0
	}
	return old & slotBits
}

// home is where a freed slot goes.
type home uint8

const (
	inMask       home = iota // it can be taken again
	handMagazine             // so it can, once the owner has been handed the magazine
	handSlot                 // to the owner
)
