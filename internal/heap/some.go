package heap

import "math"

// TakeSomePages is TakePages of one part of each block's whole pages, chosen by narrow. The rest of a block
// may have another such part.
func (h *Heap) TakeSomePages(limit uint32, narrow func(first, end uint32) (from, to uint32), visit func(firstPage, pages uint32) bool) uint32 {
	var blocks []int32 // collected before any cut: the rest of a cut block is not visited
	h.bins.Each(h.links, h.pageUnits, func(i int32) bool {
		blocks = append(blocks, i)
		return true
	})
	var taken uint32
	for _, i := range blocks {
		first, end := h.wholePages(i)
		if first < end {
			first, end = narrow(first, end)
		}
		if taken == limit {
			break
		}
		if first >= end {
			continue
		}
		end = first + min(end-first, limit-taken)
		h.cut(i, first, end)
		taken += end - first
		if !visit(first, end-first) {
			break
		}
	}
	return taken
}

// EachPages visits the whole pages [first, end) of each free block that has any.
func (h *Heap) EachPages(visit func(first, end uint32)) {
	h.bins.Each(h.links, h.pageUnits, func(i int32) bool {
		if first, end := h.wholePages(i); first < end {
			visit(first, end)
		}
		return true
	})
}

// TakeLongest takes pages of the longest free blocks out of the heap, in the order of their bins, until they
// add up to that many or there are no more, and calls visit for the pages of each block. If whole is set it
// takes all pages of the last one. narrow, if not nil, limits them to those that may leave.
func (h *Heap) TakeLongest(pages uint32, whole bool, narrow func(first, end uint32) (from, to uint32), visit func(firstPage, pages uint32)) {
	if pages == 0 {
		return
	}
	var blocks []int32 // collected before any cut: the rest of a cut block is not visited
	var sum uint32
	h.bins.EachLongest(h.links, h.pageUnits, func(i int32) bool {
		first, end := h.wholePages(i)
		if first < end {
			blocks = append(blocks, i)
			sum += end - first
		}
		return narrow != nil || sum < pages
	})
	for _, i := range blocks {
		first, end := h.wholePages(i)
		if narrow != nil {
			first, end = narrow(first, end)
		}
		if first >= end {
			continue
		}
		if !whole {
			end = first + min(end-first, pages)
		}
		h.cut(i, first, end)
		visit(first, end-first)
		if end-first >= pages {
			return
		}
		pages -= end - first
	}
}

// TakeFitting takes all pages of about the shortest free block that has so many (see Bins.Fit), and returns
// them. It reports false if there is none, or if the block found has fewer whole pages.
func (h *Heap) TakeFitting(pages uint32) (firstPage, count uint32, ok bool) {
	units := uint64(pages) * uint64(h.pageUnits)
	if pages == 0 || units > math.MaxUint32 {
		return 0, 0, false
	}
	i := h.find(uint32(units))
	if i == None {
		return 0, 0, false
	}
	first, end := h.wholePages(i)
	if end < first+pages {
		return 0, 0, false
	}
	h.cut(i, first, end)
	return first, end - first, true
}

// LongestBound returns a number of units that no free block exceeds, 0 if there is none.
func (h *Heap) LongestBound() uint32 { return h.bins.LongestBound() }
