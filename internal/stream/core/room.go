package core

import (
	"github.com/go-vram/vram/internal/heap"
)

// room takes blocks from the heap. Where no free range fits it makes room: it closes magazines and retires
// spans that no buffer uses.
type room struct {
	ranges    *ranges
	retention *retention
	spans     *spans
}

// take takes a block of that many units, or heap.None.
func (r *room) take(units uint32) int32 {
	block := r.ranges.heap.Take(units)
	if block == heap.None && r.make(units) {
		block = r.ranges.heap.Take(units)
	}
	return block
}

// takeAligned takes a block whose address is a multiple of that many units, or heap.None.
func (r *room) takeAligned(units, alignUnits uint32) int32 {
	block := r.ranges.takeAligned(units, alignUnits)
	for block == heap.None && r.retention.evictOldest() {
		block = r.ranges.takeAligned(units, alignUnits)
	}
	return block
}

// make closes magazines of large blocks until a range of that many units is free, and then retires idle
// spans. It reports whether a range fits.
func (r *room) make(units uint32) bool {
	for r.retention.evictOldest() {
		if r.ranges.heap.LargestFits(units) {
			return true
		}
	}
	r.spans.retireIdle() // else the pool would reclaim them for this request
	return r.ranges.heap.LargestFits(units)
}

// closeUnused closes magazines of large blocks and retires spans that were not used since the last call.
func (r *room) closeUnused() {
	r.retention.evictUnused()
	r.spans.retireUnused()
}

// closeIdle closes magazines of large blocks with a free slot, and retires idle spans.
func (r *room) closeIdle() {
	for r.retention.evictOldest() {
	}
	r.spans.retireIdle()
}
