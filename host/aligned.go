package host

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// Aligned is a source of pageable memory: the Go heap, which does not move and needs no Close. A
// freed block's memory is the garbage collector's once no slice of it is left.
type Aligned struct {
	owner  *Owner
	counts counters
	closed atomic.Bool
}

// NewAligned makes a source of pageable memory. It takes nothing.
func NewAligned() *Aligned {
	a := &Aligned{}
	a.owner = NewOwner(a)
	return a
}

// Alloc makes a block of the Go heap: see Allocator.Alloc. A size that the machine does not have
// ends the process, as any such allocation in Go: Limited bounds it. Errors: *SizeError,
// *AlignError, ErrClosed.
func (a *Aligned) Alloc(bytes, align int64) (Block, error) { return a.AllocZeroed(bytes, align) }

// AllocZeroed is Alloc: fresh memory of the Go heap is zero.
func (a *Aligned) AllocZeroed(bytes, align int64) (Block, error) {
	if a == nil {
		return Block{}, notOpen()
	}
	if err := a.counts.admit(bytes, align, Pageable, &a.closed); err != nil || bytes == 0 {
		return Block{}, err
	}
	if a.owner == nil {
		return Block{}, notOpen()
	}
	memory := make([]byte, bytes+max(align, 1)-1)
	base := unsafe.Pointer(unsafe.SliceData(memory))
	a.counts.alloc(bytes)
	return Block{owner: a.owner, bytes: bytes, slot: &slot{
		where: waitless{}, data: base, offset: lead(uint64(uintptr(base)), align),
	}}, nil
}

// Free drops the memory. It does not wait.
func (a *Aligned) Free(b Block) error {
	if a == nil {
		return notOpen()
	}
	b, err := b.reown(a.owner, a.owner)
	if b.slot == nil { // also with an error
		return err
	}
	if err := b.slot.end(b.word); err != nil {
		return err
	}
	a.counts.free(b.bytes)
	return nil
}

// Owner returns the allocator's identity.
func (a *Aligned) Owner() *Owner {
	if a == nil {
		return nil
	}
	return a.owner
}

// Kind is Pageable.
func (a *Aligned) Kind() Kind { return Pageable }

// Stats counts blocks and requested bytes.
func (a *Aligned) Stats() Stats {
	if a == nil {
		return Stats{}
	}
	return a.counts.stats()
}

// Close refuses further requests. It does not wait. Error: *LeakError; the blocks stay valid.
func (a *Aligned) Close(ctx context.Context) error {
	if a == nil {
		return notOpen()
	}
	if ctx == nil {
		return ErrNilContext
	}
	a.closed.Store(true)
	return leak(Pageable, a.Stats())
}

// waitless is the place of memory whose Free, or whose copies, wait for its uses.
type waitless struct{}

func (waitless) usable(cudadrv.Stream) (keep bool, err error) { return false, nil }

// counters has the counters of a source, or of Track.
type counters struct {
	liveBlocks, liveBytes atomic.Int64
	peakBlocks, peakBytes atomic.Int64
	allocs, frees         atomic.Uint64
	refusals              atomic.Uint64
}

// admit checks a request of a source.
func (c *counters) admit(bytes, align int64, k Kind, isClosed *atomic.Bool) error {
	err := checkRequest(bytes, align)
	if err == nil && isClosed.Load() {
		err = closed(k)
	}
	if err != nil {
		c.refusals.Add(1)
	}
	return err
}

func (c *counters) alloc(bytes int64) {
	shared.Raise(&c.peakBlocks, c.liveBlocks.Add(1))
	shared.Raise(&c.peakBytes, c.liveBytes.Add(bytes))
	c.allocs.Add(1)
}

func (c *counters) free(bytes int64) {
	c.liveBlocks.Add(-1)
	c.liveBytes.Add(-bytes)
	c.frees.Add(1)
}

func (c *counters) stats() Stats {
	return Stats{
		LiveBlocks: c.liveBlocks.Load(), LiveBytes: c.liveBytes.Load(),
		PeakBlocks: c.peakBlocks.Load(), PeakBytes: c.peakBytes.Load(),
		Allocs: c.allocs.Load(), Frees: c.frees.Load(), Refusals: c.refusals.Load(),
	}
}
