package magazine

import (
	"math/bits"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
)

// cacheLine is the step in which processors exchange memory; two slots in one would make the frees of
// two goroutines wait for each other (BenchmarkFalseSharing).
const cacheLine = 64

// heapHeader is what the Go heap puts in front of an object of this length that has pointers. With it a
// magazine fills 4 KiB, and its slots lie on cache lines of their own.
const heapHeader = 8

// Slot is the place of one block. It never moves and belongs to one magazine for good.
//
// word and note are shared. address and flags are written by whoever has the block: the owner while the slot is
// home, the winner of the free until it has handed the slot over. aside is the lane's, or the list's; next is the lane's in a
// leased magazine. The rest is the owner's.
type Slot struct {
	word     atomic.Uint64
	address  cudadrv.Ptr
	magazine *Magazine
	next     *Slot                // in a list of a lane's
	note     atomic.Pointer[note] // nil for most
	// aside is, in a leased magazine, the word with which the slot was handed out last. In others it is what the list of
	// freed slots needs to know: see entry.
	aside atomic.Uint64

	Block int32 // the heap's; for slots that have a block of their own
	Units uint32
	index uint8
	flags uint8  // of the free that brought it home
	place uint16 // leased magazines: where its lane looks its length up
	_     uint32
}

// Magazine is up to 62 slots and the word that says which of them are free.
//
// mask and lane are shared; units, loose, leased and cache never change once a caller can see the
// magazine. local is the lane's, or the owner's while no lane has the magazine. The rest is the owner's,
// who changes Class, whole and, where a lane has the magazine, the list only on behalf of that lane.
type Magazine struct {
	mask      atomic.Uint64
	contended atomic.Uint32 // takes that lost a race
	units     uint32        // 0 if the blocks of the slots differ
	loose     bool
	leased    bool   // for lanes, for good
	number    uint32 // in the owner's list: its slots are named by it
	cache     *Cache

	next    *Magazine // in the list of parked magazines
	Span    int32     // the heap's block that all slots were carved from; None if each has its own
	Bucket  int32     // where it is, or was last, to be found
	Shard   int8
	Open    bool
	inReady bool // was parked, has free slots, waits to be installed
	_       [cacheLine - heapHeader - 52]byte

	homes  uint64 // slots that are home
	attach uint64 // slots in use that shall stay when freed

	// Exact magazines: in the order in which they were last given a slot. Small ones: in the ready list.
	// Leased ones: in a list of the lane's, or of those that no lane has.
	Older, Newer *Magazine
	Class        int32 // small classes: the class; else -1
	serving      bool  // leased ones: its lane serves the class from it

	// Leased magazines. They lie away from the mask, which other goroutines write.
	lane  atomic.Pointer[Lane] // who has it
	local uint64               // slots known to be free
	whole uint64               // slots that have a block

	slots [SlotCount]Slot
}

// Kept reports whether a slot in use stays in the magazine when freed.
func (m *Magazine) Kept(s *Slot) bool { return m.attach>>s.index&1 != 0 }

// Address is where the slot's block starts.
func (s *Slot) Address() cudadrv.Ptr { return s.address }

// SetAddress places a block in a slot that is home.
func (s *Slot) SetAddress(p cudadrv.Ptr) { s.address = p }

// Magazine is the slot's.
func (s *Slot) Magazine() *Magazine { return s.magazine }

// Home is who is told of the cache's frees: whose memory the slot's block is.
func (s *Slot) Home() Waker { return s.magazine.cache.waker }

// Word is what a handle of the slot's present owner carries.
func (s *Slot) Word() uint64 { return s.word.Load() &^ flagMask }

// Live reports whether a handle with that word still is live.
func (s *Slot) Live(handle uint64) bool { return matches(s.word.Load(), handle) }

// Frees is how often the slot was freed.
func (s *Slot) Frees() uint64 { return s.word.Load() >> generationShift }

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
func (m *Magazine) Loose() bool { return m.loose }

// Leased reports whether the magazine is one that only lanes use.
func (m *Magazine) Leased() bool { return m.leased }

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
	for i := range m.slots {
		n += m.slots[i].Frees()
	}
	return n
}

// take gives the lowest free slot to the caller, or nil if there is none.
func (m *Magazine) take() *Slot {
	for {
		w := m.mask.Load()
		next, i, ok := nextTake(w)
		if !ok {
			return nil
		}
		if m.mask.CompareAndSwap(w, next) {
			return &m.slots[i]
		}
		m.contended.Add(1)
	}
}
