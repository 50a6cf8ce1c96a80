package magazine

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

// cacheLine is the step in which processors exchange memory; two slots in one would make the frees of
// two goroutines wait for each other (BenchmarkFalseSharing).
const cacheLine = 64

// heapHeader is what the Go heap puts in front of an object of this length that has pointers. With it a
// magazine fills 4 KiB, and its slots lie on cache lines of their own.
const heapHeader = 8

// slotsOffset is where the slots of a magazine of any kind begin: after a line that callers share
// and a line of the owner's books, whose length is booksBytes.
const (
	slotsOffset = 2*cacheLine - heapHeader
	booksBytes  = cacheLine
)

// none stands for no block of the heap.
const none int32 = -1

// Slot is the place of one block. It never moves and belongs to one magazine for good.
//
// word and note are shared. address and flags are written by the holder of the block: the owner while
// the slot is home, the winner of the free until the slot is handed over. aside is the list's. The
// rest is the owner's.
type Slot struct {
	word     atomic.Uint64
	address  cudadrv.Ptr
	magazine *Magazine
	note     atomic.Pointer[note] // nil for most
	aside    atomic.Uint64        // its entry in the list of freed slots: see entry

	Block int32 // of the heap; for slots that have a block of their own
	Units uint32
	index uint8
	flags uint8 // of the free that brought it home
	_     [14]byte
}

// Magazine is the part of up to 62 slots that callers share: the mask that says which of them are free.
// Each kind of magazine begins with it, and has its books and its slots after it: Span, Exact, loose.
//
// mask and contended are shared; next is the list's. The rest never changes once a caller can see the
// magazine.
type Magazine struct {
	mask      atomic.Uint64
	contended atomic.Uint32 // takes that lost a race
	units     uint32        // 0 if the blocks of the slots differ
	kind      kind
	way       uint8  // where Frees gathers its slots
	number    uint32 // in the owner's register: its slots are named by it
	home      *Home
	next      *Magazine // in the list of parked magazines
	part      Part
}

// layout is that of every kind.
type layout struct {
	Magazine
	_     [booksBytes]byte
	slots [SlotCount]Slot
}

// kind tells magazines apart.
type kind uint8

const (
	spanKind  kind = iota // slots of one size class, carved from one span
	exactKind             // large blocks of one length
	looseKind             // its slots serve blocks of any length and come home one by one
)

// Part is the part of the owner to which a magazine belongs. It alone is told what comes home.
type Part interface {
	// SlotHome books a slot that came through the list of freed slots and has no flags any more. It
	// reports whether that was the last slot of a closed span.
	SlotHome(s *Slot) (lastOfSpan bool)
	// MagazineHome takes a parked magazine in which a slot was freed.
	MagazineHome(m *Magazine)
	// LiveMask is the bits of the slots that callers have. The lists must have been taken before.
	LiveMask(m *Magazine) uint64
}

// Home is where freed slots go that do not stay in their magazine: lists that callers push to and the
// owner takes, and the way to wake the owner. It begins the cache of a stream.
type Home struct {
	life      atomic.Uint32
	backUnits atomic.Uint32 // longest block that TakeBack serves
	waker     Waker
	watcher   watcher       // nil: frees are not told
	pileUnits atomic.Uint64 // length of a pile of announced blocks, if it is more than PileUnits
	// magazines are by number. The owner writes it; a caller reads what a name in a list stands
	// for, which was written before the slot was handed out.
	magazines atomic.Pointer[[]atomic.Pointer[Magazine]]
	// wholeShare is the owner's, share the present one: see LowerShare.
	wholeShare, share atomic.Uint32

	freed atomic.Uint64 // the top of a list of slots; pushed by callers, taken whole by the owner, or one by one by callers
	used  atomic.Uint64 // likewise, of those that others use: see nextUsed
	_     [cacheLine - 2*8]byte

	parked atomic.Pointer[Magazine] // pushed by callers, taken whole by the owner
	_      [cacheLine - 8]byte
}

// Waker is told of what callers of Free have done, on their goroutines.
type Waker interface {
	// Wake says that a block came home to a cache that is draining or wanted.
	Wake()
	// Piled says that so many announced blocks were freed that the owner should look at their uses.
	Piled()
	// Refused says that a free was refused: its handle was not live.
	Refused()
	// Freed says that a block came home through the list, the first since Home.Alert.
	Freed()
}

// Address is where the slot's block starts.
func (s *Slot) Address() cudadrv.Ptr { return s.address }

// SetAddress places a block in a slot that is home.
func (s *Slot) SetAddress(p cudadrv.Ptr) { s.address = p }

// Magazine is the slot's.
func (s *Slot) Magazine() *Magazine { return s.magazine }

// Waker is told of the frees of the cache to which the slot's block belongs.
func (s *Slot) Waker() Waker { return s.magazine.home.waker }

// Word is what a handle of the slot's present owner carries.
func (s *Slot) Word() uint64 { return s.word.Load() &^ flagMask }

// Live reports whether a handle with that word still is live.
func (s *Slot) Live(handle uint64) bool { return matches(s.word.Load(), handle) }

// Frees is how often the slot was freed.
func (s *Slot) Frees() uint64 { return s.word.Load() >> generationShift }

// Flags are those that the slot carried when it was freed.
func (s *Slot) Flags() Flag { return Flag(s.flags) }

// clearFlags is for a slot that is home: no caller's operation on its word succeeds any more.
func (s *Slot) clearFlags() {
	if s.word.Load()&flagMask != 0 {
		s.word.And(^uint64(flagMask))
	}
}

// slots are the magazine's, of whatever kind it is: all kinds have them at one offset.
func (m *Magazine) slots() *[SlotCount]Slot {
	return &(*layout)(unsafe.Pointer(m)).slots
}

// At is the slot of a bit, counted from 0.
func (m *Magazine) At(bit int) *Slot { return &m.slots()[bit] }

// Units is the length of the magazine's blocks; 0 if they differ.
func (m *Magazine) Units() uint32 { return m.units }

// UnitsOf is the length of the block of one of the magazine's slots.
func (m *Magazine) UnitsOf(s *Slot) uint32 {
	if m.units != 0 {
		return m.units
	}
	return s.Units
}

// Loose reports whether the slots serve blocks of any length.
func (m *Magazine) Loose() bool { return m.kind == looseKind }

// FreeSlots is the number of free slots.
func (m *Magazine) FreeSlots() int {
	w := m.mask.Load()
	if w >= closedBit {
		return 0
	}
	return bits.OnesCount64(w & slotBits)
}

// Frees is how often its slots were freed, in sum.
func (m *Magazine) Frees() uint64 {
	var n uint64
	m.Each(func(s *Slot) { n += s.Frees() })
	return n
}

// IsLive reports whether a caller has a slot. The lists must have been taken before; a slot whose
// free is under way counts.
func (m *Magazine) IsLive(s *Slot) bool { return m.part.LiveMask(m)>>s.index&1 != 0 }

// LiveSlots is the number of slots that callers have. The lists must have been taken before.
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

// Take gives the lowest free slot to the caller, or nil if there is none.
func (m *Magazine) Take() *Slot {
	for {
		w := m.mask.Load()
		next, i, ok := nextTake(w)
		if !ok {
			return nil
		}
		if m.mask.CompareAndSwap(w, next) {
			return &(*layout)(unsafe.Pointer(m)).slots[i] // At, in a form that lets Take be inlined
		}
		m.contended.Add(1)
	}
}

// TakeMany takes up to most free slots, as a caller does, by one access, and returns their bits.
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
