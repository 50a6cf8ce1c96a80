package lane

import (
	"math/bits"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Leases is the owner's part that leases memory to lanes. Its methods are for the goroutine that
// runs the turn; those that take a lane are called while the lane's goroutine waits, or by it.
type Leases struct {
	owner   *magazine.Owner
	give    Give
	lanes   []*Lane
	all     []*Magazine
	units   uint64                // of all blocks that lanes have, live or not
	strays  *Magazine             // handed over, and no lane's
	orphans [sizeclass.Count]pile // those with free slots
	spare   *Magazine
}

// Give takes a block that was released: the span of a class, or, where class is negative, a
// block of its own.
type Give func(block, class int32)

// NewLeases makes the part of an owner that leases to lanes; give gets what it does not lease any more.
func NewLeases(owner *magazine.Owner, give Give) *Leases { return &Leases{owner: owner, give: give} }

// Open makes a lane of the cache ready to be leased to.
func (o *Leases) Open(l *Lane) {
	o.lanes = append(o.lanes, l)
	l.home = o.owner.Cache()
	l.raised.Store(0)
}

// Lanes is the number of lanes, and LeasedUnits the length of all blocks that they have, live or not.
func (o *Leases) Lanes() int { return len(o.lanes) }

// LeasedUnits is the length of all blocks that lanes have, live or not.
func (o *Leases) LeasedUnits() uint64 { return o.units }

// Raise gives every lane a reason to come to the owner.
func (o *Leases) Raise(why Reason) {
	for _, l := range o.lanes {
		l.raised.Or(uint32(why))
	}
}

// RaiseReturned gives the lanes whose blocks others freed a reason to come.
func (o *Leases) RaiseReturned() {
	for _, l := range o.lanes {
		if l.arrived != nil {
			l.raised.Or(uint32(Returned))
		}
	}
}

// arrive takes a leased magazine out of whose slots others freed some.
func (o *Leases) arrive(m *Magazine) {
	list := &o.strays
	if l := m.lane(); l != nil {
		list = &l.arrived
	}
	m.next, *list = *list, m
}

// SlotHome implements magazine.Part: a leased slot comes home by its mask.
func (o *Leases) SlotHome(*magazine.Slot) bool { return false }

// MagazineHome implements magazine.Part.
func (o *Leases) MagazineHome(m *magazine.Magazine) { o.arrive(of(m)) }

// LiveMask implements magazine.Part. The slots of a lane at work change meanwhile.
func (o *Leases) LiveMask(m *magazine.Magazine) uint64 { return m.OutMask(of(m).whole) }

// cameHome collects the slots that others freed since the last time.
func (o *Leases) cameHome(m *Magazine) uint64 {
	return o.owner.CameHome(&m.Magazine, m.whole&^m.local)
}

// Sift passes the announced slots that others freed of the lanes' magazines to the parts that keep
// them, before the lanes take them home.
func (o *Leases) Sift() {
	o.owner.CollectParked()
	for m := o.strays; m != nil; m = m.next {
		o.owner.Sift(&m.Magazine, m.whole)
	}
	for _, l := range o.lanes {
		for m := l.arrived; m != nil; m = m.next {
			o.owner.Sift(&m.Magazine, m.whole)
		}
	}
}

// Return is the free of a slot of a leased magazine that was kept.
func (o *Leases) Return(s *magazine.Slot) {
	if (*magazine.Leased)(s).Return() {
		o.MagazineHome(s.Magazine())
	}
}

// Collect sorts the magazines that callers handed over, and releases what came home of those that no
// lane has.
func (o *Leases) Collect() {
	o.owner.CollectParked()
	m := o.strays
	o.strays = nil
	for m != nil {
		next := m.next
		m.next = nil
		switch {
		case m.lane() != nil: // leased anew meanwhile
			o.arrive(m)
		case m.Class >= 0:
			o.orphanHome(m)
		default:
			for f := o.cameHome(m); f != 0; f &= f - 1 {
				o.releaseBlock(&m.slots[bits.TrailingZeros64(f)])
			}
		}
		m = next
	}
}

// orphanHome books what came home of a span that no lane has.
func (o *Leases) orphanHome(m *Magazine) {
	was := m.local
	m.local |= o.cameHome(m)
	switch {
	case m.local == m.whole:
		if was != 0 {
			o.orphans[m.Class].remove(m)
		}
		o.releaseSpan(m)
	case was == 0 && m.local != 0:
		o.orphans[m.Class].push(m)
	}
}

// Settle takes home what others freed of the lane's blocks and releases what the lane may not keep;
// what it does not use, too, if it was asked. The reasons for which it came are gone afterwards. It
// reports those that there were.
func (o *Leases) Settle(l *Lane) Reason {
	why := l.Raised()
	o.Collect()
	m := l.arrived
	l.arrived = nil
	for m != nil {
		next := m.next
		m.next = nil
		if m.lane() != l { // released meanwhile
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
		l.shedUnused()
	}
	o.releaseSurplus(l)
	l.raised.And(uint32(Ended))
	return why
}

// ReleaseUnused releases all that the lane keeps and does not use.
func (o *Leases) ReleaseUnused(l *Lane) {
	l.shedUnused()
	o.releaseSurplus(l)
}

// releaseSurplus releases what the lane has shed.
func (o *Leases) releaseSurplus(l *Lane) {
	for m := l.surplus; m != nil; {
		next := m.older
		m.older = nil
		o.releaseSpan(m)
		m = next
	}
	for s := l.surplusSlot; s != nil; {
		next := s.Next
		o.releaseBlock(s)
		s = next
	}
	l.surplus, l.surplusSlot = nil, nil
}

// releaseSpan releases the span of a magazine all of whose slots are free.
func (o *Leases) releaseSpan(m *Magazine) {
	span, class := m.Block, m.Class
	if l := m.lane(); l != nil {
		o.charge(l, -spanUnits(int(class)))
	}
	m.Block, m.Class, m.whole, m.local = none, -1, 0, 0
	o.spareLeased(m)
	o.give(span, class)
}

// releaseBlock releases the block of a slot that is free.
func (o *Leases) releaseBlock(s *magazine.Slot) {
	m, block := of(s.Magazine()), s.Block
	m.whole &^= 1 << (*magazine.Leased)(s).Index()
	s.Block, s.Next = none, nil
	if l := m.lane(); l != nil {
		o.charge(l, -uint64(s.Units))
		s.Next, l.unused = l.unused, s
	} else if m.whole == 0 {
		o.spareLeased(m)
	}
	o.give(block, -1)
}

// charge counts units that a lane gets, or, as the two's complement, loses.
func (o *Leases) charge(l *Lane, units uint64) {
	l.leasedUnits += units
	o.units += units
}

func (o *Leases) spareLeased(m *Magazine) {
	m.Lessee.Store(nil)
	m.older, o.spare = o.spare, m
}

// blank is a leased magazine without blocks.
func (o *Leases) blank() *Magazine {
	m := o.spare
	if m != nil {
		o.spare, m.older = m.older, nil
		return m
	}
	m = &Magazine{books: books{Block: none, Class: -1}}
	o.owner.Lease(&m.Magazine, o)
	o.all = append(o.all, m)
	return m
}

// Admits reports whether the budget leaves room for what serves such a request. It refuses no more than
// so many in sequence: then the lane releases what it keeps. Precondition: Fits(bytes).
func (o *Leases) Admits(l *Lane, bytes int64) bool {
	units := sizeclass.Units(bytes)
	if units <= sizeclass.MaxUnits {
		units = l.need(sizeclass.Of(units))
	}
	if l.admits(units) {
		l.refusals = 0
		return true
	}
	if l.refusals++; l.refusals >= refusalLimit {
		o.ReleaseUnused(l)
	}
	return l.admits(units)
}

// Adopt leases an orphaned magazine of the class to a lane that has no free slot of it. It reports
// whether there was one.
func (o *Leases) Adopt(l *Lane, class int) bool {
	m := o.orphans[class].newest
	if m == nil {
		return false
	}
	o.orphans[class].remove(m)
	m.Lessee.Store(&l.Lessee)
	o.charge(l, spanUnits(class))
	l.place(class, m)
	return true
}

// LeaseSpan leases a span of the heap that starts at base to a lane that has no free slot of the class.
// It returns the magazine that has it.
func (o *Leases) LeaseSpan(l *Lane, class int, span int32, base cudadrv.Ptr) *Magazine {
	m := o.blank()
	m.Block, m.Class = span, int32(class)
	units := sizeclass.BlockUnits(class)
	step := cudadrv.Ptr(units) << sizeclass.UnitShift
	m.whole = magazine.SpanSlots(class)
	m.local = m.whole
	for i := range sizeclass.SpanBlocks(class) {
		s := &m.slots[i]
		o.owner.Fit(s, units)
		s.SetAddress(base + cudadrv.Ptr(i)*step)
		(*magazine.Leased)(s).Forget()
	}
	m.Lessee.Store(&l.Lessee)
	o.charge(l, spanUnits(class))
	l.place(class, m)
	return m
}

// LeaseBlock leases a block of the heap that starts at base to a lane, which has handed it out by that.
func (o *Leases) LeaseBlock(l *Lane, block int32, units uint32, base cudadrv.Ptr) *magazine.Slot {
	if l.unused == nil {
		m := o.blank()
		for i := range m.slots {
			m.slots[i].Next, l.unused = l.unused, &m.slots[i]
		}
		m.Lessee.Store(&l.Lessee)
	}
	s := l.unused
	l.unused, s.Next = s.Next, nil
	m, slot := of(s.Magazine()), (*magazine.Leased)(s)
	s.Block = block
	o.owner.Fit(s, units)
	s.SetAddress(base)
	s.Place = uint16(lengthPlace(uint64(units)))
	slot.HandOut()
	m.whole |= 1 << slot.Index()
	o.charge(l, uint64(units))
	return s
}

// Close ends a lane: what it does not use is released, what is live comes home by the frees of others.
func (o *Leases) Close(l *Lane) {
	at := slices.Index(o.lanes, l)
	if at < 0 {
		return
	}
	l.raised.Or(uint32(Ended))
	o.Settle(l)
	o.ReleaseUnused(l)
	for _, m := range o.all {
		if m.lane() != l {
			continue
		}
		m.Lessee.Store(nil)
		m.older, m.newer, m.serving = nil, nil, false
		switch {
		case m.whole == 0:
			o.spareLeased(m)
		case m.local != 0:
			o.orphans[m.Class].push(m)
		}
	}
	o.charge(l, -l.leasedUnits)
	l.shelves, l.unused, l.chargeUnits = [sizeclass.Count]shelf{}, nil, 0
	o.lanes = slices.Delete(o.lanes, at, at+1)
}

// Each visits the magazines that only lanes use.
func (o *Leases) Each(visit func(*Magazine)) {
	for _, m := range o.all {
		visit(m)
	}
}
