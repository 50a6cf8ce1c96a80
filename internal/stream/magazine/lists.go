package magazine

import (
	"slices"
	"sync/atomic"
)

// life is how a cache treats freed blocks.
type life uint32

const (
	serving  life = iota
	wanted        // like serving, but frees through the list or to a parked magazine wake the owner
	draining      // no more allocations: every free wakes the owner
	ended         // the memory is gone

	// alert is a bit of its own: the next block freed through the list is reported, once. Frees check one
	// word for both.
	alert life = 1 << 8
)

// waysOut is the number of magazines whose freed slots Frees gathers at a time: a power of two. Not more:
// they are cleared for each batch. Not fewer: a batch of mixed lengths alternates between them, and an
// eviction costs the access that batching saves.
const waysOut = 32

// noSlot names no slot.
const noSlot uint32 = 0

// slotShift is the number of bits for the slot in a name, below the magazine's.
const slotShift = 6

// name returns the name by which lists link a slot: a number, since exchanging it is one instruction, while
// exchanging a pointer is a call that also informs the garbage collector. A magazine keeps its number while
// callers have a slot of it.
func (s *Slot) name() uint32 { return s.magazine.number<<slotShift + uint32(s.index) + 1 }

// slot returns the slot of a name, or nil. A caller may have read the name before its magazine was dropped:
// then it names no slot, or one of another magazine with that number.
func (h *Home) slot(name uint32) *Slot {
	if name == noSlot {
		return nil
	}
	m := (*h.magazines.Load())[(name-1)>>slotShift].Load()
	if m == nil {
		return nil
	}
	return &m.slots()[(name-1)&(1<<slotShift-1)]
}

// putSlow hands a slot that was put into the mask, or its magazine, to the owner if the old mask requires it.
func (m *Magazine) putSlow(s *Slot, old uint64) error {
	switch put(old) {
	case handSlot:
		return m.home.handSlot(s, 0)
	case handMagazine:
		m.home.handMagazine(m)
	case inMask:
	}
	return m.home.wake()
}

// handSlot hands a freed slot to the owner.
func (h *Home) handSlot(s *Slot, flags uint8) error {
	s.flags = flags
	for {
		head := h.freed.Load()
		storePlain(&s.aside, entry(0, uint32(head)))
		if h.freed.CompareAndSwap(head, nextPush(head, s.name())) {
			return h.wake()
		}
	}
}

// handMagazine hands a parked magazine with a free slot to the owner.
func (h *Home) handMagazine(m *Magazine) {
	for {
		head := h.parked.Load()
		m.next = head
		if h.parked.CompareAndSwap(head, m) {
			return
		}
	}
}

// handUsed hands a freed slot that other streams use to the owner. It reports whether the list is now a pile.
func (h *Home) handUsed(s *Slot, units uint32, flags uint8) (isPile bool) {
	s.flags = flags
	for {
		top := h.used.Load()
		storePlain(&s.aside, entry(0, uint32(top&nameMask)))
		if next := nextUsed(top, s.name(), units); h.used.CompareAndSwap(top, next) {
			return h.isPile(next)
		}
	}
}

// isPile reports whether the list of used slots is long enough for the owner to check it.
func (h *Home) isPile(top uint64) bool {
	return top>>countShift&mostCount >= PileSlots || top>>lengthShift*lengthStep >= max(PileUnits, h.pileUnits.Load())
}

// wake wakes the owner after a free if the cache does not serve any more or its memory is wanted.
func (h *Home) wake() error {
	if now := life(h.life.Load()); now != serving {
		return h.wakeOr(now)
	}
	return nil
}

// wakeOr is wake of a cache that is not just serving. Closed streams accept frees: only the end of the device
// refuses them. It is not inlined, so that wake is.
//
//go:noinline
func (h *Home) wakeOr(now life) error {
	if now&alert != 0 {
		h.life.And(^uint32(alert))
		h.waker.Freed()
		now &^= alert
	}
	switch now {
	case serving, alert: // alert is cleared above
	case wanted, draining:
		h.waker.Wake()
	case ended:
		return &ClosedError{}
	}
	return nil
}

// become changes how the cache treats freed blocks, and keeps an alert. It reports whether the state was
// from.
func (h *Home) become(from, to life) bool {
	for {
		old := life(h.life.Load())
		if old&^alert != from {
			return false
		}
		if h.life.CompareAndSwap(uint32(old), uint32(to|old&alert)) {
			return true
		}
	}
}

// Alert reports whether TakeBack might find a block, and requests a call of Waker.Freed for the next block
// freed through the list. It is safe for concurrent use.
func (h *Home) Alert() bool {
	h.life.Or(uint32(alert)) // first: a free that HasFreed misses finds it
	return h.HasFreed()
}

// HasFreed reports whether TakeBack might find a block.
func (h *Home) HasFreed() bool { return uint32(h.freed.Load()) != noSlot }

// SetWatcher sets the watcher of the frees of watched handles. Call it before the first allocation.
func (h *Home) SetWatcher(w watcher) { h.watcher = w }

// register has the numbers and the frees of an owner's magazines.
type register struct {
	home   *Home
	all    []*Magazine
	count  int // numbers that were ever assigned
	unused []uint32
	// carried are the frees by size that the slots' generations do not show, modulo 2^64: of dropped
	// magazines, and of slots whose blocks had another size before.
	carried [SizeCount]uint64
}

// add initialises a closed magazine of a part and numbers it. m is the start of a larger object, which has
// slots at slotsOffset.
func (r *register) add(m *Magazine, k kind, units uint32, part Part) {
	m.kind, m.units, m.home, m.part = k, units, r.home, part
	m.mask.Store(closedBit)
	slots := m.slots()
	for i := range slots {
		s := &slots[i]
		s.magazine, s.index, s.Block = m, uint8(i), none
	}
	if last := len(r.unused) - 1; last >= 0 {
		m.number = r.unused[last]
		r.unused = r.unused[:last]
	} else {
		m.number = uint32(r.count) //nolint:gosec // 2^26 magazines would need 256 GiB
		r.count++
	}
	m.way = uint8(m.number % waysOut)
	m.contended.Store(0)
	(*r.room())[m.number].Store(m)
	r.all = append(r.all, m)
}

// room returns the table, longer than any assigned number.
func (r *register) room() *[]atomic.Pointer[Magazine] {
	t := r.home.magazines.Load()
	if t != nil && len(*t) >= r.count {
		return t
	}
	longer := make([]atomic.Pointer[Magazine], max(16, 2*r.count))
	if t != nil {
		for i := range *t {
			longer[i].Store((*t)[i].Load())
		}
	}
	r.home.magazines.Store(&longer)
	return &longer
}

// keep drops the magazines for which stays returns false. No caller has a slot of them.
func (r *register) keep(stays func(*Magazine) bool) {
	r.all = slices.DeleteFunc(r.all, func(m *Magazine) bool {
		if stays(m) {
			return false
		}
		r.carried[SizeOf(m.units)] += m.Frees()
		(*r.home.magazines.Load())[m.number].Store(nil)
		r.unused = append(r.unused, m.number)
		return true
	})
}

// CollectParked passes each parked magazine in which callers freed slots to its part.
func (r *register) CollectParked() {
	if r.home.parked.Load() == nil {
		return
	}
	for m := r.home.parked.Swap(nil); m != nil; {
		next := m.next
		m.part.MagazineHome(m)
		m = next
	}
}

// Uncount reverts one free of a block of that many units that no caller made.
func (r *register) Uncount(units uint32) { r.carried[SizeOf(units)]-- }
