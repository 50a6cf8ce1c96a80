package streams

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// listing is one look for the largest live buffers of a device. It is made once between two ticks, so
// that a storm of refusals looks ten times a second, and each look is bounded: see core.Largest.
type listing struct {
	done  chan struct{}
	waits bool         // it waits for turns
	found core.Largest // written before done is closed
}

// over reports whether the look has ended.
func (l *listing) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// buffers returns the found buffers that are still live.
func (l *listing) buffers() []pool.LiveBuffer {
	all := make([]pool.LiveBuffer, 0, inventory.MaxListed)
	for i := range l.found.Blocks[:l.found.Count] {
		if x := &l.found.Blocks[i]; x.Slot.Live(x.Word) && len(all) < inventory.MaxListed {
			all = append(all, describe(x.Stream, x.Ptr, int64(x.Units)<<sizeclass.UnitShift, x.Slot))
		}
	}
	return all
}

// describe describes a live buffer by the facts in its slot. Stream is the stream that has the buffer.
func describe(stream uint32, p cudadrv.Ptr, bytes int64, s *magazine.Slot) LiveBuffer {
	f := s.Facts()
	b := LiveBuffer{
		Stream: stream, Ptr: p, Bytes: bytes, Tag: f.Tag, Tenant: f.Payer, Allocated: f.Allocated, RequestedBytes: f.RequestedBytes,
	}
	if to := s.HandedTo(); to != 0 {
		b.Stream = to
	}
	if !f.At.IsZero() {
		b.Age = max(1, time.Since(f.At))
	}
	return b
}
