package magazine

// Owner is the owner's side of a Cache: the state that its parts share. All its methods, and its parts'
// methods, must be called on the goroutine that runs the turn.
type Owner struct {
	register
	Spans  Spans
	Exacts Exacts
	Loose  Loose
}

// NewOwner initialises a cache and returns its owner's side. waker is notified of frees once the cache is
// draining.
func NewOwner(c *Cache, waker Waker) *Owner {
	c.waker = waker
	o := &Owner{register: register{home: &c.Home}}
	o.Spans = Spans{owner: &o.register, buckets: &c.buckets}
	o.Exacts = Exacts{owner: &o.register, buckets: &c.buckets, byUnits: map[uint32]*Exact{}}
	o.Loose = Loose{owner: &o.register}
	return o
}

// Collect books a slot that came through the list and that no part keeps, and clears its flags. It reports
// whether that was the last slot of a closed span, whose block the caller must then return to the heap with
// Spans.Retire.
func (o *Owner) Collect(s *Slot) (lastOfSpan bool) {
	s.flags = 0
	s.clearFlags()
	return s.magazine.part.SlotHome(s)
}

// HasParked reports whether callers handed over magazines that had no free slot.
func (o *Owner) HasParked() bool { return o.home.parked.Load() != nil }

// HasFreed reports whether there are any slots for Freed.
func (o *Owner) HasFreed() bool { return o.home.HasFreed() }

// Alert is Alert of the cache.
func (o *Owner) Alert() bool { return o.home.Alert() }

// Freed takes the list of slots that callers handed over. Call Next before a slot is used.
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

// Used takes the list of slots that other streams use; nil: there is none. Call Next before a slot is used.
// If pile is set it leaves a list that is not a pile: these slots serve no request yet.
func (o *Owner) Used(pile bool) *Slot {
	if top := o.home.used.Load(); top == 0 || pile && !o.home.isPile(top) {
		return nil
	}
	return o.home.slot(uint32(o.home.used.Swap(0) & nameMask))
}

// SetPile sets the total length of freed announced blocks at which the owner checks their uses; PileUnits is
// the minimum.
func (o *Owner) SetPile(units uint64) { o.home.pileUnits.Store(units) }

// Pass is Next. It also returns the units of the block of s if it is loose and was freed without flags, so
// that Loose.Put books it; else 0.
func (o *Owner) Pass(s *Slot) (next *Slot, plainUnits uint32) {
	e := s.aside.Load()
	return o.home.slot(uint32(e)), uint32(e >> 32)
}

// Retract ends a handle that no caller has seen. The owner then books the slot with Collect. It reports whether
// it could: not if the handle has flags.
func (o *Owner) Retract(s *Slot) bool {
	w := s.Word()
	return s.word.CompareAndSwap(w, freed(w))
}

// LetTakeBack sets the maximum units of a block that TakeBack serves; 0: none.
func (o *Owner) LetTakeBack(units uint32) { o.home.backUnits.Store(units) }

// Want sets whether frees wake the owner: all through the list, and frees of classes to parked
// magazines. Call it before those are parked and magazines of large blocks are closed.
func (o *Owner) Want(on bool) {
	if on {
		o.home.become(serving, wanted)
	} else {
		o.home.become(wanted, serving)
	}
}

// Drain makes every free wake the owner. Call it before the magazines are closed.
func (o *Owner) Drain() {
	o.LetTakeBack(0)
	if !o.home.become(serving, draining) {
		o.home.become(wanted, draining)
	}
}

// End makes every later free return ErrClosed.
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

// EachOpen visits the open magazines. Callers free slots into all of them, and take from the installed ones.
func (o *Owner) EachOpen(visit func(m *Magazine, installed bool)) {
	o.Spans.Each(func(m *Span) {
		if m.Open {
			visit(&m.Magazine, m.IsInstalled())
		}
	})
	o.Exacts.Each(func(m *Exact) {
		if m.Open {
			visit(&m.Magazine, m.IsInstalled())
		}
	})
}

// AddFrees passes how often blocks of each size were freed, also in dropped magazines, in parts. Parts may be
// negative, modulo 2^64; the sums are not.
func (o *Owner) AddFrees(add func(size int, frees uint64)) {
	for i := range o.carried {
		add(i, o.carried[i])
	}
	o.All(func(m *Magazine) {
		if m.units != 0 {
			add(SizeOf(m.units), m.Frees())
			return
		}
		m.Each(func(s *Slot) { add(SizeOf(s.Units), s.Frees()) })
	})
}

// SetShare sets the share of sampled allocations.
func (o *Owner) SetShare(share Share) {
	if o.home.wholeShare.Load() != uint32(share) {
		o.home.wholeShare.Store(uint32(share))
		o.home.share.Store(uint32(share))
	}
}
