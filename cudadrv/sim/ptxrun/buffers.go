package ptxrun

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// owned is the life of a buffer, in numbers of events.
type owned struct {
	event        cudadrv.BufferEvent
	begin, ended uint64 // ended 0: it lives
	freed        cudadrv.BufferEvent

	contents contents // under the lock of the simulated driver
}

func (o *owned) contains(p cudadrv.Ptr) bool {
	return p >= o.event.Ptr && uint64(p-o.event.Ptr) < uint64(o.event.Bytes) //nolint:gosec // not negative
}

// livedAt reports whether the buffer lived at an event.
func (o *owned) livedAt(event uint64) bool {
	return o.begin <= event && (o.ended == 0 || o.ended > event)
}

// keptBuffers is how many freed buffers are remembered: buffers of launches that have not run are among the youngest.
const keptBuffers = 4096

// Buffers is the buffers of an allocator, past ones included: the Owners of their memory. It implements cudadrv.BufferObserver,
// through which it learns of them. Make it with NewBuffers.
type Buffers struct {
	any bool

	mu    sync.Mutex // guards the fields below
	event uint64
	all   []*owned // in the order of their begin
	freed int
}

var (
	_ Owners                 = (*Buffers)(nil)
	_ cudadrv.BufferObserver = (*Buffers)(nil)
)

// NewBuffers makes an empty list. A launch may touch any live buffer if anyBuffer is set, and otherwise only those whose
// addresses are among its parameters, so that a step over the end of one is found also where another one follows. It may always
// touch memory past the allocator.
func NewBuffers(anyBuffer bool) *Buffers { return &Buffers{any: anyBuffer} }

// BufferAllocated implements cudadrv.BufferObserver.
func (o *Buffers) BufferAllocated(e cudadrv.BufferEvent) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event++
	o.all = append(o.all, &owned{event: e, begin: o.event})
}

// BufferFreed implements cudadrv.BufferObserver. The last few thousand freed buffers are remembered.
func (o *Buffers) BufferFreed(e cudadrv.BufferEvent) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event++
	for _, b := range slices.Backward(o.all) {
		if b.ended == 0 && b.event.Ptr == e.Ptr {
			b.ended, b.freed = o.event, e
			o.freed++
			break
		}
	}
	if o.freed > 2*keptBuffers {
		o.forget()
	}
}

// forget drops the older half of the freed buffers.
func (o *Buffers) forget() {
	o.all = slices.DeleteFunc(o.all, func(b *owned) bool {
		if b.ended == 0 || o.freed <= keptBuffers {
			return false
		}
		o.freed--
		return true
	})
}

// Launched implements Owners: it notes which buffers a launch may touch: those that live now, and whose addresses are parameters; and
// of new arguments for a kernel of a graph, buffers that were freed, whose memory the graph keeps.
func (o *Buffers) Launched(l sim.KernelLaunch) Reach {
	if o == nil {
		return everything{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	event := o.event
	arguments := map[*owned]bool{}
	keep := func(p cudadrv.Ptr) *owned {
		b := o.endedAt(p, event)
		if b != nil {
			arguments[b] = true
		}
		return b
	}
	const pointerBytes = 8
	for n := 0; n+pointerBytes <= len(l.Params); n += pointerBytes {
		p := cudadrv.Ptr(binary.LittleEndian.Uint64(l.Params[n:]))
		if b := o.at(p, event); b != nil {
			arguments[b] = true
		} else if l.Replaces && l.Accesses == nil {
			keep(p)
		}
	}
	declared := map[*owned][]interp.Declared{}
	for _, a := range l.Accesses {
		b := o.at(a.Ptr, event)
		if b == nil && l.Replaces {
			b = keep(a.Ptr)
		}
		if b != nil {
			declared[b] = append(declared[b], interp.Declared{Start: uint64(a.Ptr), Bytes: uint64(a.Bytes), Write: a.Write}) //nolint:gosec // not negative
		}
	}
	return &reach{o, event, arguments, declared}
}

// again returns the reach of a further launch: it has the arguments of the first one, and buffers that live now.
func (r *reach) again() Reach {
	r.buffers.mu.Lock()
	defer r.buffers.mu.Unlock()
	now := *r
	now.now = r.buffers.event
	return &now
}

// everything is the reach of a launch in a program without a list of buffers.
type everything struct{}

// Part implements Reach.
func (everything) Part(_, start cudadrv.Ptr, bytes int64) (Part, error) {
	return Part{Start: start, Bytes: bytes}, nil
}

// Buffer implements Reach.
func (everything) Buffer(cudadrv.Ptr) (Buffer, bool) { return Buffer{}, false }

// reach is the buffers of a launch.
type reach struct {
	buffers   *Buffers
	now       uint64          // the last event before the launch, or before this launch of the graph
	arguments map[*owned]bool // they lived at the launch or its capture, or a graph keeps their memory
	declared  map[*owned][]interp.Declared
}

// Part implements Reach.
func (r *reach) Part(p, start cudadrv.Ptr, bytes int64) (Part, error) {
	o := r.buffers
	o.mu.Lock()
	defer o.mu.Unlock()
	b := r.argumentAt(p)
	part, err := Part{}, error(nil)
	if b != nil {
		part = Part{Start: b.event.Ptr, Bytes: b.event.Bytes}
	} else {
		part, b, err = o.find(p, start, bytes, r.now, r.arguments)
	}
	if b != nil {
		part.Written, part.Declared, part.Owner = b.contents.bits(b.event.Bytes), r.declared[b], b
	}
	return part, err
}

// argumentAt returns the argument with an address whose memory the launch has: also of a graph that runs thousands of frees after the
// buffer's own, which the list has forgotten.
func (r *reach) argumentAt(p cudadrv.Ptr) *owned {
	for b := range r.arguments {
		if b.contains(p) {
			return b
		}
	}
	return nil
}

// Buffer implements Reach.
func (r *reach) Buffer(p cudadrv.Ptr) (Buffer, bool) {
	o := r.buffers
	o.mu.Lock()
	defer o.mu.Unlock()
	b := r.argumentAt(p)
	if b == nil {
		b = o.at(p, r.now)
	}
	if b == nil {
		b = o.endedAt(p, r.now)
	}
	if b == nil {
		return Buffer{}, false
	}
	return b.buffer(), true
}

// at returns the buffer that had an address at an event, or nil.
func (o *Buffers) at(p cudadrv.Ptr, event uint64) *owned {
	for _, b := range slices.Backward(o.all) {
		if b.contains(p) && b.livedAt(event) {
			return b
		}
	}
	return nil
}

// endedAt returns the last buffer that had an address and was freed before an event, or nil.
func (o *Buffers) endedAt(p cudadrv.Ptr, event uint64) *owned {
	for _, b := range slices.Backward(o.all) {
		if b.contains(p) && b.ended != 0 && b.ended <= event {
			return b
		}
	}
	return nil
}

// find returns the part of mapped memory around an address that a launch may touch.
func (o *Buffers) find(p, start cudadrv.Ptr, bytes int64, event uint64, arguments map[*owned]bool) (Part, *owned, error) {
	b := o.at(p, event)
	switch {
	case b != nil && (o.any || arguments[b]):
		return Part{Start: b.event.Ptr, Bytes: b.event.Bytes}, b, nil
	case b != nil:
		return Part{}, nil, fmt.Errorf("%s belongs to a buffer that is no argument of the launch: %v%s", byteOf(p, b), b, o.before(p, arguments))
	}
	if b := o.endedAt(p, event); b != nil {
		return Part{}, nil, fmt.Errorf("%w: %v, freed at %v", interp.ErrNotLive, b, b.freed.Place)
	}
	managed := false
	for _, b := range slices.Backward(o.all) {
		managed = managed || b.event.Ptr >= start && uint64(b.event.Ptr-start) < uint64(bytes) //nolint:gosec // not negative
	}
	if !managed { // memory past the allocator
		return Part{Start: start, Bytes: bytes}, nil, nil
	}
	return Part{}, nil, fmt.Errorf("no buffer has the address%s", o.before(p, arguments))
}

// before names the argument that ends closest below an address.
func (o *Buffers) before(p cudadrv.Ptr, arguments map[*owned]bool) string {
	var nearest *owned
	for b := range arguments {
		if b.event.Ptr <= p && (nearest == nil || b.event.Ptr > nearest.event.Ptr) {
			nearest = b
		}
	}
	if nearest == nil {
		return ""
	}
	end := nearest.event.Ptr + cudadrv.Ptr(nearest.event.Bytes) //nolint:gosec // not negative
	return fmt.Sprintf("; it is %d bytes past the end of %v", p-end, nearest)
}

func byteOf(p cudadrv.Ptr, b *owned) string { return fmt.Sprintf("byte %d", p-b.event.Ptr) }

// buffer describes a buffer for a fault.
func (o *owned) buffer() Buffer {
	return Buffer{Ptr: o.event.Ptr, Bytes: o.event.Bytes, Tag: o.event.Tag, Allocated: o.event.Place, Freed: o.freed.Place}
}

// String names a buffer by its size, tag and place.
func (o *owned) String() string { return o.buffer().String() }
