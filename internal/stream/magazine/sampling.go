package magazine

import (
	"math/bits"

	"github.com/go-vram/vram/cudadrv"
)

// Share is the probability with which an allocation is sampled, for each unit of its block: so many
// in Everything. 0: none is.
type Share uint32

const (
	// Everything is the share that samples every allocation, and the number of outcomes of a draw.
	Everything Share = 1 << drawBits
	// drawBits: not fewer, since shares must be halved many times; not more, since a share and a draw have
	// 32 bits, and a share times the length of a block 64.
	drawBits = 31
)

// Threshold is the number of outcomes of a draw that sample a block of that many units: its
// probability in Everything. Precondition: share is at most Everything, and the units fit an uint32.
func (share Share) Threshold(units uint64) uint32 {
	return uint32(min(units*uint64(share), uint64(Everything))) //nolint:gosec // 32 bits
}

// Draw decides about the allocation that a handle stands for: it is sampled if the draw is below
// the threshold of its block. There is no state behind it: the draws of all slots and generations are
// spread like random numbers, and the same in each run that allocates alike.
func Draw(address cudadrv.Ptr, handle uint64) uint32 {
	return draw(uint64(address) + handle>>generationShift)
}

// DrawClaim decides in the same way about a request that has no slot yet: the so-and-so-many-th of a stream.
func DrawClaim(stream uint32, number uint64) uint32 { return draw(uint64(stream)<<32 + number) }

// draw spreads keys that are near each other: a multiplication by the odd number next to 2^64 over the golden ratio, and
// both halves of the product of that with itself, some of its bits inverted, as wyhash does (Wang Yi, 2019).
func draw(key uint64) uint32 {
	z := key * 0x9E3779B97F4A7C15
	high, low := bits.Mul64(z, z^0xD6E8FEB86659FD93)
	return uint32((high ^ low) >> (64 - drawBits)) //nolint:gosec // 31 bits
}

// Draw is that of the allocation that a handle of the slot stands for.
func (s *Slot) Draw(handle uint64) uint32 { return Draw(s.address, handle) }

// Samples reports whether a draw samples an allocation of that many units.
func (share Share) Samples(draw uint32, units uint64) bool { return uint64(draw) < units*uint64(share) }

// Share is that of the allocations that are sampled at present: the owner's, or less while LowerShare has it so. 0: none is.
func (h *Home) Share() Share { return Share(h.share.Load()) }

// LowerShare halves the owner's share so many times, but not below 1; 0 times is the whole. It does nothing where everything or
// nothing is sampled, or another share is set meanwhile. Any goroutine may call it.
func (h *Home) LowerShare(times uint32) {
	was := h.share.Load()
	switch whole := h.wholeShare.Load(); Share(whole) { // read second: a share that the owner sets afterwards ends the exchange
	case 0, Everything:
	default:
		h.share.CompareAndSwap(was, max(whole>>times, 1))
	}
}

// SetShare sets which allocations are sampled from now on.
func (o *Owner) SetShare(share Share) {
	if o.home.wholeShare.Load() != uint32(share) {
		o.home.wholeShare.Store(uint32(share))
		o.home.share.Store(uint32(share))
	}
}
