// Package sizeclass rounds requests to block lengths, counted in units of 512 bytes.
//
// Requests up to MaxBytes (64 KiB) are rounded to one of Count classes, eight for each doubling, and
// carved from spans; larger ones are rounded to whole units and keep their exact length. The spacing
// was measured not to matter for the footprint; eight a doubling bounds the waste of a block at 12.5 %.
//
//	units  1 2 3 4 5 6 7 8 | 9 10 .. 16 | 18 20 .. 32 | 36 40 .. 64 | 72 80 .. 128
//	step   1               | 1          | 2           | 4           | 8
package sizeclass

// UnitBytes is the rounding step of every request and the minimum alignment of every block. Not smaller: CUDA
// kernels need 256, and copy engines prefer 512. Not larger: there are many small tensors.
const UnitBytes = 1 << UnitShift

// UnitShift is the binary logarithm of UnitBytes.
const UnitShift = 9

const (
	// MaxBytes is the largest request that has a class.
	MaxBytes = MaxUnits << UnitShift
	// MaxUnits is MaxBytes in units.
	MaxUnits = 128
	// MostBlocks bounds the blocks of a span to the slots of a magazine.
	MostBlocks = 62
	// Count is the number of classes.
	Count = 8 + 4*8
)

// Units returns the least number of units that hold that many bytes, at least 1.
func Units(bytes int64) uint64 {
	return max(1, (uint64(bytes)+UnitBytes-1)>>UnitShift)
}

// classOf maps units to classes; entry 0 is not used.
var classOf, unitsOf = tables() //nolint:gochecknoglobals // constant table

func tables() (of [MaxUnits + 1]uint8, units [Count]uint32) {
	class, u := 0, uint32(1)
	for step := uint32(1); u <= MaxUnits; u += step {
		if u > 16 {
			step = u - 1
			step = 1 << (bitLen(step) - 4)
			u = (u + step - 1) &^ (step - 1)
		}
		units[class] = u
		class++
	}
	for class, from := 0, uint32(1); class < Count; class++ {
		for ; from <= units[class]; from++ {
			of[from] = uint8(class)
		}
	}
	return of, units
}

func bitLen(u uint32) (n uint32) {
	for ; u > 0; u >>= 1 {
		n++
	}
	return n
}

// Of returns the class of a request of that many units. Precondition: 1 <= units <= MaxUnits.
func Of(units uint64) int { return int(classOf[units]) }

// BlockUnits returns the length of the blocks of a class.
func BlockUnits(class int) uint32 { return unitsOf[class] }

// SpanUnits returns the length of the span of a class: 64 KiB, at least four blocks and at most MostBlocks.
// Not smaller: a span costs a search. Not larger: a span is returned as a whole, and spans of 16 to 256 KiB
// were measured to make no difference to the footprint.
func SpanUnits(class int) uint32 {
	block := BlockUnits(class)
	return min(max(MaxUnits, 4*block), MostBlocks*block)
}

// SpanBlocks returns the number of blocks in a span.
func SpanBlocks(class int) uint32 { return SpanUnits(class) / BlockUnits(class) }
