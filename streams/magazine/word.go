package magazine

import "math/bits"

// The word of a slot.
const (
	flagBits        = 8
	flagMask        = 1<<flagBits - 1
	generationStep  = 1 << flagBits
	generationShift = flagBits
)

// Flag sends the free of a slot the slow way.
type Flag uint64

// The flags of a slot's word.
const (
	// Announced says that streams other than the slot's own use the block.
	Announced Flag = 1 << iota
	// Detached says that the block shall not stay in its magazine.
	Detached
)

// nextFree is the word after the free of a handle whose word is handle, or ok == false if the handle is
// not live.
func nextFree(word, handle uint64) (next uint64, ok bool) {
	if word>>generationShift != handle>>generationShift {
		return word, false
	}
	return word + generationStep, true
}

// nextFlag is the word with a flag set, or ok == false if the handle is not live.
func nextFlag(word, handle uint64, f Flag) (next uint64, ok bool) {
	if word>>generationShift != handle>>generationShift {
		return word, false
	}
	return word | uint64(f), true
}

// The mask of a magazine.
const (
	// SlotCount is the number of slots in a magazine: what a word holds beside its two states.
	SlotCount = 62

	slotBits  uint64 = 1<<SlotCount - 1
	parkedBit uint64 = 1 << 62
	closedBit uint64 = 1 << 63
)

// nextTake is the mask after the lowest free slot was taken, or ok == false if there is none to take.
func nextTake(mask uint64) (next uint64, slot int, ok bool) {
	if mask == 0 || mask >= parkedBit {
		return mask, 0, false
	}
	return mask & (mask - 1), bits.TrailingZeros64(mask), true
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

// home is where a freed slot goes.
type home uint8

const (
	inMask       home = iota // it can be taken again
	handMagazine             // so it can, once the owner has been handed the magazine
	handSlot                 // to the owner
)
