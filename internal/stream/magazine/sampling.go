package magazine

import (
	"math/bits"

	"github.com/go-vram/vram/cudadrv"
)

// Share is the probability with which an allocation is sampled, for each unit of its block, in parts of
// Everything. 0: none is.
type Share uint32

const (
	// Everything is the share that samples every allocation, and the number of outcomes of a draw.
	Everything Share = 1 << drawBits
	// drawBits: not fewer, since shares must be halved many times; not more, since a share and a draw have 32
	// bits, and a share times the length of a block 64.
	drawBits = 31
)

// Threshold returns the number of outcomes of a draw that sample a block of that many units: its probability
// in parts of Everything. Precondition: share is at most Everything, and the units fit an uint32.
func (share Share) Threshold(units uint64) uint32 {
	return uint32(min(units*uint64(share), uint64(Everything))) //nolint:gosec // 32 bits
}

// Draw returns the draw of the allocation of a handle, which is sampled if the draw is below the threshold of
// its block. It is stateless: the draws of all slots and generations are spread like random numbers, and
// equal in each run with the same allocations.
func Draw(address cudadrv.Ptr, handle uint64) uint32 {
	return draw(uint64(address) + handle>>generationShift)
}

// DrawClaim is Draw for a request that has no slot yet, by its number in a stream.
func DrawClaim(stream uint32, number uint64) uint32 { return draw(uint64(stream)<<32 + number) }

// draw hashes similar keys to distant values: it multiplies by the odd number next to 2^64 over the golden
// ratio, and combines both halves of the square of that, with some bits inverted, as wyhash does (Wang Yi,
// 2019).
func draw(key uint64) uint32 {
	z := key * 0x9E3779B97F4A7C15
	high, low := bits.Mul64(z, z^0xD6E8FEB86659FD93)
	return uint32((high ^ low) >> (64 - drawBits)) //nolint:gosec // 31 bits
}

// Draw returns the draw of the allocation of a handle of the slot.
func (s *Slot) Draw(handle uint64) uint32 { return Draw(s.address, handle) }

// Samples reports whether a draw samples an allocation of that many units.
func (share Share) Samples(draw uint32, units uint64) bool { return uint64(draw) < units*uint64(share) }

// Share returns the current share of sampled allocations: the owner's, or less after LowerShare. 0: none is.
func (h *Home) Share() Share { return Share(h.share.Load()) }

// LowerShare halves the owner's share times times, but not below 1; 0 restores it. It does nothing if
// everything or nothing is sampled, or if another share is set concurrently. It is safe for concurrent use.
func (h *Home) LowerShare(times uint32) {
	was := h.share.Load()
	switch whole := h.wholeShare.Load(); Share(whole) { // read second: a later SetShare fails the exchange
	case 0, Everything:
	default:
		h.share.CompareAndSwap(was, max(whole>>times, 1))
	}
}
