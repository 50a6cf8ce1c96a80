package heap

// TakeSomePages is TakePages of one part of each block's whole pages: that which narrow chooses. What is left of a block
// may hold another.
func (h *Heap) TakeSomePages(limit uint32, narrow func(first, end uint32) (from, to uint32), visit func(firstPage, pages uint32) bool) uint32 {
	var blocks []int32 // before any is cut: what is left of one is not visited
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

// EachPages visits the whole pages [first, end) of each free block that holds any.
func (h *Heap) EachPages(visit func(first, end uint32)) {
	h.bins.Each(h.links, h.pageUnits, func(i int32) bool {
		if first, end := h.wholePages(i); first < end {
			visit(first, end)
		}
		return true
	})
}
