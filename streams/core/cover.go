package core

import (
	"github.com/go-vram/vram/internal/sizeclass"
)

// cover is, for a stream on which only its callers may record a fence, what no fence covers yet: the pages to which
// something came home, or that were granted. A page is open until a fence was ordered after that and recorded. A nil cover
// covers everything.
//
//	open --Seal--> sealed --Covered--> covered
//	  ^              |                    |
//	  '---Unsealed---'                    |
//	  '------- a block comes home --------'
type cover struct {
	open, sealed pageSet
	wanted       bool // a fence, of the next caller
}

// cameHome notes that the stream's work may still be at a block that came home.
func (c *Core) cameHome(block int32) {
	first := c.heap.Offset(block) / c.pageUnits
	end := (c.heap.Offset(block) + c.heap.Units(block) + c.pageUnits - 1) / c.pageUnits
	c.cover.open.add(first, end)
}

// Seal begins a fence: it will cover what has come home until now.
func (c *Core) Seal() {
	c.cover.wanted = false
	c.watch()
	c.cover.sealed.addAll(&c.cover.open)
	c.cover.open.clear()
}

// Covered says that the fence of the last Seal was recorded.
func (c *Core) Covered() { c.cover.sealed.clear() }

// Unsealed says that it could not be recorded.
func (c *Core) Unsealed() {
	c.cover.open.addAll(&c.cover.sealed)
	c.cover.sealed.clear()
}

// WantFence has the next turn of a caller leave a fence if something is open.
func (c *Core) WantFence() {
	if c.cover != nil {
		c.cover.wanted = c.cover.open.any()
		c.watch()
	}
}

// FenceWanted reports whether a fence is wanted.
func (c *Core) FenceWanted() bool { return c.cover != nil && c.cover.wanted }

// UncoveredBytes are those of free whole pages that no fence covers.
func (c *Core) UncoveredBytes() int64 {
	if c.cover == nil {
		return 0
	}
	var pages int
	c.heap.EachPages(func(first, end uint32) {
		for at := first; at < end; at++ {
			if c.cover.has(at) {
				pages++
			}
		}
	})
	return int64(pages) * int64(c.pageUnits) << sizeclass.UnitShift
}

func (c *cover) has(page uint32) bool { return c.open.has(page) || c.sealed.has(page) }

// longest is the longest run of covered pages in [first, end).
func (c *cover) longest(first, end uint32) (from, to uint32) {
	for at := first; at < end; {
		for at < end && c.has(at) {
			at++
		}
		begin := at
		for at < end && !c.has(at) {
			at++
		}
		if at-begin > to-from {
			from, to = begin, at
		}
	}
	return from, to
}

// pageSet is a set of pages by number.
type pageSet struct{ words []uint64 }

func (s *pageSet) add(first, end uint32) {
	for uint32(len(s.words))*64 < end {
		s.words = append(s.words, 0)
	}
	for first < end {
		at := first & 63
		n := min(end-first, 64-at)
		s.words[first>>6] |= (^uint64(0) >> (64 - n)) << at
		first += n
	}
}

func (s *pageSet) addAll(o *pageSet) {
	for len(s.words) < len(o.words) {
		s.words = append(s.words, 0)
	}
	for i, w := range o.words {
		s.words[i] |= w
	}
}

func (s *pageSet) has(page uint32) bool {
	return int(page>>6) < len(s.words) && s.words[page>>6]>>(page&63)&1 != 0
}

func (s *pageSet) any() bool {
	for _, w := range s.words {
		if w != 0 {
			return true
		}
	}
	return false
}

func (s *pageSet) clear() { clear(s.words) }
