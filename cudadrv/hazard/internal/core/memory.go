package core

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/go-vram/vram/cudadrv"
)

// access is one use of a cell. Two are the same if they are equal.
type access struct {
	place  int
	count  uint64
	use    *Use
	buffer *buffer // that the use was of; nil for memory of the program's own
}

// cell is a range of mapped memory whose bytes have one story. It begins at its key in the map.
type cell struct {
	end     cudadrv.Ptr
	managed bool    // the allocator's
	buffer  *buffer // that has it, or had it last; nil for none
	write   access  // the last; without a use if there was none
	reads   []access
}

// memory is the mapped ranges.
//
// Invariant: cells do not overlap and none is empty.
type memory struct{ cells cellMap }

// cellMap is a tree of cells by their beginnings. As an interface it keeps the tree's generic type out of Core and of all types that refer
// to it: each package that imports one of them would compile the tree again.
type cellMap interface {
	Set(start cudadrv.Ptr, c *cell) (was *cell, replaced bool)
	Delete(start cudadrv.Ptr) (was *cell, deleted bool)
	Ascend(from cudadrv.Ptr, each func(start cudadrv.Ptr, c *cell) (more bool))
	Descend(from cudadrv.Ptr, each func(start cudadrv.Ptr, c *cell) (more bool))
	Len() int
}

func newMemory() memory { return memory{new(btree.Map[cudadrv.Ptr, *cell])} }

// floor returns the last cell that begins at p or before.
func (m *memory) floor(p cudadrv.Ptr) (start cudadrv.Ptr, c *cell) {
	m.cells.Descend(p, func(at cudadrv.Ptr, found *cell) bool {
		start, c = at, found
		return false
	})
	return start, c
}

// split makes a cell begin at p, if p is inside one.
func (m *memory) split(p cudadrv.Ptr) {
	start, c := m.floor(p)
	if c == nil || start == p || c.end <= p {
		return
	}
	upper := *c
	upper.reads = slices.Clone(c.reads)
	c.end = p
	m.cells.Set(p, &upper)
}

// piece is a cell, or nil for a gap, and where it lies.
type piece struct {
	start, end cudadrv.Ptr
	cell       *cell
}

// cut makes cells end at both ends of a range and returns the pieces in it, gaps included: none of a range of no bytes.
func (m *memory) cut(begin, end cudadrv.Ptr) []piece {
	m.split(begin)
	m.split(end)
	var all []piece
	reached := begin
	m.cells.Ascend(begin, func(start cudadrv.Ptr, c *cell) bool {
		if start >= end {
			return false
		}
		if start > reached {
			all = append(all, piece{start: reached, end: start})
		}
		all = append(all, piece{start, c.end, c})
		reached = c.end
		return true
	})
	if reached < end {
		all = append(all, piece{start: reached, end: end})
	}
	return all
}

// merge joins equal cells of a range, and equal cells next to it.
func (m *memory) merge(begin, end cudadrv.Ptr) {
	first := begin
	if begin > 0 {
		if start, c := m.floor(begin - 1); c != nil && c.end == begin {
			first = start
		}
	}
	var drop []cudadrv.Ptr
	var last *cell
	m.cells.Ascend(first, func(start cudadrv.Ptr, c *cell) bool {
		if start > end {
			return false
		}
		if last != nil && last.end == start && last.alike(c) {
			last.end = c.end
			drop = append(drop, start)
			return true
		}
		last = c
		return true
	})
	for _, start := range drop {
		m.cells.Delete(start)
	}
}

func (c *cell) alike(d *cell) bool {
	return c.buffer == d.buffer && c.managed == d.managed && c.write == d.write && slices.Equal(c.reads, d.reads)
}

// put adds a mapped range without accesses.
func (m *memory) put(begin, end cudadrv.Ptr, managed bool) {
	for _, p := range m.cut(begin, end) {
		if p.cell == nil {
			m.cells.Set(p.start, &cell{end: p.end, managed: managed})
		}
	}
	m.merge(begin, end)
}

// unordered returns an access of the cell that does not come before the point; one that is a write if any is.
func (c *cell) unordered(point Clock) (found access, ok bool) {
	if w := c.write; w.use != nil && !point.reaches(w.place, w.count) {
		return w, true
	}
	for _, r := range c.reads {
		if !point.reaches(r.place, r.count) {
			return r, true
		}
	}
	return access{}, false
}

// forget drops the accesses that come before the point.
func (c *cell) forget(point Clock) {
	if w := c.write; w.use != nil && point.reaches(w.place, w.count) {
		c.write = access{}
	}
	kept := c.reads[:0]
	for _, r := range c.reads {
		if !point.reaches(r.place, r.count) {
			kept = append(kept, r)
		}
	}
	if c.reads = kept; len(kept) == 0 {
		c.reads = nil
	}
}

// wrote records a write, which follows all accesses in the cell.
func (c *cell) wrote(a access) { c.write, c.reads = a, nil }

// read records a read at a point, and drops the reads before it.
func (c *cell) read(a access, point Clock) {
	kept := c.reads[:0]
	for _, r := range c.reads {
		if !point.reaches(r.place, r.count) {
			kept = append(kept, r)
		}
	}
	c.reads = append(kept, a)
}
