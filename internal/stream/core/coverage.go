package core

// coverage is, for a stream on which only its callers may record a fence, which pages no fence covers:
// those on which a block came home, or that were granted, after the last fence was ordered. Before begin
// every page counts as covered.
//
//	open --Seal--> sealed --Covered--> covered
//	  ^              |                    |
//	  '---Unsealed---'                    |
//	  '------- a block comes home --------'
type coverage struct {
	ranges       *ranges
	open, sealed pageSet
	on           bool
	wanted       bool // the next caller shall record a fence
}

// begin keeps the books from now on.
func (c *coverage) begin() {
	c.on = true
	// The stream's work may still be at a block that came home.
	c.ranges.onHome = append(c.ranges.onHome, func(block int32) { c.open.add(c.ranges.pagesOf(block)) })
	// Granted pages may have a later fence than the stream's last, also of a stream that this one waits for.
	c.ranges.onGrant = append(c.ranges.onGrant, c.open.add)
}

// Seal begins a fence: it will cover every block that has come home until now.
func (c *coverage) Seal() {
	c.wanted = false
	c.sealed.addAll(&c.open)
	c.open.clear()
}

// Covered notes that the fence of the last Seal was recorded.
func (c *coverage) Covered() { c.sealed.clear() }

// Unsealed notes that it could not be recorded.
func (c *coverage) Unsealed() {
	c.open.addAll(&c.sealed)
	c.sealed.clear()
}

// WantFence has the next turn of a caller leave a fence if a page is open.
func (c *coverage) WantFence() { c.wanted = c.open.any() }

// FenceWanted reports whether a fence is wanted.
func (c *coverage) FenceWanted() bool { return c.wanted }

// UncoveredBytes are those of free whole pages that no fence covers.
func (c *coverage) UncoveredBytes() int64 {
	if !c.on {
		return 0
	}
	var pages int64
	c.ranges.heap.EachPages(func(first, end uint32) {
		for at := first; at < end; at++ {
			if c.lacks(at) {
				pages++
			}
		}
	})
	return pages * c.ranges.pageBytes()
}

// lacks reports whether no fence covers a page.
func (c *coverage) lacks(page uint32) bool { return c.open.has(page) || c.sealed.has(page) }

// within is what takePages is limited by if only covered pages may leave.
func (c *coverage) within(coveredOnly bool) func(first, end uint32) (from, to uint32) {
	if !coveredOnly || !c.on {
		return nil
	}
	return c.longest
}

// longest is the longest run of covered pages in [first, end).
func (c *coverage) longest(first, end uint32) (from, to uint32) {
	for at := first; at < end; {
		for at < end && c.lacks(at) {
			at++
		}
		begin := at
		for at < end && !c.lacks(at) {
			at++
		}
		if at-begin > to-from {
			from, to = begin, at
		}
	}
	return from, to
}
