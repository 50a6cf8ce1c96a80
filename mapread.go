package vram

import (
	"context"
	"errors"

	"github.com/go-vram/vram/internal/memorymap"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/pool/core/memory"
)

// cellsOfMap is how many ranges, at least, a map of automatic resolution may have in terms of its length. Not fewer: a picture has some
// thousand points in a line. Not more: each is a few hundred bytes.
const cellsOfMap = 4096

// minResolutionBytes is the shortest block.
const minResolutionBytes = 512

// MemoryMap reads where the memory lies: the segments that are held from the driver, and in each the ranges by state. Neighbours of the
// same state, stream and tag are one range, and so are neighbours that are shorter than resolutionBytes: of two states or more they are
// a mixed range with the sums. So a map has about twice as many ranges as resolutionBytes fit into it at most. With 0 the resolution is
// a 4096th of the memory, and 512 bytes at least.
//
// It takes the turn of the pool and then that of each stream once, as Stats does, and stops nothing else. The report of a stream is of
// one moment; the moments of the pool and of the streams are close to each other. The pool decides which stream has a page: ranges never overlap,
// and together they are all memory that was mapped when the pool was read. Memory that changed hands between two moments is
// MemoryLent. While the device rests the sums are those of Stats.
//
// Before the first use of the device the map is empty. Errors: *ConfigError for a negative resolution, the context's, ErrClosed, and
// the cause of the pool's end.
func (d *Device) MemoryMap(ctx context.Context, resolutionBytes int64) (MemoryMap, error) {
	if err := d.callable(ctx); err != nil {
		return MemoryMap{}, err
	}
	if resolutionBytes < 0 {
		return MemoryMap{}, badArgument("Device.MemoryMap", "resolutionBytes", resolutionBytes, "0 or more")
	}
	e := d.engine.Load()
	switch {
	case d.closed.Load():
		return MemoryMap{}, deviceClosed()
	case e == nil:
		return MemoryMap{LimitBytes: d.limit.Load(), ResolutionBytes: max(resolutionBytes, minResolutionBytes)}, ctx.Err()
	}
	p, err := e.pool.Map(ctx)
	if errors.Is(err, pool.ErrClosed) {
		return MemoryMap{}, deviceClosed()
	}
	if err != nil {
		return MemoryMap{}, failed("memory map", err)
	}
	m := &mapMaker{pageBytes: e.pool.PageBytes(), lent: map[poolcore.Client][]memorymap.Range{}}
	m.out = MemoryMap{
		PageBytes: m.pageBytes, ResolutionBytes: resolutionBytes, ReservedBytes: p.ReservedBytes, LimitBytes: p.LimitBytes,
	}
	if resolutionBytes == 0 {
		m.out.ResolutionBytes = max(minResolutionBytes, p.ReservedBytes/cellsOfMap)
	}
	for _, s := range d.streams.Load().open {
		ranges, _ := s.Map(ctx, m.out.ResolutionBytes) // none of one that has ended, or failed
		if err := ctx.Err(); err != nil {
			return MemoryMap{}, failed("memory map", err)
		}
		m.lent[poolcore.Client(s.ID())] = ranges
	}
	for i := range p.Runs {
		m.add(&p.Runs[i])
	}
	m.endSegment()
	m.out.UnmappedBytes = m.out.ReservedBytes - m.heldBytes
	return m.out, nil
}

// mapMaker puts together the reports of the pool and the streams.
type mapMaker struct {
	pageBytes int64
	lent      map[poolcore.Client][]memorymap.Range // of each stream, as far as they are not added yet
	out       MemoryMap
	heldBytes int64 // in segments

	// The segment to which the runs are added.
	end     uint32 // page behind the last run
	segment MemorySegment
	start   int64 // of the segment, as ranges count
	builder memorymap.Builder
}

// add adds the next run.
func (m *mapMaker) add(r *poolcore.MappedRun) {
	start, bytes := int64(r.First)*m.pageBytes, int64(r.Pages)*m.pageBytes
	if m.segment.Bytes == 0 || r.First != m.end {
		m.endSegment()
		m.segment, m.start = MemorySegment{Address: r.At}, start
		m.builder.ResolutionBytes = m.out.ResolutionBytes
	}
	m.end = r.End()
	m.segment.Bytes += bytes
	m.segment.HandleCount += r.Handles
	if !r.Asleep {
		m.heldBytes += bytes
	}
	piece := memorymap.Range{Start: start, Bytes: bytes, Stream: uint32(r.Client), Asleep: r.Asleep}
	switch {
	case r.SetAside:
		piece.State = memorymap.SetAside
	case r.State == memory.Free:
		piece.State = memorymap.Free
	case r.State == memory.Lent:
		piece.State = memorymap.Lent
		m.lent[r.Client] = memorymap.Within(piece, m.lent[r.Client], m.builder.Add)
		return
	default:
		piece.State = memorymap.Busy
	}
	m.builder.Add(piece)
}

// endSegment puts the segment that is being added to into the map.
func (m *mapMaker) endSegment() {
	if m.segment.Bytes == 0 {
		return
	}
	var total memorymap.Sums
	for _, r := range m.builder.List() {
		r.AddTo(&total)
		out := MemoryRange{
			OffsetBytes: r.Start - m.start, Bytes: r.Bytes, State: MemoryState(r.State), Asleep: r.Asleep, Stream: r.Stream, Tag: r.Tag,
			BufferCount: r.Buffers,
		}
		if r.State == memorymap.Mixed {
			out.Mixed = new(MemoryBytes)
			out.Mixed.add(r.Sums)
			out.Asleep = r.Sums.AsleepBytes == r.Bytes
		}
		m.segment.Ranges = append(m.segment.Ranges, out)
	}
	m.out.Total.add(&total)
	m.out.Segments = append(m.out.Segments, m.segment)
	m.segment = MemorySegment{}
}
