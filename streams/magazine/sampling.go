package magazine

import "github.com/go-vram/vram/cudadrv"

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
)

// Threshold is the number of outcomes of a draw that sample a block of that many units: its
// probability in Everything. Precondition: share is at most Everything, and the units fit an uint32.
func (share Share) Threshold(units uint64) uint32 {
	return uint32(min(units*uint64(share), uint64(Everything))) //nolint:gosec // 24 bits
}

// Draw decides about the allocation that a handle stands for: it is sampled if the draw is below
// the threshold of its block. There is no state behind it: the draws of all slots and generations are
// spread like random numbers (the mixing function of SplitMix64, by Steele, Lea and Flood 2014), and
// the same in each run that allocates alike.
func Draw(address cudadrv.Ptr, handle uint64) uint32 {
	z := uint64(address) + handle*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return uint32(z >> (64 - drawBits)) //nolint:gosec // 23 bits
}

// Drawn is the draw of a handle of the slot, and whether the allocation that it stands for is sampled where
// that share is.
func (s *Slot) Drawn(handle uint64, share Share) (draw uint32, isSampled bool) {
	draw = Draw(s.address, handle)
	return draw, draw < share.Threshold(uint64(s.magazine.UnitsOf(s)))
}

// Share is that of the allocations that are sampled.
func (h *Home) Share() Share { return Share(h.share.Load()) }

// SetShare sets which allocations are sampled from now on. It visits every magazine.
func (o *Owner) SetShare(share Share) {
	if o.home.Share() == share {
		return
	}
	o.home.share.Store(uint32(share))
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
