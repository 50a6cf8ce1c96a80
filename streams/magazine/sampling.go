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
	// threshold lies in one word with a count.
	drawBits = 23

	// In Magazine.contended: the threshold of a magazine's blocks, and the count above it.
	thresholdMask = 1<<(drawBits+1) - 1
	contendedStep = thresholdMask + 1

	// In Home.rate: the share, and above it the highest chance.
	maxChanceShift = 32
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

// Share is that of the allocations that are sampled.
func (h *Home) Share() Share { return Share(h.rate.Load() & math.MaxUint32) }

// Chance is the probability, in Everything, with which an allocation of that many units is sampled: its
// threshold, or the highest chance if that is less.
func (h *Home) Chance(units uint64) uint32 {
	rate := h.rate.Load()
	return min(Share(rate&math.MaxUint32).Threshold(units), maxChance(rate))
}

// WithinLimit reports whether a draw is below the highest chance of the slot's cache.
func (s *Slot) WithinLimit(draw uint32) bool { return draw < maxChance(s.magazine.home.rate.Load()) }

// LimitChance sets the highest probability, in Everything, with which any allocation is sampled, however long its
// block is. It does nothing where everything is sampled. Any goroutine may call it.
func (h *Home) LimitChance(chance uint32) {
	for {
		old := h.rate.Load()
		next := old&math.MaxUint32 | uint64(chance)<<maxChanceShift
		if next == old || Share(old&math.MaxUint32) == Everything || h.rate.CompareAndSwap(old, next) {
			return
		}
	}
}

// maxChance is the highest chance of a Home.rate.
func maxChance(rate uint64) uint32 { return uint32(rate >> maxChanceShift) }

// SetShare sets which allocations are sampled from now on, and ends a limit of their chance. It visits every magazine.
func (o *Owner) SetShare(share Share) {
	if o.home.Share() == share {
		return
	}
	o.home.rate.Store(uint64(share) | uint64(Everything)<<maxChanceShift)
	o.All(func(m *Magazine) { m.setThreshold(share.Threshold(uint64(m.units))) })
}

// setThreshold sets the threshold of a magazine whose blocks have one length; that of others is 0.
func (m *Magazine) setThreshold(threshold uint32) {
	for {
		old := m.contended.Load()
		if m.contended.CompareAndSwap(old, old&^thresholdMask|threshold) {
			return
		}
	}
}
