package magazine

import "math/bits"

// SizeCount is the number of sizes by which frees are counted: a unit, and each power of two of it up to the
// longest block that an uint32 counts.
const SizeCount = 33

// SizeOf returns the size of a block of that many units: the binary logarithm of the smallest power of two that
// is as long.
func SizeOf(units uint32) int { return bits.Len32(units - 1) }

// SameSize reports whether two lengths have one size: their highest bits are the same.
func SameSize(a, b uint32) bool { return (a-1)^(b-1) <= (a-1)&(b-1) }
