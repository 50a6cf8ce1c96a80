package magazine

import (
	"math"
	"math/bits"

	"github.com/go-vram/vram/cudadrv"
)

// Share is the probability with which an allocation is sampled, for each unit of its block: so many
// in Everything. 0: none is.
type Share uint32

const (
	// Everything is the share that samples every allocation, and the number of outcomes of a draw.
	Everything Share = 1 << drawBits
	// drawBits: not fewer, since the shortest block must be sampled rarely; not more, since a
	// share lies in one word with a chance.
	drawBits = 23
)

// Threshold is the number of outcomes of a draw that sample a block of that many units: its
// probability in Everything. Precondition: share is at most Everything, and the units fit an uint32.
func (share Share) Threshold(units uint64) uint32 {
	return uint32(min(units*uint64(share), uint64(Everything))) //nolint:gosec // 24 bits
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
	return uint32((high ^ low) >> (64 - drawBits)) //nolint:gosec // 23 bits
}

// Draw is that of the allocation that a handle of the slot stands for.
func (s *Slot) Draw(handle uint64) uint32 { return Draw(s.address, handle) }

// Rate says which allocations of a cache are sampled: a Share, and above it the highest chance with which any is,
// however long its block. 0: none is.
type Rate uint64

// highestShift is where the highest chance of a Rate begins.
const highestShift = 32

// rateOf samples a share, without a limit.
func rateOf(share Share) Rate {
	if share == 0 {
		return 0
	}
	return Rate(share) | Rate(Everything)<<highestShift
}

// Share is that of the allocations that are sampled.
func (r Rate) Share() Share { return Share(r & math.MaxUint32) }

func (r Rate) highest() uint32 { return uint32(r >> highestShift) }

// Chance is the probability, in Everything, with which an allocation of that many units is sampled: its
// threshold, or the highest chance if that is less.
func (r Rate) Chance(units uint64) uint32 { return min(r.Share().Threshold(units), r.highest()) }

// Samples reports whether a draw samples an allocation of that many units.
func (r Rate) Samples(draw uint32, units uint64) bool {
	return draw < r.highest() && uint64(draw) < units*uint64(r.Share())
}

// Rate is that of the cache.
func (h *Home) Rate() Rate { return Rate(h.rate.Load()) }

// LimitChance sets the highest probability, in Everything, with which any allocation is sampled, however long its
// block is. It does nothing where everything or nothing is sampled. Any goroutine may call it.
func (h *Home) LimitChance(chance uint32) {
	for {
		old := h.Rate()
		share := old.Share()
		if share == 0 || share == Everything {
			return
		}
		next := Rate(share) | Rate(chance)<<highestShift
		if next == old || h.rate.CompareAndSwap(uint64(old), uint64(next)) {
			return
		}
	}
}

// SetShare sets which allocations are sampled from now on, and ends a limit of their chance.
func (o *Owner) SetShare(share Share) {
	if o.home.Rate().Share() != share {
		o.home.rate.Store(uint64(rateOf(share)))
	}
}
