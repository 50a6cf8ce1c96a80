package magazine

// Owner is the owner's side of a Cache: what its parts have in common. All its methods, and those
// of its parts, are for the goroutine that runs the turn.
type Owner struct {
	register
	Spans  Spans
	Exacts Exacts
	Loose  Loose
}

// NewOwner makes a cache ready and returns its owner's side. waker is told of blocks that come home
// once the cache is draining.
func NewOwner(c *Cache, waker Waker) *Owner {
	c.waker = waker
	o := &Owner{register: register{home: &c.Home}}
	o.Spans = Spans{owner: o, buckets: &c.buckets}
	o.Exacts = Exacts{owner: o, buckets: &c.buckets, byUnits: map[uint32]*Exact{}}
	o.Loose = Loose{owner: o}
	return o
}

// Cache is the part of the cache that callers see.
func (o *Owner) Cache() *Home { return o.home }

// Home books a slot that came through the list and that no part keeps: it is home, without flags.
// It reports whether that was the last slot of a closed span, whose block the caller now returns to
// the heap with Spans.Retire.
func (o *Owner) Home(s *Slot) (lastOfSpan bool) {
	s.flags = 0
	s.clearFlags()
	return s.magazine.part.SlotHome(s)
}

// CollectParked has each parked magazine in which callers freed slots told to its part.
func (o *Owner) CollectParked() {
	if o.home.parked.Load() == nil {
		return
	}
	for m := o.home.parked.Swap(nil); m != nil; {
		next := m.next
		m.next = nil
		m.part.MagazineHome(m)
		m = next
	}
}

// HasParked reports whether callers handed over magazines that had no free slot.
func (o *Owner) HasParked() bool { return o.home.parked.Load() != nil }

// HasFreed reports whether there are any slots for Freed.
func (o *Owner) HasFreed() bool { return o.home.HasFreed() }

// Alert is Home.Alert.
func (o *Owner) Alert() bool { return o.home.Alert() }

// Freed takes the list of slots that callers handed over. Follow it with Next before a slot is used.
func (o *Owner) Freed() *Slot {
	for h := o.home; ; {
		top := h.freed.Load()
		if uint32(top) == noSlot {
			return nil
		}
		if h.freed.CompareAndSwap(top, nextEmpty(top)) {
			return h.slot(uint32(top))
		}
	}
}

// HasUsed reports whether there are any slots for Used.
func (o *Owner) HasUsed() bool { return o.home.used.Load() != 0 }

// Used takes the list of slots that others use; nil: there is none. Follow it with Next before a
// slot is used. With pile it leaves less than a pile alone: what other streams use serves no
// request yet.
func (o *Owner) Used(pile bool) *Slot {
	if top := o.home.used.Load(); top == 0 || pile && !o.home.isPile(top) {
		return nil
	}
	return o.home.slot(uint32(o.home.used.Swap(0) & nameMask))
}

// SetPile says how long the announced blocks together may be that are freed before the owner looks
// at their uses. Less than PileUnits is that.
func (o *Owner) SetPile(units uint64) { o.home.pileUnits.Store(units) }

// Next is the slot behind s in a list.
func (o *Owner) Next(s *Slot) *Slot { return o.home.slot(uint32(s.aside.Load())) }

// Pass is Next, and says how many units the block of s has if it is loose and was freed without
// flags, so that Loose.Put books it; else 0.
func (o *Owner) Pass(s *Slot) (next *Slot, plainUnits uint32) {
	e := s.aside.Load()
	return o.home.slot(uint32(e)), uint32(e >> 32)
}

// Retract ends a handle that no caller has seen, and leaves the slot to the owner, which books it
// with Home. It reports whether it could: not if the handle has flags.
func (o *Owner) Retract(s *Slot) bool {
	w := s.Word()
	return s.word.CompareAndSwap(w, freed(w))
}

// LetTakeBack says how many units a block may have that TakeBack serves; 0: every block that is
// freed comes home.
func (o *Owner) LetTakeBack(units uint32) { o.home.backUnits.Store(units) }

// Want makes blocks that come home wake the owner, or ends that: all that come through the list,
// and those of classes to magazines that are parked. Call it before those are parked and those of
// large blocks are closed.
func (o *Owner) Want(on bool) {
	if on {
		o.home.become(serving, wanted)
	} else {
		o.home.become(wanted, serving)
	}
}

// Drain makes every block that comes home wake the owner. Call it before the magazines are closed.
func (o *Owner) Drain() {
	o.LetTakeBack(0)
	if !o.home.become(serving, draining) {
		o.home.become(wanted, draining)
	}
}

// End makes every later free say ErrClosed.
func (o *Owner) End() {
	o.LetTakeBack(0)
	o.home.life.Store(uint32(ended))
}

// All visits every magazine of the owner.
func (o *Owner) All(visit func(*Magazine)) {
	for _, m := range o.all {
		visit(m)
	}
}

// EachInstalled visits the magazines from which callers take.
func (o *Owner) EachInstalled(visit func(*Magazine)) {
	o.Spans.Each(func(m *Span) {
		if m.Open && m.IsInstalled() {
			visit(&m.Magazine)
		}
	})
	o.Exacts.Each(func(m *Exact) {
		if m.Open && m.IsInstalled() {
			visit(&m.Magazine)
		}
	})
}
