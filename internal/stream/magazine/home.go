package magazine

import "sync/atomic"

// life is how a cache treats what comes home.
type life uint32

const (
	serving  life = iota
	wanted        // as serving, but what comes home through the list or to a parked magazine wakes the owner
	draining      // no more allocations: every block that comes home wakes the owner
	ended         // the memory is gone

	// alert is a bit of its own: the next block that comes home through the list is told, once. So frees look at one word for
	// both.
	alert life = 1 << 8
)

// waysOut is the number of magazines whose freed slots Frees gathers at a time: a power of two. Not
// more: they are cleared for each batch. Not fewer: a batch of mixed lengths goes back and forth
// between them, and each change of a magazine in its place costs the access that a batch is to
// save.
const waysOut = 32

// noSlot names no slot.
const noSlot uint32 = 0

// slotShift leaves room for the slot in a name, behind the magazine.
const slotShift = 6

// name is how lists link a slot: a number, whose exchange is one instruction, where that of a
// pointer is a call that also has to tell the collector. A magazine keeps its number while a slot
// of it is out.
func (s *Slot) name() uint32 { return s.magazine.number<<slotShift + uint32(s.index) + 1 }

// slot is the slot of a name, nil if it names none. A caller may have read the name before its
// magazine was dropped: then it names none any more, or one of another magazine with that number.
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

// putSlow hands a slot that was put into the mask, or the magazine, to the owner if the old mask
// asks for that.
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

// handSlot gives a freed slot to the owner.
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

// handMagazine gives a parked magazine with a free slot to the owner.
func (h *Home) handMagazine(m *Magazine) {
	for {
		head := h.parked.Load()
		m.next = head
		if h.parked.CompareAndSwap(head, m) {
			return
		}
	}
}

// handUsed gives a freed slot that others use to the owner. It reports whether that makes a pile.
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

// isPile reports whether so much is in the list of used slots that the owner looks at them.
func (h *Home) isPile(top uint64) bool {
	return top>>countShift&mostCount >= PileSlots || top>>lengthShift*lengthStep >= max(PileUnits, h.pileUnits.Load())
}

// wake tells the owner of a cache that serves no more, or whose memory is wanted, that a block came
// home.
func (h *Home) wake() error {
	if now := life(h.life.Load()); now != serving {
		return h.wakeOr(now)
	}
	return nil
}

// wakeOr is wake of a cache that does not just serve. Streams that are closed accept frees: only the end of the device refuses them. It is
// not inlined, so that wake is.
//
//go:noinline
func (h *Home) wakeOr(now life) error {
	if now&alert != 0 {
		h.life.And(^uint32(alert))
		h.waker.Freed()
		now &^= alert
	}
	switch now {
	case serving, alert: // alert is taken out above
	case wanted, draining:
		h.waker.Wake()
	case ended:
		return &ClosedError{}
	}
	return nil
}

// become changes how the cache treats what comes home, and keeps an alert. It reports whether it was as expected.
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

// Alert reports whether there is anything that TakeBack might serve, and has the next block that comes home through the list
// told (Waker.Freed). Any goroutine may call it.
func (h *Home) Alert() bool {
	h.life.Or(uint32(alert)) // first: a free that the look misses finds it
	return h.HasFreed()
}

// HasFreed reports whether there is anything that TakeBack might serve.
func (h *Home) HasFreed() bool { return uint32(h.freed.Load()) != noSlot }

// SetWatcher makes w hear of the frees of watched handles. Call it before the first allocation.
func (h *Home) SetWatcher(w watcher) { h.watcher = w }

// register is the numbers and the frees of an owner's magazines.
type register struct {
	home   *Home
	all    []*Magazine
	count  int // numbers that were ever given out
	unused []uint32
	// carried are the frees by size that the slots' generations do not show, modulo 2^64: of magazines
	// that were dropped, and of slots whose blocks had another size before.
	carried [SizeCount]uint64
}

// add makes a closed magazine of a part and numbers it. m begins a larger object, which has slots at
// slotsOffset.
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

// room is the table, longer than any number that was given out.
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

// keep drops the magazines for which stays says false. No slot of them is out.
func (r *register) keep(stays func(*Magazine) bool) {
	kept := r.all[:0]
	for _, m := range r.all {
		if stays(m) {
			kept = append(kept, m)
			continue
		}
		r.carried[SizeOf(m.units)] += m.Frees()
		(*r.home.magazines.Load())[m.number].Store(nil)
		r.unused = append(r.unused, m.number)
	}
	clear(r.all[len(kept):])
	r.all = kept
}
