package heap

import (
	"fmt"
	"maps"
	"slices"
)

// State is the state of a node of the heap.
type State uint8

// The states of a node.
const (
	Unused State = iota // not part of any run
	Free                // in the bins
	Used                // taken by the owner
	Edge                // the start or the end of a run; no length
)

type node struct {
	offset     uint32 // in units
	units      uint32
	prev, next int32 // neighbours in address order; None beyond an edge
	state      State
}

// Heap is the memory of one owner. The zero value is not usable; call New.
//
// Invariants (Check): the nodes between two edges tile their run without gap or overlap; no two free blocks
// are neighbours; the bins hold exactly the free blocks; the sums of units are exact. Its methods (41) keep
// these together: parts of it would each have to.
type Heap struct {
	nodes     []node
	links     []Link // indexed like nodes
	bins      Bins
	unused    int32 // head of the list of unused nodes, linked by next
	pageUnits uint32

	starts, ends map[uint32]int32 // the edges by the page at which a run starts, or ends

	freeUnits, heldUnits uint64
	visits               uint64
}

// New returns an empty heap whose pages have that many units, a power of two.
func New(pageUnits uint32) *Heap {
	h := &Heap{pageUnits: pageUnits, unused: None, starts: map[uint32]int32{}, ends: map[uint32]int32{}}
	h.bins.Reset()
	return h
}

// MostPages returns how many pages of that many units a heap can name, from page 0 on: all but the last that
// begins within 32 bits. So the end of every block, also rounded up to a page, fits 32 bits.
func MostPages(pageUnits uint32) uint32 { return uint32(1<<32/uint64(pageUnits) - 1) }

// FreeUnits returns the sum of the lengths of the free blocks.
func (h *Heap) FreeUnits() uint64 { return h.freeUnits }

// HeldUnits returns the sum of the lengths of all runs.
func (h *Heap) HeldUnits() uint64 { return h.heldUnits }

// FreeRanges returns the number of free blocks.
func (h *Heap) FreeRanges() int { return h.bins.Count() }

// LargestFree returns the length of the longest free block in units.
func (h *Heap) LargestFree() uint32 { return h.bins.Largest(h.links) }

// Visits returns the number of free blocks that searches visited since New.
func (h *Heap) Visits() uint64 { return h.visits }

// Nodes returns the length of the node array.
func (h *Heap) Nodes() int { return len(h.nodes) }

// Offset returns the start of a block in units.
func (h *Heap) Offset(block int32) uint32 { return h.nodes[block].offset }

// Units returns the length of a block.
func (h *Heap) Units(block int32) uint32 { return h.nodes[block].units }

// Take finds about the shortest free block of at least that many units (see Bins.Fit), cuts its low end to
// that length and marks it used. It returns None if no free block is long enough. Precondition: units > 0.
func (h *Heap) Take(units uint32) int32 {
	i, visits := h.bins.Fit(h.links, units)
	h.visits += uint64(visits)
	if i == None {
		return None
	}
	h.freeUnits -= uint64(units)
	if h.nodes[i].units == units {
		h.bins.Remove(h.links, i)
		h.nodes[i].state = Used
		return i
	}
	low := h.newNode() // may move the array
	n := &h.nodes[i]   // stays the free block
	l := &h.nodes[low] // field by field: a literal is read back wider than it was written, which stalls
	l.offset, l.units = n.offset, units
	l.prev, l.next = n.prev, i
	l.state = Used
	h.nodes[n.prev].next = low
	n.prev = low
	n.offset += units
	n.units -= units
	h.bins.Move(h.links, i, n.units)
	return low
}

// find returns about the shortest free block of at least that many units, or None.
func (h *Heap) find(units uint32) int32 {
	i, visits := h.bins.Fit(h.links, units)
	h.visits += uint64(visits)
	return i
}

// LargestFits reports whether Take would find that many units.
func (h *Heap) LargestFits(units uint32) bool { return h.find(units) != None }

// Give makes a used block free and merges it with its free neighbours. It returns the length of the resulting
// free block. Precondition: the block is used.
func (h *Heap) Give(block int32) uint32 {
	n := &h.nodes[block]
	h.freeUnits += uint64(n.units)
	left, right := n.prev, n.next
	l, r := &h.nodes[left], &h.nodes[right]
	switch {
	case l.state == Free: // it grows, and keeps its position in the bins if it can
		h.absorb(left, block)
		if r.state == Free {
			h.bins.Remove(h.links, right)
			h.absorb(left, right)
		}
		h.bins.Move(h.links, left, l.units)
		return l.units
	case r.state == Free:
		r.offset = n.offset
		r.units += n.units
		r.prev = left
		l.next = right
		h.drop(block)
		h.bins.Move(h.links, right, r.units)
		return r.units
	default:
		n.state = Free
		h.bins.Insert(h.links, block, n.units)
		return n.units
	}
}

// absorb appends right to its left neighbour and frees right's node.
func (h *Heap) absorb(left, right int32) {
	l, r := &h.nodes[left], &h.nodes[right]
	l.units += r.units
	l.next = r.next
	h.nodes[r.next].prev = left
	h.drop(right)
}

// Grant adds pages to the heap as free memory and merges them with adjoining runs. It returns the length of
// the resulting free block. Precondition: none of the pages is in the heap, and all are below MostPages.
func (h *Heap) Grant(firstPage, pages uint32) uint32 {
	endPage := firstPage + pages
	i := h.newNode()
	h.nodes[i] = node{offset: firstPage * h.pageUnits, units: pages * h.pageUnits, prev: None, next: None, state: Used}
	if e, ok := h.ends[firstPage]; ok { // the run before: its end edge is removed
		delete(h.ends, firstPage)
		h.join(h.nodes[e].prev, i)
		h.drop(e)
	} else {
		e := h.newEdge(firstPage)
		h.starts[firstPage] = e
		h.join(e, i)
	}
	if e, ok := h.starts[endPage]; ok {
		delete(h.starts, endPage)
		h.join(i, h.nodes[e].next)
		h.drop(e)
	} else {
		e := h.newEdge(endPage)
		h.ends[endPage] = e
		h.join(i, e)
	}
	h.heldUnits += uint64(pages) * uint64(h.pageUnits)
	return h.Give(i)
}

// TakePages takes up to limit whole pages out of the free blocks, from the shortest blocks with a whole page
// first, and calls visit for the pages of each block until it returns false. It returns the number of pages.
func (h *Heap) TakePages(limit uint32, visit func(firstPage, pages uint32) bool) uint32 {
	if limit == 0 {
		return 0
	}
	var taken uint32
	h.bins.Each(h.links, h.pageUnits, func(i int32) bool {
		first, end := h.wholePages(i)
		if first >= end {
			return true
		}
		end = first + min(end-first, limit-taken)
		h.cut(i, first, end)
		taken += end - first
		return visit(first, end-first) && taken < limit
	})
	return taken
}

// PageRanges returns the number of free blocks with a whole page, counted no further than limit, which must
// be positive.
func (h *Heap) PageRanges(limit int) int {
	count := 0
	h.bins.Each(h.links, h.pageUnits, func(i int32) bool {
		if first, end := h.wholePages(i); first < end {
			count++
		}
		return count < limit
	})
	return count
}

// wholePages returns the whole pages [first, end) of a block, if first < end.
func (h *Heap) wholePages(block int32) (first, end uint32) {
	n := &h.nodes[block]
	return (n.offset + h.pageUnits - 1) / h.pageUnits, (n.offset + n.units) / h.pageUnits
}

// cut removes the pages [first, end) from free block i; its parts on either side stay.
func (h *Heap) cut(i int32, first, end uint32) {
	n := h.nodes[i]
	h.bins.Remove(h.links, i)
	left := first*h.pageUnits - n.offset
	right := n.offset + n.units - end*h.pageUnits
	h.freeUnits -= uint64(n.units - left - right)
	h.heldUnits -= uint64(end-first) * uint64(h.pageUnits)

	before, after := n.prev, n.next
	h.drop(i)
	if left > 0 {
		before = h.freeBetween(n.offset, left, before)
	}
	if h.nodes[before].state == Edge { // nothing of the run is left before the cut
		delete(h.starts, first)
		h.drop(before)
	} else {
		e := h.newEdge(first)
		h.ends[first] = e
		h.join(before, e)
	}
	if right > 0 {
		r := h.newNode()
		h.nodes[r] = node{offset: end * h.pageUnits, units: right, prev: None, next: None, state: Free}
		h.bins.Insert(h.links, r, right)
		h.join(r, after)
		after = r
	}
	if h.nodes[after].state == Edge {
		delete(h.ends, end)
		h.drop(after)
	} else {
		e := h.newEdge(end)
		h.starts[end] = e
		h.join(e, after)
	}
}

// freeBetween makes a free block after the node before.
func (h *Heap) freeBetween(offset, units uint32, before int32) int32 {
	l := h.newNode()
	h.nodes[l] = node{offset: offset, units: units, prev: None, next: None, state: Free}
	h.join(before, l)
	h.bins.Insert(h.links, l, units)
	return l
}

// EachRun visits the blocks of each run in rising order, the runs in the order of their pages.
func (h *Heap) EachRun(visit func(block int32, s State)) {
	for _, page := range slices.Sorted(maps.Keys(h.starts)) {
		for i := h.nodes[h.starts[page]].next; h.nodes[i].state != Edge; i = h.nodes[i].next {
			visit(i, h.nodes[i].state)
		}
	}
}

func (h *Heap) join(left, right int32) {
	h.nodes[left].next = right
	h.nodes[right].prev = left
}

func (h *Heap) newEdge(page uint32) int32 {
	e := h.newNode()
	h.nodes[e] = node{offset: page * h.pageUnits, prev: None, next: None, state: Edge}
	return e
}

func (h *Heap) newNode() int32 {
	if i := h.unused; i != None {
		h.unused = h.nodes[i].next
		return i
	}
	h.nodes = append(h.nodes, node{})
	h.links = append(h.links, Link{})
	return int32(len(h.nodes) - 1) //nolint:gosec // a heap of 2^31 blocks would need a petabyte
}

func (h *Heap) drop(i int32) {
	n := &h.nodes[i]
	n.next, n.state = h.unused, Unused
	h.unused = i
}

// Check compares the heap with its invariants. It visits every node.
func (h *Heap) Check() error {
	var free, held uint64
	ranges, edges, blocks := 0, 0, 0
	for page, start := range h.starts {
		if h.nodes[start].offset != page*h.pageUnits || h.nodes[start].state != Edge {
			return fmt.Errorf("heap: start edge of page %d is node %d at unit %d", page, start, h.nodes[start].offset)
		}
		at := page * h.pageUnits
		before := start
		i := h.nodes[start].next
		for ; h.nodes[i].state != Edge; i = h.nodes[i].next {
			n := h.nodes[i]
			switch {
			case n.state == Unused:
				return fmt.Errorf("heap: unused node %d in the run at page %d", i, page)
			case n.offset != at || n.units == 0:
				return fmt.Errorf("heap: block %d is at unit %d with %d units, the run is at %d", i, n.offset, n.units, at)
			case n.prev != before:
				return fmt.Errorf("heap: block %d names %d as its left neighbour, it is %d", i, n.prev, before)
			case n.state == Free && h.nodes[before].state == Free:
				return fmt.Errorf("heap: free blocks %d and %d are not merged", before, i)
			case n.state == Free && h.links[i].length != n.units:
				return fmt.Errorf("heap: free block %d of %d units is binned as %d", i, n.units, h.links[i].length)
			}
			if n.state == Free {
				free += uint64(n.units)
				ranges++
			}
			at += n.units
			before = i
			blocks++
		}
		edges += 2
		held += uint64(at - page*h.pageUnits)
		if at%h.pageUnits != 0 || h.ends[at/h.pageUnits] != i {
			return fmt.Errorf("heap: the run at page %d ends at unit %d, at no edge", page, at)
		}
	}
	if err := h.checkBins(); err != nil {
		return err
	}
	if len(h.starts) != len(h.ends) {
		return fmt.Errorf("heap: %d starts and %d ends of runs", len(h.starts), len(h.ends))
	}
	unused := 0
	for i := h.unused; i != None && unused <= len(h.nodes); i = h.nodes[i].next {
		unused++
	}
	if edges+blocks+unused != len(h.nodes) {
		return fmt.Errorf("heap: %d edges, %d blocks and %d unused of %d nodes", edges, blocks, unused, len(h.nodes))
	}
	if free != h.freeUnits || held != h.heldUnits || ranges != h.bins.Count() {
		return fmt.Errorf("heap: counted %d free of %d units in %d ranges, the books say %d of %d in %d",
			free, held, ranges, h.freeUnits, h.heldUnits, h.bins.Count())
	}
	return nil
}

// checkBins compares the bins with the nodes: each entry is free, unique, and in its bin.
func (h *Heap) checkBins() error {
	count := 0
	for at, bin := range h.bins.bins {
		if got := h.bins.words[at>>6]>>(at&63)&1 != 0; got != (bin.head != None) {
			return fmt.Errorf("heap: bin %d starts at %d, its bit says %t", at, bin.head, got)
		}
		if bin.head == None && bin.bound != 0 {
			return fmt.Errorf("heap: bin %d is empty, with nothing beyond %d", at, bin.bound)
		}
		before := None
		for i := bin.head; i != None; before, i = i, h.links[i].next {
			l := h.links[i]
			if count++; count > h.bins.Count() {
				return fmt.Errorf("heap: the bins hold more than the %d free blocks, or one twice", h.bins.Count())
			}
			if h.nodes[i].state != Free || l.prev != before || binOf(l.length) != at || l.length > bin.bound {
				return fmt.Errorf("heap: bin %d, with nothing beyond %d, has block %d of %d units after %d", at, bin.bound, i, l.length, l.prev)
			}
		}
	}
	if count != h.bins.Count() {
		return fmt.Errorf("heap: the bins hold %d blocks, they counted %d", count, h.bins.Count())
	}
	for w, m := range h.bins.words {
		if (h.bins.summary>>w&1 != 0) != (m != 0) {
			return fmt.Errorf("heap: word %d of the bitmap is %x, the summary says otherwise", w, m)
		}
	}
	return nil
}
