package magazine

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/sizeclass"
)

// Hand sums the live blocks of one stream that belong to another since they were moved: see Slot.Move. Any
// number of goroutines may use it.
type Hand struct {
	To    uint32 // number of the stream that has them; never changes
	bytes atomic.Int64
}

// Bytes are those of the blocks.
func (h *Hand) Bytes() int64 { return h.bytes.Load() }

// add adds blocks of so many units, or takes them away.
func (h *Hand) add(units int64) {
	if h != nil {
		h.bytes.Add(units << sizeclass.UnitShift)
	}
}

// HandedTo is the number of the stream that has the slot's block since a move; 0: the stream of its memory,
// also when the other one has ended. Any goroutine may ask.
func (s *Slot) HandedTo() uint32 {
	if s.word.Load()&moveMask == 0 {
		return 0
	}
	if held := s.note.Load().holder.Load(); held != nil && !held.line.Finished() {
		if h := held.hand.Load(); h != nil {
			return h.To
		}
	}
	return 0
}

// leaveHand takes the block of a handle, which the caller has freed, from the hand that it is in.
func (s *Slot) leaveHand(word uint64, units uint32) {
	if word&moveMask == 0 {
		return
	}
	if held := s.note.Load().holder.Load(); held != nil {
		held.hand.Load().add(-int64(units))
	}
}
