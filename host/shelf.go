package host

import (
	"math/bits"
	"sync/atomic"
)

// shelfSlots is the number of slots of a shelf: the bits of a word.
const shelfSlots = 64

// shelf is 64 slots of one class. A bit of free is a slot with memory that no one has, a bit of
// vacant one without memory; the goroutine that clears a bit has the slot.
//
// Invariant, while no Free is running: the number of bits set in free is at most the allowance.
type shelf struct {
	free      atomic.Uint64
	allowance atomic.Int64 // how many slots may be free
	vacant    atomic.Uint64

	// These never change.
	pool  *Pool
	class *class
	bytes int64 // of each block
	_     [80]byte

	slots [shelfSlots]pooled
}

// pooled is a slot of a shelf.
type pooled struct {
	slot
	inside atomic.Pointer[slot] // the slot of inner, for calls for stale blocks

	// The holder's: of the bit, the block, or the list.
	inner  Block    // the source's
	stamps []*stamp // events that have not been seen to have passed
	next   *pooled  // in a list

	// These never change.
	shelf *shelf
	bit   uint64
}

// class is the shelves of one length.
type class struct {
	last    atomic.Pointer[shelf]    // of the last free
	shelves atomic.Pointer[[]*shelf] // replaced, never changed
}

// list returns the shelves.
func (c *class) list() []*shelf {
	if l := c.shelves.Load(); l != nil {
		return *l
	}
	return nil
}

// take takes a free slot, nil if there is none.
func (c *class) take() *pooled {
	sh := c.last.Load()
	if sh == nil {
		return nil
	}
	if s := sh.take(&sh.free); s != nil {
		return s
	}
	return c.search()
}

// search is take of any shelf.
func (c *class) search() *pooled {
	for _, sh := range c.list() {
		if s := sh.take(&sh.free); s != nil {
			return s
		}
	}
	return nil
}

// vacate takes a vacant slot, of a new shelf if need be.
func (c *class) vacate(p *Pool, blockBytes int64) *pooled {
	for {
		old := c.shelves.Load()
		all := c.list()
		for _, sh := range all {
			if s := sh.take(&sh.vacant); s != nil {
				return s
			}
		}
		grown := append(all[:len(all):len(all)], newShelf(p, c, blockBytes))
		c.shelves.CompareAndSwap(old, &grown)
	}
}

func newShelf(p *Pool, c *class, blockBytes int64) *shelf {
	sh := &shelf{pool: p, class: c, bytes: blockBytes}
	for i := range sh.slots {
		s := &sh.slots[i]
		s.where, s.shelf, s.bit = s, sh, 1<<i
	}
	sh.vacant.Store(^uint64(0))
	return sh
}

// take clears the lowest bit of one of the two words, and returns its slot; nil if no bit is set.
func (sh *shelf) take(word *atomic.Uint64) *pooled {
	for {
		set := word.Load()
		if set == 0 {
			return nil
		}
		if word.CompareAndSwap(set, set&(set-1)) {
			return &sh.slots[bits.TrailingZeros64(set)]
		}
	}
}

// takeBit clears the bit of a free slot, unless another goroutine has taken it.
func (sh *shelf) takeBit(bit uint64) bool {
	return sh.free.And(^bit)&bit != 0
}

// within reports whether the allowance covers the free slots.
func (sh *shelf) within() bool { return int64(bits.OnesCount64(sh.free.Load())) <= sh.allowance.Load() }

// stack is slots that are pushed one by one and taken all at once. The zero value is empty.
type stack struct{ top atomic.Pointer[pooled] }

func (l *stack) push(s *pooled) {
	for {
		s.next = l.top.Load()
		if l.top.CompareAndSwap(s.next, s) {
			return
		}
	}
}

func (l *stack) empty() bool { return l.top.Load() == nil }

// takeOne takes the oldest slot that fits, or returns nil. It holds the list while it searches.
func (l *stack) takeOne(fits func(*pooled) bool) (found *pooled) {
	if l.empty() {
		return nil
	}
	for s := l.takeAll(); s != nil; {
		next := s.next
		if found == nil && fits(s) {
			found = s
		} else {
			l.push(s)
		}
		s = next
	}
	return found
}

// takeAll takes the list, oldest first.
func (l *stack) takeAll() (oldest *pooled) {
	for s := l.top.Swap(nil); s != nil; {
		s.next, oldest, s = oldest, s, s.next
	}
	return oldest
}
