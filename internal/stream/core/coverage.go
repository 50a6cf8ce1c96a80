package core

import "slices"

// coverage tracks which pages no fence covers, for a stream on which only its callers may record a fence:
// pages on which a block became free, or that were granted, after the last fence. Before begin every page
// counts as covered.
//
//	open --Seal--> sealed --Covered--> covered
//	  ^              |                    |
//	  '---Unsealed---'                    |
//	  '------- a block becomes free ------'
type coverage struct {
	ranges       *ranges
	open, sealed pageSet
	on           bool
	wanted       bool // the next caller should record a fence
}

// begin starts the tracking.
func (c *coverage) begin() {
	c.on = true
	// The stream may still use a freed block.
	c.ranges.onFree = append(c.ranges.onFree, func(block int32) { c.open.add(c.ranges.pagesOf(block)) })
	// Granted pages may have a later fence than the stream's last, also of a stream that this one waits for.
	c.ranges.onGrant = append(c.ranges.onGrant, c.open.add)
}

// Seal begins a fence: it will cover every block freed until now.
func (c *coverage) Seal() {
	c.wanted = false
	c.sealed.addAll(&c.open)
	clear(c.open.words)
}

// Covered notes that the fence of the last Seal was recorded.
func (c *coverage) Covered() { clear(c.sealed.words) }

// Unsealed notes that the fence could not be recorded. The next Seal covers the pages.
func (c *coverage) Unsealed() {
	c.open.addAll(&c.sealed)
}

// WantFence requests a fence of the next caller's turn if a page is open.
func (c *coverage) WantFence() {
	c.wanted = slices.ContainsFunc(c.open.words, func(w uint64) bool { return w != 0 })
}

// FenceWanted reports whether a fence is requested.
func (c *coverage) FenceWanted() bool { return c.wanted }

// UncoveredBytes returns the bytes of free whole pages that no fence covers.
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

// within returns the filter for takePages: if coveredOnly is set, only covered pages may leave.
func (c *coverage) within(coveredOnly bool) func(first, end uint32) (from, to uint32) {
	if !coveredOnly || !c.on {
		return nil
	}
	return c.longest
}

// longest returns the longest run of covered pages in [first, end).
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
