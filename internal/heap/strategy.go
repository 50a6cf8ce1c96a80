package heap

import "math/bits"

// Strategy says which of the ranges that are long enough a search takes.
type Strategy uint8

// The strategies.
const (
	// BestFit takes about the shortest: see Bins.Fit.
	BestFit Strategy = iota
	// FirstFit takes the one with the lowest address.
	FirstFit
)

// plan is what a heap keeps that does not find by best fit and merge at once; the others have none.
type plan struct {
	tree       *Tree  // the free blocks by offset; nil with BestFit
	apartUnits uint32 // a block that comes back shorter is not merged at once

	// apart marks free blocks that may have a free neighbour: of two such neighbours at least one is marked.
	// A bit may outlive its block.
	apart []uint64
	any   bool // a bit is set
}

func (p *plan) is(s Strategy, apartUnits uint32) bool {
	return (p.tree != nil) == (s == FirstFit) && p.apartUnits == apartUnits
}

// Configure sets the strategy, and the length in units below which a block that comes back is not merged with
// its free neighbours at once: Merge, or a search that finds nothing, does so later. It visits every block
// if that is a change.
func (h *Heap) Configure(s Strategy, apartUnits uint32) {
	if h.plan == nil && s == BestFit && apartUnits == 0 || h.plan != nil && h.plan.is(s, apartUnits) {
		return
	}
	h.Merge()
	h.plan = nil
	if s == BestFit && apartUnits == 0 {
		return
	}
	h.plan = &plan{apartUnits: apartUnits}
	if s != FirstFit {
		return
	}
	h.plan.tree = &Tree{}
	h.plan.tree.Reset()
	for i := range h.nodes {
		if n := &h.nodes[i]; n.state == Free {
			h.plan.tree.Insert(int32(i), n.offset, n.units) //nolint:gosec // an index of nodes
		}
	}
}

// Strategy is what Configure set.
func (h *Heap) Strategy() Strategy {
	if h.plan != nil && h.plan.tree != nil {
		return FirstFit
	}
	return BestFit
}

// insert makes a free block known to the searches.
func (h *Heap) insert(i int32, units uint32) {
	h.bins.Insert(h.links, i, units)
	if h.plan != nil && h.plan.tree != nil {
		h.plan.tree.Insert(i, h.nodes[i].offset, units)
	}
}

// remove takes a free block out of the searches.
func (h *Heap) remove(i int32) {
	h.bins.Remove(h.links, i)
	if h.plan != nil && h.plan.tree != nil {
		h.plan.tree.Remove(i)
	}
}

// find is the free block of at least that many units that the strategy takes, or None. Where none is long
// enough it merges what was kept apart and looks again.
func (h *Heap) find(units uint32) int32 {
	i := h.look(units)
	if i == None && h.Merge() {
		i = h.look(units)
	}
	return i
}

func (h *Heap) look(units uint32) (i int32) {
	var visits int
	if h.plan != nil && h.plan.tree != nil {
		i, visits = h.plan.tree.First(units)
	} else {
		i, visits = h.bins.Fit(h.links, units)
	}
	h.visits += uint64(visits)
	return i
}

// takePlanned is Take for a heap with a plan.
func (h *Heap) takePlanned(units uint32) int32 {
	i := h.find(units)
	if i == None {
		return None
	}
	h.remove(i)
	n := &h.nodes[i]
	n.state = Used
	if rest := n.units - units; rest > 0 {
		n.units = units
		offset, next := n.offset+units, n.next
		r := h.newNode() // may move the array: n is stale from here
		h.nodes[r] = node{offset: offset, units: rest, prev: i, next: next, state: Free}
		h.nodes[i].next = r
		h.nodes[next].prev = r
		h.insert(r, rest)
		if h.nodes[next].state == Free {
			h.mark(r)
		}
	}
	h.freeUnits -= uint64(units)
	return i
}

// givePlanned is Give for a heap with a plan.
func (h *Heap) givePlanned(block int32) uint32 {
	n := &h.nodes[block]
	h.freeUnits += uint64(n.units)
	if n.units < h.plan.apartUnits {
		n.state = Free
		h.insert(block, n.units)
		if h.nodes[n.prev].state == Free || h.nodes[n.next].state == Free {
			h.mark(block)
		}
		return n.units
	}
	return h.unite(block)
}

// unite merges a block that no search knows with all its free neighbours, makes the result free and returns
// its length.
func (h *Heap) unite(block int32) uint32 {
	for p := h.nodes[block].prev; h.nodes[p].state == Free; p = h.nodes[block].prev {
		h.remove(p)
		h.absorb(p, block)
		block = p
	}
	for next := h.nodes[block].next; h.nodes[next].state == Free; next = h.nodes[block].next {
		h.remove(next)
		h.absorb(block, next)
	}
	n := &h.nodes[block]
	n.state = Free
	h.insert(block, n.units)
	return n.units
}

func (h *Heap) mark(i int32) {
	w := int(i >> 6)
	for len(h.plan.apart) <= w {
		h.plan.apart = append(h.plan.apart, 0)
	}
	h.plan.apart[w] |= 1 << (i & 63)
	h.plan.any = true
}

func (h *Heap) marked(i int32) bool {
	if h.plan == nil {
		return false
	}
	w := int(i >> 6)
	return w < len(h.plan.apart) && h.plan.apart[w]>>(i&63)&1 != 0
}

// Merge joins the free blocks that were kept apart with their free neighbours, and reports whether there were
// any.
func (h *Heap) Merge() bool {
	if h.plan == nil || !h.plan.any {
		return false
	}
	merged := false
	for w, word := range h.plan.apart {
		h.plan.apart[w] = 0
		for ; word != 0; word &= word - 1 {
			i := int32(w<<6 + bits.TrailingZeros64(word)) //nolint:gosec // an index of nodes
			n := &h.nodes[i]
			if n.state != Free || h.nodes[n.prev].state != Free && h.nodes[n.next].state != Free {
				continue
			}
			merged = true
			h.remove(i)
			h.unite(i)
		}
	}
	h.plan.any = false
	return merged
}
