package core

import "github.com/go-vram/vram/internal/stream/magazine"

// idle detects from tick to tick whether the stream is active.
type idle struct {
	owner  *magazine.Owner
	ranges *ranges
	misses *misses
	digest uint64 // changes with each event
	ticks  int    // since the last change
	spent  bool   // nothing is left to release
}

// note begins a tick. Events are a request by turn, a collected block, a change of the stream's pages, and an
// allocation or free in a magazine.
func (i *idle) note() {
	digest := i.misses.Turns
	mix := func(n uint64) { digest = (digest ^ n) * 0x9E3779B97F4A7C15 }
	mix(i.ranges.heap.HeldUnits())
	mix(i.ranges.heap.FreeUnits())
	i.owner.EachOpen(func(m *magazine.Magazine, installed bool) {
		mix(uint64(m.FreeSlots())) //nolint:gosec // a count
		if installed {             // else only requests by turn take slots: each free changes the count
			mix(m.Frees())
		}
	})
	if digest == i.digest {
		i.ticks++
		return
	}
	i.digest, i.ticks, i.spent = digest, 0, false
}

// skip ignores the core's own release as an event.
func (i *idle) skip() {
	ticks, spent := i.ticks, i.spent
	i.note()
	i.ticks, i.spent = ticks, spent
}
