package host

import "math/bits"

// The classes of a Pool: powers of two up to 64 MiB, above that eight steps for each doubling up to
// 1 TiB. Not fewer for large blocks: rounding one up to a power of two may lock half as much memory
// again. Not more for small ones: a class serves many sizes of a program, and each has shelves.
const (
	powerShift = 26 // of the largest class that is a power of two
	topShift   = 40 // of maxBytes
	stepShift  = 3  // eight steps
	classCount = powerShift + (topShift-powerShift)<<stepShift + 1
)

// classOf returns the least class that holds so many bytes. Precondition: 1 <= bytes <= maxBytes.
func classOf(bytes int64) int {
	shift := bits.Len64(uint64(bytes - 1))
	if shift <= powerShift {
		return shift
	}
	step := shift - 1 - stepShift
	steps := (uint64(bytes) - 1<<(shift-1) + 1<<step - 1) >> step // 1 to 8
	return powerShift + (shift-1-powerShift)<<stepShift + int(steps)
}

// classBytes returns the length of a class's blocks.
func classBytes(class int) int64 {
	if class <= powerShift {
		return 1 << class
	}
	steps := class - powerShift - 1
	shift := powerShift + steps>>stepShift
	return 1<<shift + int64(steps&(1<<stepShift-1)+1)<<(shift-stepShift)
}

// leastBytes returns the length of the smallest blocks that are worth keeping apart: for page-locked
// memory a page, since no driver locks less; for a stream's memory its unit; for the Go heap a cache
// line, so that no two blocks share one.
func leastBytes(k Kind) int64 {
	switch k {
	case PageLocked:
		return pageBytes
	case Device:
		return 512
	case NoMemory, Pageable:
	}
	return 64
}

// span returns how many bytes a block must have so that so many aligned ones are in it: blocks are
// aligned to their length, if that is a power of two, or to a page.
func span(bytes, align int64) int64 {
	if align > pageBytes {
		return bytes + align - pageBytes
	}
	return max(bytes, align)
}
