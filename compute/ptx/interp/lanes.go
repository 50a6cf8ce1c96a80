package interp

import "math/bits"

// full is the mask of all threads of a warp.
const (
	warpThreads = 32
	full        = 1<<warpThreads - 1
)

// lanes are the values of a register in the threads of a warp. A value has the bits of its type, zero above them.
type lanes [warpThreads]uint64

// next returns the first thread of a mask.
func next(m uint32) int { return bits.TrailingZeros32(m) & (warpThreads - 1) }

func maskIf(yes bool) uint32 {
	if yes {
		return full
	}
	return 0
}
