package magazine

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

// cacheLine is the unit of exchange between processors. Two slots in one line would make the frees of two
// goroutines wait for each other (BenchmarkFalseSharing).
const cacheLine = 64

// heapHeader is the length of the header that the Go heap puts before an object of this size with pointers.
// With it a magazine fills 4 KiB, and each slot has its own cache line.
const heapHeader = 8

// slotsOffset is the offset of the slots in every kind of magazine: after one cache line that callers share,
// and one of the owner's books (booksBytes).
const (
	slotsOffset = 2*cacheLine - heapHeader
	booksBytes  = cacheLine
)

// none is no block of the heap.
const none int32 = -1

// Slot is the place of one block. It never moves, and always belongs to the same magazine.
//
// word and note are shared. The holder of the block writes address and flags: the owner while it has the
// slot, or the winner of the free until it hands the slot over. aside belongs to the list. The rest belongs
// to the owner.
type Slot struct {
	word     atomic.Uint64
	address  cudadrv.Ptr
	magazine *Magazine
	note     atomic.Pointer[note] // nil for most
	aside    atomic.Uint64        // its entry in the list of freed slots: see entry

	Block int32 // of the heap; for slots with a block of their own
	Units uint32
	index uint8
	flags uint8 // of the last free
	_     [14]byte
}

// Magazine is the part of up to 62 slots that callers share: the mask of the free ones. Each kind of magazine
// begins with it, followed by its books and its slots: Span, Exact, loose.
//
// mask and contended are shared; next belongs to the list. The rest never changes once a caller can see the
// magazine.
type Magazine struct {
	mask      atomic.Uint64
	contended atomic.Uint32 // takes that lost a race
	units     uint32        // 0 if the blocks of the slots differ
	kind      kind
	way       uint8  // index in Frees
	number    uint32 // index in the owner's register; part of its slots' names
	home      *Home
	next      *Magazine // in the list of parked magazines
	part      Part
}

// layout is the layout of every kind.
type layout struct {
	Magazine
	_     [booksBytes]byte
	slots [SlotCount]Slot
}

// kind is the kind of a magazine.
type kind uint8

const (
	spanKind  kind = iota // slots of one size class, carved from one span
	exactKind             // large blocks of one length
	looseKind             // slots for blocks of any length, freed one by one
)

// Part is the part of the owner to which a magazine belongs. Returned slots are reported only to it.
type Part interface {
	// SlotHome books a slot that came through the list of freed slots and has no flags any more. It reports
	// whether that was the last slot of a closed span.
	SlotHome(s *Slot) (lastOfSpan bool)
	// MagazineHome takes a parked magazine in which a slot was freed.
	MagazineHome(m *Magazine)
	// LiveMask returns the bits of the slots that callers have. The lists must have been taken before.
	LiveMask(m *Magazine) uint64
}

// Home gathers freed slots that do not stay in their magazine: lists that callers push to and the owner
// takes. It also holds the waker of the owner. It is the first part of a stream's Cache.
type Home struct {
	life      atomic.Uint32
	backUnits atomic.Uint32 // longest block that TakeBack serves
	waker     Waker
	watcher   watcher       // nil: frees are not reported
	pileUnits atomic.Uint64 // length of a pile of announced blocks, if more than PileUnits
	// magazines are by number. The owner writes them. A caller reads the magazine of a name in a list, which
	// was written before the slot was handed out.
	magazines atomic.Pointer[[]atomic.Pointer[Magazine]]
	// wholeShare is the owner's, share the current one: see LowerShare.
	wholeShare, share atomic.Uint32

	freed atomic.Uint64 // top of a list of slots; callers push, the owner takes all, callers may pop
	used  atomic.Uint64 // likewise, of slots that other streams use: see nextUsed
	_     [cacheLine - 2*8]byte

	parked atomic.Pointer[Magazine] // callers push, the owner takes all
	reach  func(place string)       // nil but in a simulation: see SetReach
	_      [cacheLine - 2*8]byte
}

// Places between the atomic operations that announce, move, end and collect uses.
const (
	useNoted   = "a use is noted and not announced"
	useMoved   = "a block has moved and its use is not told"
	useEnds    = "the number of a use is told and its end is not"
	usesBroken = "the numbers of uses are taken and the list is not"
)

// SetReach sets a function that is called at places where others may run: a simulation holds the goroutine up there. It must be
// set before the first slot is handed out.
func (h *Home) SetReach(reach func(place string)) { h.reach = reach }

// atPlace reports a place to the simulation, if there is one.
func (s *Slot) atPlace(place string) {
	if reach := s.magazine.home.reach; reach != nil {
		reach(place)
	}
}

// Waker is notified of frees, on the goroutines that free.
type Waker interface {
	// Wake is called when a block is freed to a cache that is draining or wanted.
	Wake()
	// Piled is called when enough announced blocks were freed that the owner should check their uses.
	Piled()
	// Refused is called when a free is refused: its handle was not live.
	Refused()
	// Freed is called for the first block freed through the list after Alert.
	Freed()
}

// Address returns the start of the slot's block.
func (s *Slot) Address() cudadrv.Ptr { return s.address }

// SetAddress sets the block of a slot that the owner has.
func (s *Slot) SetAddress(p cudadrv.Ptr) { s.address = p }

// Magazine returns the slot's magazine.
func (s *Slot) Magazine() *Magazine { return s.magazine }

// Waker returns the waker of the slot's cache.
func (s *Slot) Waker() Waker { return s.magazine.home.waker }

// Word returns the word of a handle of the slot's current owner.
func (s *Slot) Word() uint64 { return s.word.Load() &^ flagMask }

// Live reports whether a handle with that word is live.
func (s *Slot) Live(handle uint64) bool { return matches(s.word.Load(), handle) }

// FreedSince reports whether the allocation of a handle was freed; a move does not count.
func (s *Slot) FreedSince(handle uint64) bool {
	return s.word.Load()>>generationShift != handle>>generationShift
}

// Frees returns how often the slot was freed.
func (s *Slot) Frees() uint64 { return s.word.Load() >> generationShift }

// Flags returns the flags of the slot when it was freed.
func (s *Slot) Flags() Flag { return Flag(s.flags) }

// clearFlags clears the flags of a slot that the owner has: no caller's operation on its word succeeds any
// more.
func (s *Slot) clearFlags() {
	if s.word.Load()&flagMask != 0 {
		s.word.And(^uint64(flagMask))
	}
}

// slots returns the slots of a magazine of any kind: all kinds have them at one offset.
func (m *Magazine) slots() *[SlotCount]Slot {
	return &(*layout)(unsafe.Pointer(m)).slots
}

// At returns the slot of a bit, counted from 0.
func (m *Magazine) At(bit int) *Slot { return &m.slots()[bit] }

// Units returns the length of the magazine's blocks; 0 if they differ.
func (m *Magazine) Units() uint32 { return m.units }

// UnitsOf returns the length of the block of one of the magazine's slots.
func (m *Magazine) UnitsOf(s *Slot) uint32 {
	if m.units != 0 {
		return m.units
	}
	return s.Units
}

// Loose reports whether the slots serve blocks of any length.
func (m *Magazine) Loose() bool { return m.kind == looseKind }

// FreeSlots returns the number of free slots.
func (m *Magazine) FreeSlots() int {
	w := m.mask.Load()
	if w >= closedBit {
		return 0
	}
	return bits.OnesCount64(w & slotBits)
}

// Frees returns how often the magazine's slots were freed, in sum.
func (m *Magazine) Frees() uint64 {
	var n uint64
	m.Each(func(s *Slot) { n += s.Frees() })
	return n
}

// IsLive reports whether a caller has a slot. The lists must have been taken before; a slot that is being
// freed counts.
func (m *Magazine) IsLive(s *Slot) bool { return m.part.LiveMask(m)>>s.index&1 != 0 }

// LiveSlots returns the number of slots that callers have. The lists must have been taken before.
func (m *Magazine) LiveSlots() int { return bits.OnesCount64(m.part.LiveMask(m)) }

// EachLive visits the slots that callers have. The lists must have been taken before.
func (m *Magazine) EachLive(visit func(*Slot)) {
	for live := m.part.LiveMask(m); live != 0; live &= live - 1 {
		visit(m.At(bits.TrailingZeros64(live)))
	}
}

// Each visits the slots of a magazine.
func (m *Magazine) Each(visit func(*Slot)) {
	slots := m.slots()
	for i := range slots {
		visit(&slots[i])
	}
}

// Take takes the lowest free slot. It returns nil if there is none.
func (m *Magazine) Take() *Slot {
	for {
		w := m.mask.Load()
		next, i, ok := nextTake(w)
		if !ok {
			return nil
		}
		if m.mask.CompareAndSwap(w, next) {
			return &(*layout)(unsafe.Pointer(m)).slots[i] // At, in a form that keeps Take inlined
		}
		m.contended.Add(1)
	}
}

// TakeMany takes up to most free slots by one access, and returns their bits.
func (m *Magazine) TakeMany(most int) (taken uint64) {
	for {
		w := m.mask.Load()
		next, taken := nextTakeMany(w, most)
		if taken == 0 || m.mask.CompareAndSwap(w, next) {
			return taken
		}
		m.contended.Add(1)
	}
}

// noted returns the slot's note, and creates it if necessary.
func (s *Slot) noted() *note {
	if n := s.note.Load(); n != nil {
		return n
	}
	s.note.CompareAndSwap(nil, new(note))
	return s.note.Load()
}
