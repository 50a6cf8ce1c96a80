package magazine

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/sizeclass"
)

// Hand sums the live blocks of one stream that belong to another since they were moved: see Slot.Move. It is
// safe for concurrent use.
type Hand struct {
	To    uint32 // number of the stream that has them; immutable
	bytes atomic.Int64
}

// Bytes returns the bytes of the blocks.
func (h *Hand) Bytes() int64 { return h.bytes.Load() }

// add adds that many units of blocks, or subtracts them.
func (h *Hand) add(units int64) {
	if h != nil {
		h.bytes.Add(units << sizeclass.UnitShift)
	}
}

// HandedTo returns the number of the stream that has the slot's block since a move; 0: the stream of its
// memory, also if the other one has ended. It is safe for concurrent use.
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

// leaveHand subtracts the block of a handle that the caller has freed from its hand.
func (s *Slot) leaveHand(word uint64, units uint32) {
	if word&moveMask == 0 {
		return
	}
	if held := s.note.Load().holder.Load(); held != nil {
		held.hand.Load().add(-int64(units))
	}
}
