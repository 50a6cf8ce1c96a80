package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsonform"
	"github.com/go-vram/vram/internal/units"
)

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	Allocated   Kind = iota // a buffer was allocated
	Freed                   // a buffer was freed
	OutOfMemory             // the pool refused a request: Event.Bytes were requested
	Growth                  // Event.Bytes were taken from the driver
	Trim                    // Event.Bytes were released to the driver
	Mapped                  // Event.Bytes were mapped at Event.Ptr: by a growth, or moved there
	Unmapped                // Event.Bytes were unmapped at Event.Ptr: for a trim, or to be moved
)

var kindNames = [...]string{ //nolint:gochecknoglobals // constant table
	Allocated: "allocated", Freed: "freed", OutOfMemory: "out of memory", Growth: "growth", Trim: "trim",
	Mapped: "mapped", Unmapped: "unmapped",
}

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", k)
	}
	return kindNames[k]
}

// MarshalText implements encoding.TextMarshaler: String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("history: %q is no kind of event, want one of %q", text, kindNames)
	}
	*k = Kind(i) //nolint:gosec // one of a short table
	return nil
}

// Event is one recorded event.
type Event struct {
	Number uint64     `json:"number"` // from 0, of all events since Start
	Time   time.Time  `json:"time"`
	Kind   Kind       `json:"kind"`
	Stream uint32     `json:"stream"` // by its ID; 0: of no stream
	Ptr    vram.Ptr   `json:"ptr"`
	Bytes  int64      `json:"bytes"` // requested; of the block, where the buffer lived before Start
	Tag    string     `json:"tag"`
	Tenant string     `json:"tenant"` // by its name; "": none
	Stack  site.Stack `json:"stack"`  // of the request or the free, with Options.Stacks
}

// Options say how much is recorded.
type Options struct {
	// Events is how many events are kept, the latest. 0: 65,536, some 10 MB without stacks.
	Events int
	// Stacks keeps the call stack of each allocation and free: some 200 bytes more for each.
	Stacks bool
}

// defaultEvents is Options.Events for 0.
const defaultEvents = 1 << 16

// Recorder records the events of a device. Start makes one; a nil or zero Recorder has recorded nothing.
type Recorder struct {
	device  *vram.Device
	options Options
	stop    func()
	ring    []atomic.Pointer[Event]
	next    atomic.Uint64
	atEnd   atomic.Pointer[[]Event] // the live buffers at Stop
}

// Start begins to record. The caller stops it. Errors: as Device.Observe, and one for a negative number of events.
func Start(d *vram.Device, o Options) (*Recorder, error) {
	if o.Events < 0 {
		return nil, fmt.Errorf("history: Events is %d, want 0 or more", o.Events)
	}
	if o.Events == 0 {
		o.Events = defaultEvents
	}
	r := &Recorder{device: d, options: o, ring: make([]atomic.Pointer[Event], o.Events)}
	var err error
	r.stop, err = d.Observe(vram.Observer{
		Allocated: func(e vram.BufferEvent) { r.enter(r.event(Allocated, e)) },
		Freed:     func(e vram.BufferEvent) { r.enter(r.event(Freed, e)) },
		Denied: func(e *vram.OutOfMemoryError) {
			r.enter(Event{Kind: OutOfMemory, Bytes: e.RequestedBytes})
		},
		Reserved: func(changeBytes, _ int64) {
			kind := Growth
			if changeBytes < 0 {
				kind, changeBytes = Trim, -changeBytes
			}
			r.enter(Event{Kind: kind, Bytes: changeBytes})
		},
		Mapped: func(at vram.Ptr, changeBytes int64) {
			kind := Mapped
			if changeBytes < 0 {
				kind, changeBytes = Unmapped, -changeBytes
			}
			r.enter(Event{Kind: kind, Ptr: at, Bytes: changeBytes})
		},
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return r, nil
}

// opened reports that Start has made the recorder.
func (r *Recorder) opened() bool { return r != nil && r.stop != nil }

// String has the device and the numbers of events.
func (r *Recorder) String() string {
	if !r.opened() {
		return "no recorder"
	}
	return fmt.Sprintf("recorder of device %d: %s, of which the last %d are kept",
		r.device.Ordinal(), units.Count(r.next.Load(), "event"), len(r.ring))
}

func (r *Recorder) event(kind Kind, e vram.BufferEvent) Event {
	x := Event{Kind: kind, Stream: e.Stream, Ptr: e.Ptr, Bytes: e.Bytes, Tag: e.Tag, Tenant: e.Tenant}
	if r.options.Stacks {
		x.Stack = e.Place
	}
	return x
}

// enter adds an event to the ring, replacing the oldest.
func (r *Recorder) enter(e Event) {
	e.Time = time.Now()
	e.Number = r.next.Add(1) - 1
	at := &r.ring[e.Number%uint64(len(r.ring))]
	for {
		old := at.Load()
		if old != nil && old.Number > e.Number || at.CompareAndSwap(old, &e) { // one that was overtaken is lost
			return
		}
	}
}

// Stop ends the recording, whose events stay. It waits for the request that each stream is serving. Idempotent.
func (r *Recorder) Stop() {
	if !r.opened() {
		return
	}
	if r.atEnd.Load() != nil {
		r.stop()
		return
	}
	first := r.next.Load()
	live := r.live()
	r.stop()
	live = after(live, r.since(first))
	r.atEnd.CompareAndSwap(nil, &live)
}

// live lists the buffers that live at this moment.
func (r *Recorder) live() (all []Event) {
	stop, err := r.device.Observe(vram.Observer{Found: func(e vram.BufferEvent) { all = append(all, r.event(Allocated, e)) }})
	if err == nil { // else the device is closed
		stop()
	}
	return all
}

// since returns the events that the ring has from a number on, in their order.
func (r *Recorder) since(first uint64) (all []Event) {
	for i := range r.ring {
		if e := r.ring[i].Load(); e != nil && e.Number >= first {
			all = append(all, *e)
		}
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// after returns the buffers that live after some events, of the ones that were listed during them: the list may have a buffer or not
// that was allocated or freed then, so the last event at its address decides.
func after(listed, events []Event) (live []Event) {
	last := map[vram.Ptr]Event{}
	for _, e := range events {
		if e.Kind == Allocated || e.Kind == Freed {
			last[e.Ptr] = e
		}
	}
	for _, e := range listed {
		if _, changed := last[e.Ptr]; !changed {
			live = append(live, e)
		}
	}
	for _, e := range events {
		if e.Kind == Allocated && last[e.Ptr].Number == e.Number {
			e.Number, e.Time = 0, time.Time{}
			live = append(live, e)
		}
	}
	return live
}

// Snapshot is a recording at a moment.
type Snapshot struct {
	Events []Event `json:"events"` // in order of their numbers
	// Live are the buffers that lived after the last of Events, at Stop at the latest, without times: not all of them were allocated in
	// Events. A change that the ring lost while Live was read may be missing.
	Live      []Event `json:"live"`
	LostCount uint64  `json:"lost_count"` // events before those
}

// MarshalJSON implements json.Marshaler: a list without events is [].
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type plain Snapshot
	s.Events, s.Live = jsonform.List(s.Events), jsonform.List(s.Live)
	return json.Marshal(plain(s))
}

// Snapshot reads the recording. While the recording runs, it waits for the request that each stream is serving.
func (r *Recorder) Snapshot() Snapshot {
	var s Snapshot
	if !r.opened() {
		return s
	}
	if live := r.atEnd.Load(); live != nil {
		s.Live, s.Events = slices.Clone(*live), r.since(0)
	} else {
		first := r.next.Load()
		listed := r.live()
		s.Events = r.since(0)
		at, _ := slices.BinarySearchFunc(s.Events, first, func(e Event, number uint64) int { return cmp.Compare(e.Number, number) })
		s.Live = after(listed, s.Events[at:])
	}
	if len(s.Events) > 0 {
		s.LostCount = s.Events[len(s.Events)-1].Number + 1 - uint64(len(s.Events))
	}
	return s
}

// Events returns the recorded events.
func (r *Recorder) Events() []Event { return r.Snapshot().Events }
