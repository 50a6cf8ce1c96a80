package vramtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest/ptxrun"
)

// KernelConfig says how kernels are executed.
type KernelConfig struct {
	Ignore          []interp.Kind // mistakes that are not looked for; see interp.Launch
	MaxInstructions int64         // that one warp executes; 0: interp.DefaultMaxInstructions
	// Strict finds more races: between .volatile accesses, and where a fence after an atomic access is missing; see
	// interp.Launch.
	Strict bool
	// Cooperative executes each launch as cuLaunchCooperativeKernel does: its blocks may wait for each other, as in grid.sync.
	Cooperative bool
	// Pointers lets kernels touch every live buffer: they find some through addresses in memory. Otherwise a kernel may
	// touch only those whose addresses are among its parameters, so that a step over the end of one is found also where
	// another one follows.
	Pointers bool
	// Output receives the output of kernels' printf, under the lock of the simulated driver: it calls no device. nil: the test's log, where
	// T has one.
	Output io.Writer
}

// Kernels has the device execute kernels from PTX on real bytes. A mistake of a kernel fails the test, with the line
// and the thread; with Expected the test looks at Device.Faults itself.
func Kernels(config ...KernelConfig) Option {
	return func(s *settings) {
		s.kernels = &KernelConfig{}
		for _, c := range config {
			*s.kernels = c
		}
	}
}

// execute gives the machine an executor.
func (s *settings) execute(d *Device) {
	if s.kernels == nil {
		return
	}
	owners := &owners{anyBuffer: s.kernels.Pointers}
	output := s.kernels.Output
	if output == nil {
		d.printed = &lines{t: d.t}
		output = d.printed
	}
	d.kernels = ptxrun.New(ptxrun.Config{Ignore: s.kernels.Ignore, MaxInstructions: s.kernels.MaxInstructions, Strict: s.kernels.Strict, Cooperative: s.kernels.Cooperative, Owners: owners, Helpers: d.helpers, Output: output, Reported: !s.expected})
	s.machine.Bytes, s.machine.Executor = true, d.kernels
	if s.libraries != nil {
		s.machine.Executor = &librarian{d.kernels, s.libraries, d.helpers}
	}
	s.config.Observer = owners.observer(s.config.Observer)
}

// Faults returns the mistakes of kernels so far. Each wraps an *interp.Fault, or is a *LibraryError. Without the options Kernels
// and Library there are none.
func (d *Device) Faults() []error {
	if d == nil || d.kernels == nil {
		return nil
	}
	return d.kernels.Faults()
}

// owned is the life of a buffer, in numbers of events.
type owned struct {
	event        vram.BufferEvent
	begin, ended uint64 // ended 0: it lives
	freed        vram.BufferEvent

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

// owners is the buffers of an allocator, past ones included.
type owners struct {
	anyBuffer bool

	mu    sync.Mutex // guards the fields below
	event uint64
	all   []*owned // in the order of their begin
	freed int
}

// observer listens to the allocator.
func (o *owners) observer(also vram.Observer) vram.Observer {
	return vram.Observer{
		Allocated: func(e vram.BufferEvent) {
			o.begin(e)
			if also.Allocated != nil {
				also.Allocated(e)
			}
		},
		Freed: func(e vram.BufferEvent) {
			o.end(e)
			if also.Freed != nil {
				also.Freed(e)
			}
		},
		Closed: also.Closed,
	}
}

func (o *owners) begin(e vram.BufferEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event++
	o.all = append(o.all, &owned{event: e, begin: o.event})
}

func (o *owners) end(e vram.BufferEvent) {
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
func (o *owners) forget() {
	kept := o.all[:0]
	for _, b := range o.all {
		if b.ended != 0 && o.freed > keptBuffers {
			o.freed--
			continue
		}
		kept = append(kept, b)
	}
	clear(o.all[len(kept):])
	o.all = kept
}

// Launched notes which buffers a launch may touch: those that live now, and whose addresses are parameters.
func (o *owners) Launched(l sim.KernelLaunch) ptxrun.Reach {
	o.mu.Lock()
	defer o.mu.Unlock()
	event := o.event
	arguments := map[*owned]bool{}
	const pointerBytes = 8
	for n := 0; n+pointerBytes <= len(l.Params); n += pointerBytes {
		p := cudadrv.Ptr(binary.LittleEndian.Uint64(l.Params[n:]))
		if b := o.at(p, event); b != nil {
			arguments[b] = true
		}
	}
	declared := map[*owned][]interp.Declared{}
	for _, a := range l.Accesses {
		if b := o.at(a.Ptr, event); b != nil {
			declared[b] = append(declared[b], interp.Declared{Start: uint64(a.Ptr), Bytes: uint64(a.Bytes), Write: a.Write}) //nolint:gosec // not negative
		}
	}
	return &reach{o, event, arguments, declared}
}

// reach is the buffers of a launch.
type reach struct {
	owners    *owners
	event     uint64 // the last before the launch
	arguments map[*owned]bool
	declared  map[*owned][]interp.Declared
}

// Part is ptxrun.Reach's.
func (r *reach) Part(p, start cudadrv.Ptr, bytes int64) (ptxrun.Part, error) {
	o := r.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	part, b, err := o.find(p, start, bytes, r.event, r.arguments)
	if b != nil {
		part.Written, part.Declared, part.Owner = b.contents.bits(b.event.Bytes), r.declared[b], b
	}
	return part, err
}

// Buffer is ptxrun.Reach's.
func (r *reach) Buffer(p cudadrv.Ptr) (ptxrun.Buffer, bool) {
	o := r.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.at(p, r.event)
	if b == nil {
		b = o.endedAt(p, r.event)
	}
	if b == nil {
		return ptxrun.Buffer{}, false
	}
	return b.buffer(), true
}

// at returns the buffer that had an address at an event, or nil.
func (o *owners) at(p cudadrv.Ptr, event uint64) *owned {
	for _, b := range slices.Backward(o.all) {
		if b.contains(p) && b.livedAt(event) {
			return b
		}
	}
	return nil
}

// endedAt returns the last buffer that had an address and was freed before an event, or nil.
func (o *owners) endedAt(p cudadrv.Ptr, event uint64) *owned {
	for _, b := range slices.Backward(o.all) {
		if b.contains(p) && b.ended != 0 && b.ended <= event {
			return b
		}
	}
	return nil
}

// find returns the part of mapped memory around an address that a launch may touch.
func (o *owners) find(p, start cudadrv.Ptr, bytes int64, event uint64, arguments map[*owned]bool) (ptxrun.Part, *owned, error) {
	b := o.at(p, event)
	switch {
	case b != nil && (o.anyBuffer || arguments[b]):
		return ptxrun.Part{Start: b.event.Ptr, Bytes: b.event.Bytes}, b, nil
	case b != nil:
		return ptxrun.Part{}, nil, fmt.Errorf("%s belongs to a buffer that is no argument of the launch: %v%s", byteOf(p, b), b, o.before(p, arguments))
	}
	if b := o.endedAt(p, event); b != nil {
		return ptxrun.Part{}, nil, fmt.Errorf("%w: %v, freed at %v", interp.ErrNotLive, b, b.freed.Place)
	}
	managed := false
	for _, b := range slices.Backward(o.all) {
		managed = managed || b.event.Ptr >= start && uint64(b.event.Ptr-start) < uint64(bytes) //nolint:gosec // not negative
	}
	if !managed { // memory past the allocator
		return ptxrun.Part{Start: start, Bytes: bytes}, nil, nil
	}
	return ptxrun.Part{}, nil, fmt.Errorf("no buffer has the address%s", o.before(p, arguments))
}

// before names the argument that ends closest below an address.
func (o *owners) before(p cudadrv.Ptr, arguments map[*owned]bool) string {
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
func (o *owned) buffer() ptxrun.Buffer {
	return ptxrun.Buffer{Ptr: o.event.Ptr, Bytes: o.event.Bytes, Tag: o.event.Tag, Allocated: o.event.Place, Freed: o.freed.Place}
}

// String names a buffer by its size, tag and place.
func (o *owned) String() string { return o.buffer().String() }
