package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// Allocated begins a buffer, which the caller no longer keeps. Its stream's later work must follow all accesses to the memory
// under its former allocations, or the allocator must know that they are over.
func (c *Core) Allocated(b Buffer) {
	c.reports.number(b.Stream, b.StreamID)
	born := &buffer{Buffer: b}
	born.Freed = nil
	c.live[b.Ptr] = born
	now := Use{What: "allocated", Stream: b.Stream, Place: b.Allocated}
	point := c.order.reach(b.Stream).point
	end := b.Ptr + cudadrv.Ptr(b.Bytes)
	told := false
	for _, p := range c.memory.cut(b.Ptr, end) {
		r := Report{Start: p.start, Bytes: int64(p.end - p.start), Now: now, Buffer: &b}
		at := p.cell
		if at == nil {
			r.Kind = Unmapped
			if buried := c.past.last(p.start, p.end); buried != nil {
				r.Before = *buried.use
			}
			c.reports.add(r)
			continue
		}
		if at.buffer != nil && !at.buffer.freed {
			r.Kind, r.Former = Overlap, at.buffer.told()
			r.Before = Use{What: "allocated", Stream: at.buffer.Stream, Place: at.buffer.Allocated}
			c.reports.add(r)
		}
		at.forget(c.order.hosts[Allocator])
		if c.holds[b.Stream] && at.buffer != nil && at.buffer.Stream == b.Stream { // graphs put their launches in order
			at.buffer, at.managed = born, true
			continue
		}
		if a, found := at.unordered(point); found {
			if !told {
				told = true
				r.Kind, r.Before, r.Former = EarlyReuse, *a.use, a.buffer.told()
				r.Hint = a.buffer.hint(a.use)
				c.reports.add(r)
			}
			at.write, at.reads = access{}, nil // reported
		}
		at.buffer, at.managed = born, true
	}
	c.memory.merge(b.Ptr, end)
}

// hint advises the owner of a former buffer.
func (b *buffer) hint(u *Use) string {
	if b == nil || b.loose != u {
		return ""
	}
	return "the buffer was freed without an order between that use and its own stream, and without an announcement of it"
}

// Freed ends the buffer that begins at p. One that is not known is left alone: the allocator refuses such frees.
func (c *Core) Freed(p cudadrv.Ptr, from site.Stack) {
	b := c.live[p]
	if b == nil {
		return
	}
	delete(c.live, p)
	b.freed, b.Freed = true, from
	point := c.order.hosts[Allocator].copied()
	if st, ok := c.order.streams[b.Stream]; ok {
		point.join(st.point)
	}
	c.memory.cells.Ascend(b.Ptr, func(start cudadrv.Ptr, at *cell) bool {
		if start >= b.Ptr+cudadrv.Ptr(b.Bytes) {
			return false
		}
		if a, found := at.unordered(point); found && at.buffer == b && a.buffer == b {
			b.loose = a.use
		}
		return b.loose == nil
	})
}

// Ended ends all buffers: the allocator was closed, and their memory is about to go.
func (c *Core) Ended(from site.Stack) {
	for p := range c.live {
		c.Freed(p, from)
	}
}

// LiveCount returns the number of live buffers.
func (c *Core) LiveCount() int { return len(c.live) }

// Stale notes the use of a buffer that was freed, where its address says nothing: it may be another buffer's by now.
func (c *Core) Stale(b Buffer, now Use) {
	c.reports.add(Report{Kind: UseAfterFree, Start: b.Ptr, Bytes: b.Bytes, Now: now, Buffer: &b})
}
