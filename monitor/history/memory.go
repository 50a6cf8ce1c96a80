package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"slices"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/monitor/snapshot"
	"github.com/go-vram/vram/pool"
)

// exactBytes is the resolution of a memory map in which no ranges are joined that differ.
const exactBytes = 512

// WriteMemory writes the current memory of the device, and the recorded events that led to it, as a snapshot for PyTorch's
// viewer: see Memory and package snapshot. Errors: as Memory, and the writer's.
func (r *Recorder) WriteMemory(ctx context.Context, w io.Writer) error {
	s, _, err := r.Memory(ctx)
	if err != nil {
		return err
	}
	return snapshot.Write(w, s)
}

// Memory returns the current memory of the device, by segments and blocks, and the recorded events that led to it. Blocks have
// call stacks if their allocation is known: with Options.Stacks, from Start on. Growth and trims appear as the memory that
// they map and unmap, as PyTorch's segment_map and segment_unmap; plain segments have these, too, and are shown as expandable
// ones. leftOut counts the events that do not fit to the memory: events from before or after the memory was read, and events
// of addresses without memory. It waits for the requests that the pool and each stream are serving. Errors: as
// Device.MemoryMap and Device.LiveBuffers, so a closed device has none; vram.ErrNotOpen.
func (r *Recorder) Memory(ctx context.Context) (s *snapshot.Snapshot, leftOut int, err error) {
	if !r.opened() {
		return nil, 0, vram.ErrNotOpen
	}
	m, err := r.device.MemoryMap(ctx, exactBytes)
	if err != nil {
		return nil, 0, err
	}
	live, err := r.device.LiveBuffers(ctx)
	if err != nil {
		return nil, 0, err
	}
	recording := r.Snapshot() //nolint:contextcheck // it waits as short as the readings above
	d := drawing{device: r.device.Ordinal(), stacks: map[string]snapshot.Stack{}}
	if r.options.Stacks {
		d.allocated = recording.Live
		slices.SortFunc(d.allocated, func(a, b Event) int { return cmp.Compare(a.Ptr, b.Ptr) })
	}
	buffers := slices.Clone(live.Buffers)
	slices.SortFunc(buffers, func(a, b pool.LiveBuffer) int { return cmp.Compare(a.Ptr, b.Ptr) })
	s = &snapshot.Snapshot{Traces: make([]snapshot.Trace, d.device+1)}
	for i := range m.Segments {
		s.Segments = append(s.Segments, d.segment(&m.Segments[i], buffers))
	}
	s.Traces[d.device] = d.trace(recording.Events)
	leftOut, err = snapshot.Fit(s)
	return s, leftOut, err
}

// drawing builds a snapshot.
type drawing struct {
	device    int
	allocated []Event                   // the live buffers with their stacks, by address
	stacks    map[string]snapshot.Stack // by the bytes of their counters
}

// segment has the blocks of a segment: a block for each live buffer, and one for each other range.
func (d *drawing) segment(at *vram.MemorySegment, buffers []pool.LiveBuffer) snapshot.Segment {
	s := snapshot.Segment{Device: d.device, Address: uint64(at.Address), Bytes: at.Bytes, Expandable: true}
	for _, r := range at.Ranges {
		from, to := uint64(at.Address)+uint64(r.OffsetBytes), uint64(at.Address)+uint64(r.OffsetBytes+r.Bytes) //nolint:gosec // within a segment
		switch r.State {                                                                                       //nolint:exhaustive // the others are free to the viewer
		case vram.MemoryLive:
			s.Blocks = append(s.Blocks, d.live(from, to, buffers)...)
		case vram.MemoryPending:
			s.Blocks = append(s.Blocks, snapshot.Block{Address: from, Bytes: r.Bytes, State: snapshot.Pending})
		default:
			s.Blocks = append(s.Blocks, snapshot.Block{Address: from, Bytes: r.Bytes, State: snapshot.Free})
		}
	}
	return s
}

// live has the buffers of a live range. Parts of it that none of them has were allocated or freed between the two readings.
func (d *drawing) live(from, to uint64, buffers []pool.LiveBuffer) (all []snapshot.Block) {
	first, _ := slices.BinarySearchFunc(buffers, from, func(b pool.LiveBuffer, at uint64) int { return cmp.Compare(uint64(b.Ptr), at) })
	for _, b := range buffers[first:] {
		at := uint64(b.Ptr)
		if at >= to {
			break
		}
		if at < from {
			continue // of the same address as the one before: they are of different moments
		}
		if at > from {
			all = append(all, snapshot.Block{Address: from, Bytes: int64(at - from), State: snapshot.Free}) //nolint:gosec // within a range
		}
		bytes := min(b.Bytes, int64(to-at)) //nolint:gosec // within a range
		requested := bytes
		if b.RequestedBytes > 0 {
			requested = min(bytes, b.RequestedBytes)
		}
		all = append(all, snapshot.Block{Address: at, Bytes: bytes, RequestedBytes: requested, State: snapshot.Live, Stack: d.stackOf(&b)})
		from = at + uint64(bytes) //nolint:gosec // a length
	}
	if from < to {
		all = append(all, snapshot.Block{Address: from, Bytes: int64(to - from), State: snapshot.Free}) //nolint:gosec // within a range
	}
	return all
}

func (d *drawing) stackOf(b *pool.LiveBuffer) snapshot.Stack {
	if b.Allocated.Known() {
		return d.stack(b.Allocated)
	}
	i, found := slices.BinarySearchFunc(d.allocated, b.Ptr, func(e Event, p vram.Ptr) int { return cmp.Compare(e.Ptr, p) })
	if !found {
		return nil
	}
	return d.stack(d.allocated[i].Stack)
}

// stack returns a call stack for the viewer: equal ones are one.
func (d *drawing) stack(of site.Stack) snapshot.Stack {
	if !of.Known() {
		return nil
	}
	var key []byte
	for _, counter := range of {
		key = binary.NativeEndian.AppendUint64(key, uint64(counter))
	}
	s, known := d.stacks[string(key)]
	if !known {
		for _, f := range of.Frames() {
			s = append(s, snapshot.Frame{File: f.File, Line: f.Line, Function: f.Function})
		}
		d.stacks[string(key)] = s
	}
	return s
}

// trace has the events that the viewer knows. Mapped memory belongs to no stream, as the segments do. A free is completed at
// once: uses on other streams are not recorded.
func (d *drawing) trace(events []Event) (all snapshot.Trace) {
	for i := range events {
		e := &events[i]
		x := snapshot.Event{Address: uint64(e.Ptr), Bytes: e.Bytes, Stream: uint64(e.Stream), Micros: e.Time.UnixMicro(), Stack: d.stack(e.Stack)}
		switch e.Kind {
		case Allocated:
			x.Action = snapshot.Alloc
			all = append(all, x)
		case Freed:
			x.Action = snapshot.FreeRequested
			done := x
			done.Action = snapshot.FreeCompleted
			all = append(all, x, done)
		case OutOfMemory:
			x.Action = snapshot.OutOfMemory
			all = append(all, x)
		case Mapped:
			x.Action = snapshot.Map
			all = append(all, x)
		case Unmapped:
			x.Action = snapshot.Unmap
			all = append(all, x)
		case Growth, Trim: // told with Mapped and Unmapped, too
		}
	}
	return all
}
