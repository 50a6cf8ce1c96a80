package heap

import (
	"maps"
	"slices"
)

// TakeAt takes exactly that place and marks it used, or returns None if it is not free as a whole. It looks at the
// free blocks one by one, the shortest that could hold it first. Precondition: units > 0.
func (h *Heap) TakeAt(offset, units uint32) int32 {
	h.Merge()
	found := None
	h.bins.Each(h.links, units, func(i int32) bool {
		n := &h.nodes[i]
		if n.offset <= offset && uint64(offset)+uint64(units) <= uint64(n.offset)+uint64(n.units) {
			found = i
		}
		return found == None
	})
	if found == None {
		return None
	}
	return h.takeWithin(found, offset-h.nodes[found].offset, units)
}

// EachFree visits the free blocks of at least that many units, the shortest first, until visit says false.
func (h *Heap) EachFree(leastUnits uint32, visit func(offset, units uint32) bool) {
	h.Merge()
	h.bins.Each(h.links, leastUnits, func(i int32) bool { return visit(h.nodes[i].offset, h.nodes[i].units) })
}

// EachRun visits the blocks of each run in rising order, the runs in the order of their pages.
func (h *Heap) EachRun(visit func(block int32, s State)) {
	for _, page := range slices.Sorted(maps.Keys(h.starts)) {
		for i := h.nodes[h.starts[page]].next; h.nodes[i].state != Edge; i = h.nodes[i].next {
			visit(i, h.nodes[i].state)
		}
	}
}

// Split cuts a used block in two used ones. It returns the second. Precondition: 0 < units < the block's.
func (h *Heap) Split(block int32, units uint32) int32 {
	rest := h.nodes[block].units - units
	h.shorten(block, units)
	return h.usedBehind(block, rest)
}

// Join makes one used block of two that lie side by side, the first before the second. It keeps the first.
func (h *Heap) Join(left, right int32) { h.absorb(left, right) }
