package streams

import (
	"time"

	"github.com/go-vram/vram/actors"
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

// Largest are at most ten live buffers with the most bytes, the largest first. It takes each stream's
// turn, unless the last look was made since the last tick.
func (p *Peers) Largest() []LiveBuffer { return p.largest(nil, true) }

// fill puts the largest live buffers into a list that is nil.
func (p *Peers) fill(at *[]LiveBuffer, h actors.Host, wait bool) {
	if *at == nil {
		*at = p.largest(h, wait)
	}
}

// largest are at most ten live buffers with the most bytes, the largest first, as of at most a tick
// ago. Buffers that were freed since are left out. Without wait it waits for no turn: streams in whose
// turn another goroutine is are left out, and the list is nil while another goroutine makes one that
// waits for turns. It must not be called inside a turn.
func (p *Peers) largest(h actors.Host, wait bool) []pool.LiveBuffer {
	l := p.found.Load()
	for l == nil {
		l = &listing{done: make(chan struct{}), waits: wait}
		if p.found.CompareAndSwap(nil, l) {
			for _, s := range p.list() {
				s.turn.largestBlocks(&l.found, wait)
			}
			close(l.done)
			break
		}
		l = p.found.Load()
	}
	if !wait && l.waits && !l.over() {
		return nil
	}
	actors.Wait(h, l.done)
	return l.buffers()
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

// listed is the list of the last look, if that has ended and was not forgotten; else nil.
func (p *Peers) listed() *listing {
	if l := p.found.Load(); l != nil && l.over() {
		return l
	}
	return nil
}

// expire forgets the list of the last look.
func (p *Peers) expire() {
	if l := p.found.Load(); l != nil && l.over() {
		p.found.CompareAndSwap(l, nil)
	}
}

// buffers are those found that still live.
func (l *listing) buffers() []pool.LiveBuffer {
	all := make([]pool.LiveBuffer, 0, inventory.MaxListed)
	for i := range l.found.Blocks[:l.found.Count] {
		if x := &l.found.Blocks[i]; x.Slot.Live(x.Word) && len(all) < inventory.MaxListed {
			all = append(all, describe(x.Stream, x.Ptr, int64(x.Units)<<sizeclass.UnitShift, x.Slot))
		}
	}
	return all
}

// describe is a live buffer with the facts that its slot knows. Its stream is the one that has it.
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

// name names the buffers of a claim that is being answered, if it has a tag or has waited.
func (c *claim) name(buffers ...Buffer) {
	if tag := c.want.tag(); tag != "" || c.age != 0 {
		nameBuffers(buffers, tag)
	}
}

// nameAll names the buffers of a batch, if it has a tag.
func nameAll(buffers []Buffer, tag string) {
	if tag != "" {
		nameBuffers(buffers, tag)
	}
}

func nameBuffers(buffers []Buffer, tag string) {
	now := time.Now()
	for _, b := range buffers {
		b.slot.SetTag(b.word, b.bytes, tag, now)
	}
}
