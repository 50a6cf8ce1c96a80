package magazine

import (
	"math/bits"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// lease is the owner's side of its lanes. A leased magazine is in one of these places: with a lane,
// orphaned (its lane was closed while slots of it were live) or spare (it has no blocks).
type lease struct {
	lanes       []*Lane
	leasedUnits uint64                // of them all
	strays      *Magazine             // handed over, and no lane's
	orphans     [sizeclass.Count]pile // those with free slots
	spare       *Magazine
}

// Give takes a block that no lane has any more: the span of a class, or, where class is negative, a
// block of its own.
type Give func(block, class int32)

// OpenLane makes a lane of the cache ready to be leased to.
func (o *Owner) OpenLane(l *Lane) {
	o.lease.lanes = append(o.lease.lanes, l)
	l.raised.Store(0)
}

// Lanes is the number of lanes, and LeasedUnits the length of all blocks that they have, live or not.
func (o *Owner) Lanes() int { return len(o.lease.lanes) }

// LeasedUnits is the length of all blocks that lanes have, live or not.
func (o *Owner) LeasedUnits() uint64 { return o.lease.leasedUnits }

// Raise gives every lane a reason to come to the owner.
func (o *Owner) Raise(why Reason) {
	for _, l := range o.lease.lanes {
		l.raised.Or(uint32(why))
	}
}

// RaiseReturned gives the lanes whose blocks others freed a reason to come.
func (o *Owner) RaiseReturned() {
	for _, l := range o.lease.lanes {
		if l.arrived != nil {
			l.raised.Or(uint32(Returned))
		}
	}
}

// arrive takes a leased magazine out of whose slots others freed some.
func (o *Owner) arrive(m *Magazine) {
	list := &o.lease.strays
	if l := m.lane.Load(); l != nil {
		list = &l.arrived
	}
	m.next, *list = *list, m
}

// cameHome collects the slots that others freed since the last time. A bit says only that a slot is worth
// a look: two frees of one handle that raced set it once too often, and at any later time.
func (o *Owner) cameHome(m *Magazine) uint64 {
	var back uint64
	for f := m.mask.Swap(leasedMask) & m.whole &^ m.local; f != 0; f &= f - 1 {
		s := &m.slots[bits.TrailingZeros64(f)]
		if o.isHome(s) {
			back |= 1 << s.index
		}
	}
	return back
}

// isHome reports whether a slot of a leased magazine is back and nobody keeps it.
func (o *Owner) isHome(s *Slot) bool {
	w := s.word.Load()
	if !isBack(w, s.aside.Load()) || o.kept(s, w) {
		return false
	}
	if w&flagMask != 0 {
		s.word.CompareAndSwap(w, w&^flagMask)
	}
	return true
}

// kept reports whether a slot, which was back with that word, stays with whoever Keep speaks for, or with its lane. The flags go from
// the word to the slot, where no free of a leased one writes: they are there as long as it is kept. A word that has
// changed since is of a handle that lives, or has lived, behind a free that raced with another: its flags are not those of that word.
func (o *Owner) kept(s *Slot, w uint64) bool {
	switch {
	case s.flags != 0:
		return true
	case w&uint64(Announced) == 0:
		return false
	case !s.word.CompareAndSwap(w, w&^flagMask):
		return true
	}
	s.flags = uint8(w & flagMask &^ uint64(Watched))
	if !o.Keep(s) {
		s.flags = 0
	}
	return s.flags != 0
}

// SortLeased passes the announced slots that others freed of the lanes' magazines to Keep, before the lanes take
// them home.
func (o *Owner) SortLeased() {
	o.collectParked()
	for m := o.lease.strays; m != nil; m = m.next {
		o.sort(m)
	}
	for _, l := range o.lease.lanes {
		for m := l.arrived; m != nil; m = m.next {
			o.sort(m)
		}
	}
}

func (o *Owner) sort(m *Magazine) {
	for f := m.mask.Load() & m.whole; f != 0; f &= f - 1 {
		s := &m.slots[bits.TrailingZeros64(f)]
		if w := s.word.Load(); isBack(w, s.aside.Load()) {
			o.kept(s, w)
		}
	}
}

// ReturnLeased is the free of a slot of a leased magazine that was kept.
func (o *Owner) ReturnLeased(s *Slot) {
	s.flags = 0 // flags of the word are of a later handle
	if m := s.magazine; put(m.mask.Or(1<<s.index)) == handMagazine {
		o.arrive(m)
	}
}

// outMask are the slots of a leased magazine that callers have. Those of a lane at work change meanwhile.
func (m *Magazine) outMask() uint64 {
	var out uint64
	for f := m.whole; f != 0; f &= f - 1 {
		s := &m.slots[bits.TrailingZeros64(f)]
		if handed := s.aside.Load(); isOut(s.word.Load(), handed) {
			out |= 1 << s.index
		}
	}
	return out
}

// Collect sorts the magazines that callers handed over, and gives back what came home of those that no
// lane has.
func (o *Owner) Collect(give Give) {
	o.collectParked()
	m := o.lease.strays
	o.lease.strays = nil
	for m != nil {
		next := m.next
		m.next = nil
		switch {
		case m.lane.Load() != nil: // leased anew meanwhile
			o.arrive(m)
		case m.Class >= 0:
			o.orphanHome(m, give)
		default:
			for f := o.cameHome(m); f != 0; f &= f - 1 {
				o.releaseBlock(&m.slots[bits.TrailingZeros64(f)], give)
			}
		}
		m = next
	}
}

// orphanHome books what came home of a span that no lane has.
func (o *Owner) orphanHome(m *Magazine, give Give) {
	was := m.local
	m.local |= o.cameHome(m)
	switch {
	case m.local == m.whole:
		if was != 0 {
			o.lease.orphans[m.Class].remove(m)
		}
		o.releaseSpan(m, give)
	case was == 0 && m.local != 0:
		o.lease.orphans[m.Class].push(m)
	}
}

// Settle takes home what others freed of the lane's blocks and gives back what the lane may not keep;
// what it does not use, too, if it was asked. The reasons for which it came are gone afterwards. It
// reports those that there were.
func (o *Owner) Settle(l *Lane, give Give) Reason {
	why := l.Raised()
	o.Collect(give)
	m := l.arrived
	l.arrived = nil
	for m != nil {
		next := m.next
		m.next = nil
		if m.lane.Load() != l { // given up meanwhile
			o.arrive(m)
			m = next
			continue
		}
		for f := o.cameHome(m); f != 0; f &= f - 1 {
			l.keep(m, &m.slots[bits.TrailingZeros64(f)])
		}
		m = next
	}
	if why&Asked != 0 {
		l.giveUp()
	}
	o.giveSurplus(l, give)
	l.raised.And(uint32(Ended))
	return why
}

// GiveUp gives back all that the lane keeps and does not use.
func (o *Owner) GiveUp(l *Lane, give Give) {
	l.giveUp()
	o.giveSurplus(l, give)
}

// giveUp leaves all that is not in use to giveSurplus. Spans of which blocks live stay.
func (l *Lane) giveUp() {
	for class := range l.shelves {
		sh, span := &l.shelves[class], spanUnits(class)
		for m := sh.ready.newest; m != nil; {
			next := m.Older
			if m.local == m.whole {
				sh.ready.remove(m)
				l.chargeUnits -= span
				l.shed(m)
			}
			m = next
		}
		if m := sh.current; m != nil && m.local == m.whole {
			l.shed(m)
			if sh.serve(sh.ready.newest); sh.current != nil {
				sh.ready.remove(sh.current)
			} else {
				l.chargeUnits -= span
			}
		}
	}
	l.layTop()
	for i := range l.large {
		l.clearPlace(uint64(i))
	}
	l.turnedAway = 0
}

func (o *Owner) giveSurplus(l *Lane, give Give) {
	for m := l.surplus; m != nil; {
		next := m.Older
		m.Older = nil
		o.releaseSpan(m, give)
		m = next
	}
	for s := l.surplusSlot; s != nil; {
		next := s.next
		o.releaseBlock(s, give)
		s = next
	}
	l.surplus, l.surplusSlot = nil, nil
}

// releaseSpan gives back the span of a magazine all of whose slots are free.
func (o *Owner) releaseSpan(m *Magazine, give Give) {
	span, class := m.Span, m.Class
	if l := m.lane.Load(); l != nil {
		o.charge(l, -spanUnits(int(class)))
	}
	m.Span, m.Class, m.whole, m.local = none, -1, 0, 0
	o.spareLeased(m)
	give(span, class)
}

// releaseBlock gives back the block of a slot that is free.
func (o *Owner) releaseBlock(s *Slot, give Give) {
	m, block := s.magazine, s.Block
	m.whole &^= 1 << s.index
	s.Block, s.next = none, nil
	if l := m.lane.Load(); l != nil {
		o.charge(l, -uint64(s.Units))
		s.next, l.unused = l.unused, s
	} else if m.whole == 0 {
		o.spareLeased(m)
	}
	give(block, -1)
}

// charge counts units that a lane gets, or, as the two's complement, gives back.
func (o *Owner) charge(l *Lane, units uint64) {
	l.leasedUnits += units
	o.lease.leasedUnits += units
}

func (o *Owner) spareLeased(m *Magazine) {
	m.lane.Store(nil)
	m.Older, o.lease.spare = o.lease.spare, m
}

// blank is a leased magazine without blocks.
func (o *Owner) blank() *Magazine {
	m := o.lease.spare
	if m != nil {
		o.lease.spare, m.Older = m.Older, nil
		return m
	}
	m = o.newMagazine(0, -1, false)
	m.leased, m.homes = true, 0
	m.mask.Store(leasedMask)
	return m
}

// Admits reports whether the budget leaves room for what serves such a request. It refuses no more than
// so many in sequence: then the lane gives up what it keeps. Precondition: Fits(bytes).
func (o *Owner) Admits(l *Lane, bytes int64, give Give) bool {
	units := sizeclass.Units(bytes)
	if units <= sizeclass.MaxUnits {
		units = l.need(sizeclass.Of(units))
	}
	if l.admits(units) {
		l.turnedAway = 0
		return true
	}
	if l.turnedAway++; l.turnedAway >= turnedAwayLimit {
		o.GiveUp(l, give)
	}
	return l.admits(units)
}

// Adopt leases an orphaned magazine of the class to a lane that has no free slot of it. It reports
// whether there was one.
func (o *Owner) Adopt(l *Lane, class int) bool {
	m := o.lease.orphans[class].newest
	if m == nil {
		return false
	}
	o.lease.orphans[class].remove(m)
	m.lane.Store(l)
	o.charge(l, spanUnits(class))
	l.place(class, m)
	return true
}

// LeaseSpan leases a span of the heap that starts at base to a lane that has no free slot of the class.
// It returns the magazine that has it.
func (o *Owner) LeaseSpan(l *Lane, class int, span int32, base cudadrv.Ptr) *Magazine {
	m := o.blank()
	m.Span, m.Class = span, int32(class)
	units := sizeclass.BlockUnits(class)
	step := cudadrv.Ptr(units) << sizeclass.UnitShift
	m.whole = spanSlots(class)
	m.local = m.whole
	for i := range sizeclass.SpanBlocks(class) {
		s := &m.slots[i]
		s.Units, s.address = units, base+cudadrv.Ptr(i)*step
		s.aside.Store(unhanded)
	}
	m.lane.Store(l)
	o.charge(l, spanUnits(class))
	l.place(class, m)
	return m
}

// LeaseBlock leases a block of the heap that starts at base to a lane, which has handed it out by that.
func (o *Owner) LeaseBlock(l *Lane, block int32, units uint32, base cudadrv.Ptr) *Slot {
	if l.unused == nil {
		m := o.blank()
		for i := range m.slots {
			m.slots[i].next, l.unused = l.unused, &m.slots[i]
		}
		m.lane.Store(l)
	}
	s := l.unused
	l.unused, s.next = s.next, nil
	m := s.magazine
	s.Block, s.Units, s.address = block, units, base
	s.place = uint16(lengthPlace(uint64(units)))
	s.aside.Store(s.word.Load())
	m.whole |= 1 << s.index
	o.charge(l, uint64(units))
	return s
}

// CloseLane ends a lane: what it does not use is given back, what is live comes home by others' frees.
func (o *Owner) CloseLane(l *Lane, give Give) {
	at := slices.Index(o.lease.lanes, l)
	if at < 0 {
		return
	}
	l.raised.Or(uint32(Ended))
	o.Settle(l, give)
	o.GiveUp(l, give)
	for _, m := range o.all {
		if !m.leased || m.lane.Load() != l {
			continue
		}
		m.lane.Store(nil)
		m.Older, m.Newer, m.serving = nil, nil, false
		switch {
		case m.whole == 0:
			o.spareLeased(m)
		case m.local != 0:
			o.lease.orphans[m.Class].push(m)
		}
	}
	o.charge(l, -l.leasedUnits)
	l.shelves, l.unused, l.chargeUnits = [sizeclass.Count]shelf{}, nil, 0
	o.lease.lanes = slices.Delete(o.lease.lanes, at, at+1)
}

// LeasedUnits is the length of the blocks that a lane has in the magazine; 0 if no lane has it.
func (m *Magazine) LeasedUnits() (units uint64) {
	switch {
	case m.lane.Load() == nil:
	case m.Class >= 0:
		units = spanUnits(int(m.Class))
	default:
		for f := m.whole; f != 0; f &= f - 1 {
			units += uint64(m.slots[bits.TrailingZeros64(f)].Units)
		}
	}
	return units
}
