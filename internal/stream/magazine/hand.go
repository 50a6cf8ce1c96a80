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
