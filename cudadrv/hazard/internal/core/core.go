package core

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// Access is a range that work reads, or writes, or both.
type Access = cudadrv.Access

// Core is the state of one device. Make one with New.
type Core struct {
	order   order
	memory  memory
	live    map[cudadrv.Ptr]*buffer
	past    past
	graphs  graphs
	holds   map[cudadrv.Stream]bool
	asleep  map[cudadrv.Stream][]owned // memory that was unmapped since SleepBegan
	reports reports
}

// New knows a device with a default stream and without memory.
func New() *Core {
	return &Core{
		memory: newMemory(),
		order:  newOrder(), live: map[cudadrv.Ptr]*buffer{}, graphs: newGraphs(), holds: map[cudadrv.Stream]bool{},
		asleep: map[cudadrv.Stream][]owned{},
	}
}

// StreamCreated begins a stream. A blocking one is ordered with the default stream.
func (c *Core) StreamCreated(s cudadrv.Stream, blocking bool) { c.order.begin(s, blocking) }

// StreamKnown reports whether a stream was begun and not ended.
func (c *Core) StreamKnown(s cudadrv.Stream) bool {
	_, ok := c.order.streams[s]
	return ok
}

// StreamDestroyed ends the name of a stream, and its sleep: its memory is mapped for it no more.
func (c *Core) StreamDestroyed(s cudadrv.Stream) {
	c.graphs.leave(s)
	c.order.end(s)
	delete(c.reports.numbers, s)
	delete(c.asleep, s)
}

// EventRecorded makes the event stand for the stream's present point.
func (c *Core) EventRecorded(e cudadrv.Event, s cudadrv.Stream) {
	ev := c.order.event(e)
	if ev.in = c.graphs.captured[s]; ev.in != nil {
		ev.point = ev.in.order.reach(s).point.copied()
		return
	}
	ev.point = c.order.reach(s).point.copied()
}

// EventDestroyed forgets a name of an event.
func (c *Core) EventDestroyed(e cudadrv.Event) { delete(c.order.events, e) }

// EventOpened makes another name of an event.
func (c *Core) EventOpened(name, of cudadrv.Event) { c.order.events[name] = c.order.event(of) }

// StreamWaits orders the stream's later work after the event's point. If the event is in a graph, the stream is captured from
// now on.
func (c *Core) StreamWaits(s cudadrv.Stream, e cudadrv.Event) {
	ev := c.order.event(e)
	switch {
	case ev.in != nil:
		c.graphs.captured[s] = ev.in
		ev.in.order.reach(s).point.join(ev.point)
	case c.graphs.captured[s] == nil:
		c.order.reach(s).point.join(ev.point)
	}
}

// EventPoint returns an event's point; the beginning for an event in a graph.
func (c *Core) EventPoint(e cudadrv.Event) Clock {
	if ev := c.order.event(e); ev.in == nil {
		return ev.point.copied()
	}
	return nil
}

// StreamPoint returns the end of a stream's work.
func (c *Core) StreamPoint(s cudadrv.Stream) Clock { return c.order.reach(s).point.copied() }

// DevicePoint returns the end of all work.
func (c *Core) DevicePoint() Clock { return c.order.all() }

// Over records that a host knows that everything before the point is over.
func (c *Core) Over(by Host, point Clock) { c.order.over(by, point) }

// Mapped adds memory, of the allocator's or the program's own.
func (c *Core) Mapped(p cudadrv.Ptr, bytes int64, by Host) {
	c.memory.put(p, p+cudadrv.Ptr(bytes), by == Allocator)
}

// Unmapped takes memory away. All work on it must be known to be over, and no buffer may have it.
func (c *Core) Unmapped(p cudadrv.Ptr, bytes int64, by Host, from site.Stack) {
	now := &Use{What: "unmapped", OnHost: true, Place: from}
	var told bool
	for _, piece := range c.memory.cut(p, p+cudadrv.Ptr(bytes)) {
		at := piece.cell
		if at == nil {
			continue
		}
		c.memory.cells.Delete(piece.start)
		c.past.add(buried{piece.start, piece.end, at.buffer, now})
		c.slept(piece.start, piece.end, at.buffer)
		if told {
			continue
		}
		r := Report{Kind: EarlyUnmap, Start: piece.start, Bytes: int64(piece.end - piece.start), Now: *now, Buffer: at.buffer.told()}
		if a, found := at.unordered(c.order.hosts[by]); found {
			r.Before = *a.use
			if a.buffer != at.buffer {
				r.Former = a.buffer.told()
			}
			c.reports.add(r)
			told = true
		} else if at.buffer != nil && !at.buffer.freed && !c.sleeps(at.buffer.Stream) {
			r.Hint = "the buffer was not freed"
			c.reports.add(r)
			told = true
		}
	}
}

// Work records work submitted to a stream, and checks it against earlier work. Work on a captured stream is part of the graph,
// and checked at each launch.
func (c *Core) Work(s cudadrv.Stream, what string, from site.Stack, accesses []Access) {
	if k := c.graphs.captured[s]; k != nil {
		c.capture(k, s, step{what: what, from: from, accesses: accesses})
		return
	}
	c.work(s, what, from, accesses, func(b *buffer) bool { return !b.freed })
}

// work records work that runs; may returns the buffers whose memory it may touch.
func (c *Core) work(s cudadrv.Stream, what string, from site.Stack, accesses []Access, may func(*buffer) bool) {
	st, count := c.order.submit(s)
	if len(accesses) == 0 {
		return
	}
	reads := &Use{What: what + " reads", Stream: s, Place: from}
	writes := &Use{What: what + " writes", Stream: s, Place: from}
	for _, a := range accesses {
		use := reads
		if a.Write {
			use = writes
		}
		end, ok := endOf(a)
		if !ok {
			continue // the driver's to refuse
		}
		for _, piece := range c.memory.cut(a.Ptr, end) {
			c.touch(piece, st.point, access{st.place, count, use, nil}, a.Write, func(b *buffer) bool { return c.sleeps(s) || b != nil && may(b) })
		}
		c.memory.merge(a.Ptr, end)
	}
}

// endOf returns the end of an access. ok is false for one of nothing, or of no range of addresses.
func endOf(a Access) (end cudadrv.Ptr, ok bool) {
	end = a.Ptr + cudadrv.Ptr(a.Bytes)
	return end, a.Bytes > 0 && end > a.Ptr
}

// touch checks one access of one piece, and notes it.
func (c *Core) touch(p piece, point Clock, a access, write bool, may func(*buffer) bool) {
	r := Report{Start: p.start, Bytes: int64(p.end - p.start), Now: *a.use}
	at := p.cell
	if at == nil {
		r.Kind = Unmapped
		if b := c.past.last(p.start, p.end); b != nil {
			r.Before, r.Buffer = *b.use, b.buffer.told()
		}
		c.reports.add(r)
		return
	}
	r.Buffer = at.buffer.told()
	if at.managed && !may(at.buffer) {
		r.Kind = UseAfterFree
		if at.buffer == nil {
			r.Kind = NeverAllocated
		}
		c.reports.add(r)
	}
	conflict, found := at.conflict(point, write)
	if found {
		r.Kind, r.Before = Race, *conflict.use
		if conflict.buffer != at.buffer {
			r.Former = conflict.buffer.told()
		}
		c.reports.add(r)
	}
	a.buffer = at.buffer
	if write {
		at.wrote(a)
	} else {
		at.read(a, point)
	}
}

// conflict returns an access of the cell of which, and of a new one, one writes, and that does not come before the point.
func (c *cell) conflict(point Clock, write bool) (found access, ok bool) {
	if write {
		return c.unordered(point)
	}
	w := c.write
	return w, w.use != nil && !point.reaches(w.place, w.count)
}

// Reports returns the first hazards of each kind and pair of places; count is how many hazards there were in all.
func (c *Core) Reports() (kept []Report, count uint64) {
	return slices.Clone(c.reports.kept), c.reports.count
}

// ReportsFrom returns the Reports without the first ones.
func (c *Core) ReportsFrom(first int) []Report { return slices.Clone(c.reports.kept[first:]) }

// KeptCount returns the number of Reports.
func (c *Core) KeptCount() int { return len(c.reports.kept) }

// NumberStream records the allocator's number of a stream, for reports.
func (c *Core) NumberStream(s cudadrv.Stream, id uint32) { c.reports.number(s, id) }

// Fresh returns a new core, as New, with the reports of this one.
func (c *Core) Fresh() *Core {
	next := New()
	next.reports = c.reports
	next.reports.numbers = nil
	return next
}
