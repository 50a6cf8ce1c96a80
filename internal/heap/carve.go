package heap

// Carve finds a free block as Take does and cuts contiguous blocks of that many units from its low end, as
// many as fit, but at most most. It marks them used and passes each to visit, in rising order. It returns
// their number: 0 if no free block is long enough. Precondition: units > 0 and most > 0.
func (h *Heap) Carve(units uint32, most int, visit func(block int32)) int {
	i := h.find(units)
	if i == None {
		return 0
	}
	length := h.nodes[i].units
	count := min(most, int(length/units))
	h.bins.Remove(h.links, i)
	h.freeUnits -= uint64(count) * uint64(units)
	h.shorten(i, units)
	for at := 1; ; at++ {
		visit(i)
		length -= units
		if at == count {
			break
		}
		i = h.usedBehind(i, units)
	}
	if length > 0 {
		h.freeBehind(i, length)
	}
	return count
}

// TakeAligned is Take for a block whose start, in units from the heap's origin, has that remainder modulo
// align. It first visits at most alignedVisits free blocks, the shortest first, for one with such a start;
// otherwise it takes any of at least units+align-1. Precondition: units > 0, align is a power of two, phase <
// align.
func (h *Heap) TakeAligned(units, align, phase uint32) int32 {
	return h.TakeAlignedBy(units, align, func(uint32) uint32 { return phase })
}

// TakeAlignedBy is TakeAligned with a remainder that depends on the offset of the free block, for pages that
// are not in the order of their numbers. It is constant within a run of pages.
func (h *Heap) TakeAlignedBy(units, align uint32, phase func(offset uint32) uint32) int32 {
	i, front := h.alignedFit(units, align, phase)
	if i == None {
		return None
	}
	return h.takeWithin(i, front, units)
}

// takeWithin takes units at an offset into a free block; the parts before and after stay free.
func (h *Heap) takeWithin(i int32, front, units uint32) int32 {
	h.bins.Remove(h.links, i)
	length := h.nodes[i].units
	if front > 0 {
		h.shorten(i, front)
		h.nodes[i].state = Free
		h.bins.Insert(h.links, i, front)
		i = h.usedBehind(i, units)
	} else {
		h.shorten(i, units)
	}
	h.freeUnits -= uint64(units)
	if rest := length - front - units; rest > 0 {
		h.freeBehind(i, rest)
	}
	return i
}

// alignedVisits bounds the search for a block that fits although it is too short to fit with any start. Not
// larger: it is a scan. Not smaller: if all free blocks are about as long as the request, most searches end
// with one of the first dozen.
const alignedVisits = 32

// alignedFit returns a free block that holds the units at an aligned start, and the offset of that.
func (h *Heap) alignedFit(units, align uint32, phase func(uint32) uint32) (block int32, front uint32) {
	block = None
	looked := 0
	h.bins.Each(h.links, units, func(i int32) bool {
		looked++
		if f := h.front(i, align, phase); uint64(f)+uint64(units) <= uint64(h.nodes[i].units) {
			block, front = i, f
		}
		return block == None && looked < alignedVisits
	})
	h.visits += uint64(looked)
	if block != None || uint64(units)+uint64(align) > 1<<32 {
		return block, front
	}
	i := h.find(units + align - 1)
	if i == None {
		return None, 0
	}
	return i, h.front(i, align, phase)
}

// front returns the distance from the start of a block to the next unit with that remainder.
func (h *Heap) front(block int32, align uint32, phase func(uint32) uint32) uint32 {
	at := h.nodes[block].offset
	return (phase(at) - at) & (align - 1)
}

// shorten makes a block that is in no bin used, with that length. The units after it belong to no block until
// usedBehind or freeBehind is called.
func (h *Heap) shorten(i int32, units uint32) {
	h.nodes[i].units, h.nodes[i].state = units, Used
}

// usedBehind makes the units after a block a used block.
func (h *Heap) usedBehind(i int32, units uint32) int32 {
	next := h.newNode() // may move the array
	h.place(next, i, units, Used)
	return next
}

// freeBehind makes the units after a block a free block.
func (h *Heap) freeBehind(i int32, units uint32) {
	next := h.newNode()
	h.place(next, i, units, Free)
	h.bins.Insert(h.links, next, units)
}

func (h *Heap) place(i, behind int32, units uint32, s State) {
	b := &h.nodes[behind]
	after := b.next
	h.nodes[i] = node{offset: b.offset + b.units, units: units, prev: behind, next: after, state: s}
	b.next = i
	h.nodes[after].prev = i
}
