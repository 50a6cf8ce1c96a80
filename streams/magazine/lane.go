package magazine

import (
	"math/bits"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// Reason is why a lane shall come to the owner. Reasons are set in turns and looked at by each call of
// the lane.
type Reason uint32

// The reasons for a lane to come to the owner.
const (
	// Asked says that somebody needs what the lane does not use.
	Asked Reason = 1 << iota
	// Returned says that others freed blocks of the lane's.
	Returned
	// Ended says that the cache or the lane was closed. It stays.
	Ended
)

const (
	// laneLengths is the number of places for lengths beyond the classes; a length has two to choose from.
	// Not smaller: lengths that meet push each other out. Not larger: each lane has them.
	laneLengths = 1 << laneLengthBits
	// laneLengthBits is its binary logarithm.
	laneLengthBits = 9
	// turnedAwayLimit is how often the budget refuses before the lane gives up all that it keeps, since that
	// is not what it is asked for. Not smaller: to fill a lane costs turns. Not larger: until then requests
	// go the ordinary way.
	turnedAwayLimit = 64
)

// Outcome is what became of a free by a lane.
type Outcome uint8

// The outcomes of a lane's free.
const (
	// Refused says that the lane did nothing: the free goes the ordinary way.
	Refused Outcome = iota
	// Kept says that the block is the lane's again.
	Kept
	// Surplus says so, and that the lane has more than it may keep: Owner.Settle.
	Surplus
)

// Beyond is where a lane sends what it does not do by itself. That the lane calls it, rather than return to
// somebody who would, keeps a pair at two calls.
type Beyond interface {
	// AllocBeyond serves a request that the lane had nothing for. It returns the handle and its bytes.
	AllocBeyond(bytes int64) (*Slot, uint64, int64, error)
	// FreeBeyond ends a handle that the lane refused (its slot may be nil), or goes to the owner with what a
	// free left over.
	FreeBeyond(s *Slot, handle uint64, outcome Outcome) error
}

// Lane is one goroutine's side of a cache: it works on plain memory. Its methods, and those of Owner that
// take it, are for one goroutine at a time; the owner's work for it is done while that goroutine waits.
//
// budgetUnits and beyond never change. raised is the owner's; arrived and leasedUnits are too.
type Lane struct {
	raised      atomic.Uint32
	budgetUnits uint64
	chargeUnits uint64 // kept, or, of a class in use, a span: never more than the budget
	turnedAway  int    // requests in sequence that the budget did not admit
	unused      *Slot  // without a block, for large ones
	surplus     *Magazine
	surplusSlot *Slot
	beyond      Beyond
	top         *Slot // the large block that was freed last: a fixed place is quicker than one that is looked up
	shelves     [sizeclass.Count]shelf
	large       [laneLengths]*Slot // lists of free blocks of one length each

	arrived     *Magazine // others freed slots of theirs
	leasedUnits uint64    // of all blocks that the lane has, live or not
	_           [cacheLine]byte
}

// shelf is what a lane has of a class. Magazines none of whose slots is free are in no list.
type shelf struct {
	current *Magazine // from which requests are served
	ready   pile      // the others that have free slots
}

// pile is a list of leased magazines of a class.
type pile struct{ newest *Magazine }

// Init says how many units the lane may keep, and who does what it does not. It serves nothing before
// Owner.OpenLane.
func (l *Lane) Init(budgetUnits uint64, beyond Beyond) {
	l.budgetUnits, l.beyond = budgetUnits, beyond
	l.raised.Store(uint32(Ended))
}

// Alloc serves a request of that many bytes: from the lane by loads and plain stores, or through Beyond. It
// looks in the likeliest place only; the others are Take's.
func (l *Lane) Alloc(bytes int64) (s *Slot, handle uint64, gotBytes int64, err error) {
	units := uint64(bytes-1)>>sizeclass.UnitShift + 1
	if l.raised.Load() != 0 {
		return l.allocElse(bytes)
	}
	if units > sizeclass.MaxUnits {
		if s = l.top; s != nil && uint64(s.Units) == units {
			l.top = nil
		} else {
			i := lengthPlace(units)
			if s = l.large[i]; s == nil || uint64(s.Units) != units {
				return l.allocElse(bytes)
			}
			l.large[i] = s.next
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
	handle = s.word.Load()
	storePlain(&s.aside, handle)
	return s, handle, bytes, nil
}

// allocElse is Alloc where the likeliest place has nothing.
func (l *Lane) allocElse(bytes int64) (*Slot, uint64, int64, error) {
	if s, handle := l.Take(bytes); s != nil {
		return s, handle, bytes, nil
	}
	if l.beyond == nil { // of a zero Lane
		return nil, 0, 0, cudadrv.ErrNotOpen
	}
	return l.beyond.AllocBeyond(bytes)
}

// Take serves a request of that many bytes from the lane, or returns nil. It has no atomic operation but
// loads. Requests of 0 bytes and less are not served.
func (l *Lane) Take(bytes int64) (*Slot, uint64) {
	units := uint64(bytes-1)>>sizeclass.UnitShift + 1
	if l.raised.Load() != 0 {
		return nil, 0
	}
	if units > sizeclass.MaxUnits {
		s := l.takeLarge(units)
		if s == nil {
			return nil, 0
		}
		l.chargeUnits -= units
		word := s.word.Load()
		storePlain(&s.aside, word)
		return s, word
	}
	m := l.shelves[sizeclass.Of(units)].current
	if m == nil || m.local == 0 {
		if m = l.turnOver(sizeclass.Of(units)); m == nil {
			return nil, 0
		}
	}
	s := &m.slots[bits.TrailingZeros64(m.local)]
	m.local &= m.local - 1
	word := s.word.Load()
	storePlain(&s.aside, word)
	return s, word
}

// takeLarge takes a block of that length from wherever it may be.
func (l *Lane) takeLarge(units uint64) *Slot {
	if s := l.top; s != nil && uint64(s.Units) == units {
		l.top = nil
		return s
	}
	place := lengthPlace(units)
	for _, i := range [...]uint64{place, place ^ 1} {
		if s := l.large[i]; s != nil && uint64(s.Units) == units {
			l.large[i] = s.next
			return s
		}
	}
	return nil
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

// serve makes a magazine, or none, the one from which requests are served.
func (sh *shelf) serve(m *Magazine) {
	if sh.current != nil {
		sh.current.serving = false
	}
	if sh.current = m; m != nil {
		m.serving = true
	}
}

// need is what the charge rises by when the class gets another magazine to be served from.
func (l *Lane) need(class int) uint64 {
	if l.shelves[class].current != nil {
		return 0
	}
	return spanUnits(class)
}

func (l *Lane) admits(units uint64) bool { return l.chargeUnits+units <= l.budgetUnits }

func spanUnits(class int) uint64 { return uint64(sizeclass.SpanUnits(class)) }

// lengthPlace is the first of the two places for a length; the other is its neighbour.
func lengthPlace(units uint64) uint64 {
	return units * 0x9E3779B97F4A7C15 >> (64 - laneLengthBits)
}

// Free ends a handle of one of the lane's slots and keeps its block, or leaves it to Beyond: if the handle is
// not live or the slot another's, if the slot carries flags, and if the lane has a reason to come to the
// owner. A free of the same handle by another goroutine at the same time may succeed too; it has no effect
// then.
func (l *Lane) Free(s *Slot, handle uint64) error {
	if s == nil {
		return l.refuse(s, handle)
	}
	m := s.magazine
	if m.lane.Load() != l {
		return l.refuse(s, handle)
	}
	if s.word.Load() != handle {
		return l.refuse(s, handle)
	}
	if l.raised.Load() != 0 {
		return l.refuse(s, handle)
	}
	storePlain(&s.word, freed(handle))
	if m.serving {
		m.local |= 1 << (s.index & 63)
		return nil
	}
	if m.Class >= 0 {
		return l.done(s, handle, l.keepAside(m, s))
	}
	storePlain(&s.aside, unhanded)
	units := uint64(s.Units)
	if l.chargeUnits+units > l.budgetUnits {
		l.shedSlot(s)
		return l.done(s, handle, Surplus)
	}
	l.chargeUnits += units
	if old := l.top; old != nil {
		i := old.place & (laneLengths - 1)
		head := l.large[i]
		if head != nil && head.Units != old.Units {
			l.top = s
			return l.done(s, handle, l.lay(old))
		}
		old.next = head
		l.large[i] = old
	}
	l.top = s
	return nil
}

// refuse leaves a free to Beyond.
func (l *Lane) refuse(s *Slot, handle uint64) error {
	if l.beyond == nil { // of a zero Lane
		return cudadrv.ErrNotOpen
	}
	return l.beyond.FreeBeyond(s, handle, Refused)
}

// done sends a lane that has more than it may keep to the owner.
func (l *Lane) done(s *Slot, handle uint64, outcome Outcome) error {
	if outcome == Kept {
		return nil
	}
	return l.beyond.FreeBeyond(s, handle, outcome)
}

// FreeRaised is Free by a lane that has a reason to come to the owner, and is about to.
func (l *Lane) FreeRaised(s *Slot, handle uint64) Outcome {
	m := s.magazine
	if m.lane.Load() != l || s.word.Load() != handle {
		return Refused
	}
	storePlain(&s.word, freed(handle))
	return l.keep(m, s)
}

// keep books a slot of the lane's that was freed.
func (l *Lane) keep(m *Magazine, s *Slot) Outcome {
	if m.Class >= 0 {
		return l.keepAside(m, s)
	}
	storePlain(&s.aside, unhanded)
	return l.keepLarge(s)
}

// keepAside books a slot of a class, most often of a magazine from which the class is not served.
func (l *Lane) keepAside(m *Magazine, s *Slot) Outcome {
	sh := &l.shelves[m.Class]
	was := m.local
	m.local |= 1 << s.index
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
func (l *Lane) keepLarge(s *Slot) Outcome {
	units := uint64(s.Units)
	if !l.admits(units) {
		l.shedSlot(s)
		return Surplus
	}
	l.chargeUnits += units
	return l.lay(s)
}

// lay puts a large block, which is charged, where its length is looked up: in its place, or in the neighbour if
// another length has that. A length that finds both taken has one cleared.
func (l *Lane) lay(s *Slot) Outcome {
	i, outcome := lengthPlace(uint64(s.Units)), Kept
	if !l.fits(i, s.Units) {
		if l.fits(i^1, s.Units) {
			i ^= 1
		} else {
			l.clearPlace(i)
			outcome = Surplus
		}
	}
	s.place = uint16(i)
	s.next = l.large[i]
	l.large[i] = s
	return outcome
}

// layTop lays the block that was freed last.
func (l *Lane) layTop() {
	if s := l.top; s != nil {
		l.top = nil
		l.lay(s)
	}
}

// fits reports whether blocks of that length may lie in a place.
func (l *Lane) fits(place uint64, units uint32) bool {
	head := l.large[place]
	return head == nil || head.Units == units
}

// clearPlace gives up the blocks of a length.
func (l *Lane) clearPlace(place uint64) {
	for s := l.large[place]; s != nil; {
		next := s.next
		l.chargeUnits -= uint64(s.Units)
		l.shedSlot(s)
		s = next
	}
	l.large[place] = nil
}

// shed and shedSlot leave a span, or a block, to the next Settle.
func (l *Lane) shed(m *Magazine) {
	m.Older, l.surplus = l.surplus, m
}

func (l *Lane) shedSlot(s *Slot) {
	s.next, l.surplusSlot = l.surplusSlot, s
}

func (p *pile) push(m *Magazine) {
	m.Older, m.Newer = p.newest, nil
	if p.newest != nil {
		p.newest.Newer = m
	}
	p.newest = m
}

func (p *pile) remove(m *Magazine) {
	if m.Newer != nil {
		m.Newer.Older = m.Older
	} else {
		p.newest = m.Older
	}
	if m.Older != nil {
		m.Older.Newer = m.Newer
	}
	m.Older, m.Newer = nil, nil
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

// Raised are the reasons for which the lane shall come to the owner.
func (l *Lane) Raised() Reason { return Reason(l.raised.Load()) }
