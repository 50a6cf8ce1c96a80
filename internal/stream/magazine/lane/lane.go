package lane

import (
	"math/bits"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Reason is why a lane must come to the owner. Reasons are set in turns and looked at by each call of
// the lane.
type Reason uint32

// The reasons for a lane to come to the owner.
const (
	// Asked says that other streams or requests need what the lane does not use.
	Asked Reason = 1 << iota
	// Returned says that others freed blocks of the lane's.
	Returned
	// Ended says that the cache or the lane was closed. It stays.
	Ended
)

// refusalLimit is how often the budget refuses before the lane releases all that it keeps, since
// that is not what it is asked for. Not smaller: to fill a lane costs turns. Not larger: until then
// requests go the ordinary way.
const refusalLimit = 64

// Outcome is what became of a free by a lane.
type Outcome uint8

// The outcomes of a lane's free.
const (
	// Refused says that the lane did nothing: the free goes the ordinary way.
	Refused Outcome = iota
	// Kept says that the block is the lane's again.
	Kept
	// Surplus says so, and that the lane has more than it may keep: Leases.Settle.
	Surplus
)

// beyond is where a lane sends what it does not do by itself. That the lane calls it, rather than
// return to a caller that would, keeps a pair at two calls.
type beyond interface {
	// AllocBeyond serves a request that the lane had nothing for. It returns the handle and its bytes.
	AllocBeyond(bytes int64) (*magazine.Slot, uint64, int64, error)
	// AllocSampled is as that of a cache.
	AllocSampled(s *magazine.Slot, handle uint64, bytes int64) (*magazine.Slot, uint64, int64, error)
	// FreeBeyond ends a handle that the lane refused (its slot may be nil), or goes to the owner
	// with what a free left over.
	FreeBeyond(s *magazine.Slot, handle uint64, outcome Outcome) error
}

// Lane is one goroutine's side of a cache: it works on plain memory. Its methods, and those of
// Leases that take it, are for one goroutine at a time; the owner works for it while that goroutine
// waits.
//
// budgetUnits and beyond never change. raised is the owner's; arrived and leasedUnits are too.
type Lane struct {
	magazine.Lessee // first: see Magazine.lane

	raised      atomic.Uint32
	home        *magazine.Home // of the cache that leases to the lane; nil before Leases.Open
	budgetUnits uint64
	chargeUnits uint64         // kept, or, of a class in use, a span: never more than the budget
	refusals    int            // requests in sequence that the budget did not admit
	unused      *magazine.Slot // without a block, for large ones
	surplus     *Magazine
	surplusSlot *magazine.Slot
	beyond      beyond
	shelves     [sizeclass.Count]shelf
	large       lengths

	arrived     *Magazine // others freed slots of theirs
	leasedUnits uint64    // of all blocks that the lane has, live or not
	_           [64]byte  // a cache line
}

// Init sets how many units the lane may keep, and where it sends what it does not do. It serves
// nothing before Leases.Open.
func (l *Lane) Init(budgetUnits uint64, b beyond) {
	l.budgetUnits, l.beyond = budgetUnits, b
	l.raised.Store(uint32(Ended))
}

// Alloc serves a request of that many bytes: from the lane by loads and plain stores, or through
// beyond. It looks in the likeliest place only; the others are Take's.
func (l *Lane) Alloc(bytes int64) (s *magazine.Slot, handle uint64, gotBytes int64, err error) {
	units := uint64(bytes-1)>>sizeclass.UnitShift + 1
	if l.raised.Load() != 0 {
		return l.allocElse(bytes)
	}
	if units > sizeclass.MaxUnits {
		if s = l.large.top; s != nil && uint64(s.Units) == units {
			l.large.top = nil
		} else {
			i := lengthPlace(units)
			if s = l.large.places[i]; s == nil || uint64(s.Units) != units {
				return l.allocElse(bytes)
			}
			l.large.places[i] = s.Next
		}
		l.chargeUnits -= units
	} else {
		m := l.shelves[sizeclass.Of(units)].current
		if m == nil || m.local == 0 {
			return l.allocElse(bytes)
		}
		s = &m.slots[bits.TrailingZeros64(m.local)]
		m.local &= m.local - 1
	}
	handle = (*magazine.Leased)(s).HandOut()
	if share := l.home.Share(); share != 0 && share.Samples(s.Draw(handle), uint64(s.Units)) {
		return l.beyond.AllocSampled(s, handle, bytes)
	}
	return s, handle, bytes, nil
}

// allocElse is Alloc where the likeliest place has nothing.
func (l *Lane) allocElse(bytes int64) (*magazine.Slot, uint64, int64, error) {
	if s, handle := l.Take(bytes); s != nil {
		if l.home.Share().Samples(s.Draw(handle), uint64(s.Magazine().UnitsOf(s))) {
			return l.beyond.AllocSampled(s, handle, bytes)
		}
		return s, handle, bytes, nil
	}
	if l.beyond == nil { // of a zero Lane
		return nil, 0, 0, cudadrv.ErrNotOpen
	}
	return l.beyond.AllocBeyond(bytes)
}

// Take serves a request of that many bytes from the lane, or returns nil. It has no atomic
// operation but loads. Requests of 0 bytes and less are not served.
func (l *Lane) Take(bytes int64) (*magazine.Slot, uint64) {
	units := uint64(bytes-1)>>sizeclass.UnitShift + 1
	if l.raised.Load() != 0 {
		return nil, 0
	}
	if units > sizeclass.MaxUnits {
		s := l.large.take(units)
		if s == nil {
			return nil, 0
		}
		l.chargeUnits -= units
		return s, (*magazine.Leased)(s).HandOut()
	}
	m := l.shelves[sizeclass.Of(units)].current
	if m == nil || m.local == 0 {
		if m = l.turnOver(sizeclass.Of(units)); m == nil {
			return nil, 0
		}
	}
	s := &m.slots[bits.TrailingZeros64(m.local)]
	m.local &= m.local - 1
	return s, (*magazine.Leased)(s).HandOut()
}

// turnOver puts another magazine of the class in the place of an exhausted one, nil if there is none.
func (l *Lane) turnOver(class int) *Magazine {
	sh := &l.shelves[class]
	m := sh.ready.newest
	if m == nil || (sh.current == nil && !l.admits(l.need(class))) {
		return nil
	}
	sh.ready.remove(m)
	if m.local == m.whole {
		l.chargeUnits -= spanUnits(class)
	}
	l.place(class, m)
	return m
}

// place makes a magazine the one from which its class is served.
func (l *Lane) place(class int, m *Magazine) {
	l.chargeUnits += l.need(class)
	l.shelves[class].serve(m)
}

// need is what the charge rises by when the class gets another magazine to be served from.
func (l *Lane) need(class int) uint64 {
	if l.shelves[class].current != nil {
		return 0
	}
	return spanUnits(class)
}

func (l *Lane) admits(units uint64) bool { return l.chargeUnits+units <= l.budgetUnits }

// Free ends a handle of one of the lane's slots and keeps its block, or leaves it to beyond: if the
// handle is not live or the slot another's, if the slot carries flags, and if the lane has a reason
// to come to the owner. A free of the same handle by another goroutine at the same time may succeed
// too; it has no effect then.
func (l *Lane) Free(s *magazine.Slot, handle uint64) error {
	if s == nil {
		return l.refuse(s, handle)
	}
	if l.raised.Load() != 0 {
		return l.refuse(s, handle)
	}
	m, slot := of(s.Magazine()), (*magazine.Leased)(s)
	if m.Lessee.Load() != &l.Lessee { // m may be of another kind
		return l.refuse(s, handle)
	}
	if !slot.Has(handle) {
		return l.refuse(s, handle)
	}
	slot.End(handle)
	if m.serving {
		m.local |= 1 << slot.Index()
		return nil
	}
	if m.Class >= 0 {
		return l.done(s, handle, l.keepAside(m, s))
	}
	slot.Forget()
	units := uint64(s.Units)
	if l.chargeUnits+units > l.budgetUnits {
		l.shedSlot(s)
		return l.done(s, handle, Surplus)
	}
	l.chargeUnits += units
	if old := l.large.top; old != nil {
		i := old.Place & (lengthPlaces - 1)
		head := l.large.places[i]
		if head != nil && head.Units != old.Units {
			l.large.top = s
			return l.done(s, handle, l.lay(old))
		}
		old.Next = head
		l.large.places[i] = old
	}
	l.large.top = s
	return nil
}

// refuse leaves a free to beyond.
func (l *Lane) refuse(s *magazine.Slot, handle uint64) error {
	if l.beyond == nil { // of a zero Lane
		return cudadrv.ErrNotOpen
	}
	return l.beyond.FreeBeyond(s, handle, Refused)
}

// done sends a lane that has more than it may keep to the owner.
func (l *Lane) done(s *magazine.Slot, handle uint64, outcome Outcome) error {
	if outcome == Kept {
		return nil
	}
	return l.beyond.FreeBeyond(s, handle, outcome)
}

// FreeRaised is Free by a lane that has a reason to come to the owner, and is about to.
func (l *Lane) FreeRaised(s *magazine.Slot, handle uint64) Outcome {
	m, slot := of(s.Magazine()), (*magazine.Leased)(s)
	if m.lane() != l || !slot.Has(handle) {
		return Refused
	}
	slot.End(handle)
	return l.keep(m, s)
}

// keep books a slot of the lane's that was freed.
func (l *Lane) keep(m *Magazine, s *magazine.Slot) Outcome {
	if m.Class >= 0 {
		return l.keepAside(m, s)
	}
	(*magazine.Leased)(s).Forget()
	return l.keepLarge(s)
}

// keepAside books a slot of a class, most often of a magazine from which the class is not served.
func (l *Lane) keepAside(m *Magazine, s *magazine.Slot) Outcome {
	sh := &l.shelves[m.Class]
	was := m.local
	m.local |= 1 << (*magazine.Leased)(s).Index()
	if m.serving {
		return Kept
	}
	if was == 0 {
		sh.ready.push(m)
	}
	if m.local != m.whole {
		return Kept
	}
	if span := spanUnits(int(m.Class)); l.admits(span) {
		l.chargeUnits += span
		return Kept
	}
	sh.ready.remove(m)
	l.shed(m)
	return Surplus
}

// keepLarge books a large block that is free.
func (l *Lane) keepLarge(s *magazine.Slot) Outcome {
	units := uint64(s.Units)
	if !l.admits(units) {
		l.shedSlot(s)
		return Surplus
	}
	l.chargeUnits += units
	return l.lay(s)
}

// lay lays a large block, which is charged, among those of its length, and sheds what has to leave
// for it.
func (l *Lane) lay(s *magazine.Slot) Outcome {
	evicted := l.large.lay(s)
	if evicted == nil {
		return Kept
	}
	l.shedList(evicted)
	return Surplus
}

// shedUnused sheds all that is not in use. Spans of which blocks live stay.
func (l *Lane) shedUnused() {
	for class := range l.shelves {
		sh, span := &l.shelves[class], spanUnits(class)
		for m := sh.ready.newest; m != nil; {
			next := m.older
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
	l.large.each(l.shedList)
	l.refusals = 0
}

// shed, shedSlot and shedList leave a span, a block or a list of blocks that are charged to the
// next Settle.
func (l *Lane) shed(m *Magazine) {
	m.older, l.surplus = l.surplus, m
}

func (l *Lane) shedSlot(s *magazine.Slot) {
	s.Next, l.surplusSlot = l.surplusSlot, s
}

func (l *Lane) shedList(s *magazine.Slot) {
	for s != nil {
		next := s.Next
		l.chargeUnits -= uint64(s.Units)
		l.shedSlot(s)
		s = next
	}
}

// Fits reports whether the budget could hold what serves such a request, if nothing else were kept.
// Precondition: 0 < bytes.
func (l *Lane) Fits(bytes int64) bool {
	units := sizeclass.Units(bytes)
	if units <= sizeclass.MaxUnits {
		units = spanUnits(sizeclass.Of(units))
	}
	return units <= l.budgetUnits
}

// Raised are the reasons for which the lane must come to the owner.
func (l *Lane) Raised() Reason { return Reason(l.raised.Load()) }
