package recorder

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/monitor/snapshot"
)

// ErrOneAtATime says that a replay of several goroutines or copies was to be recorded: its events have no order.
var ErrOneAtATime = errors.New("recorder: only a replay of one goroutine and one copy can be recorded")

// Recorder watches one replay. Make one with Attach.
type Recorder struct {
	trace  *trace.Trace
	rounds int
	config vram.Config

	mu       sync.Mutex // guards the fields below
	device   cudadrv.Device
	line     int // of the current event
	handles  map[cudadrv.Handle]int64
	mapped   map[uint64]int64  // bytes by address
	live     map[uint64]buffer // by address
	history  snapshot.Trace    // of the round
	reserved int64
	curve    []int64            // reserved after each event of the first round
	last     *snapshot.Snapshot // after the last event; nothing is recorded from then on
}

// buffer is an allocation that was not freed.
type buffer struct {
	bytes int64
	stack snapshot.Stack
}

// firstLine is where a trace has its first event.
const firstLine = 2

// Attach makes a recorder and has it watch the replay of the trace with these options. They must name the driver and the
// rounds, and set no Observe.
func Attach(tr *trace.Trace, o *replay.Options) (*Recorder, error) {
	if o.Parallel || o.Copies > 1 || o.Jitter != 0 {
		return nil, ErrOneAtATime
	}
	r := &Recorder{
		trace: tr, rounds: o.Rounds, config: o.Config, line: firstLine,
		handles: map[cudadrv.Handle]int64{}, mapped: map[uint64]int64{}, live: map[uint64]buffer{},
		curve: make([]int64, 0, len(tr.Events)),
	}
	if r.rounds == 0 {
		r.rounds = replay.DefaultRounds
	}
	newDriver := o.NewDriver
	o.NewDriver = func() cudadrv.Driver { return &driver{Driver: newDriver(), recorder: r} }
	o.Config.Observer = vram.Observer{Allocated: r.allocated, Freed: r.freed}
	o.Observe = r.observe
	return r, nil
}

// Reserved returns the bytes held from the driver after each event of the first round.
func (r *Recorder) Reserved() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.curve
}

// Snapshot returns the memory after the last event, with the history of the last round; nil if the replay did not get there.
func (r *Recorder) Snapshot() *snapshot.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// note adds to the history. The caller holds mu.
func (r *Recorder) note(a snapshot.Action, address uint64, bytes int64, stream uint64, stack snapshot.Stack) {
	if r.last == nil {
		r.history = append(r.history, snapshot.Event{Action: a, Address: address, Bytes: bytes, Stream: stream, Micros: r.micros(), Stack: stack})
	}
}

// micros returns the recorded time of the current event.
func (r *Recorder) micros() int64 {
	if i := r.line - firstLine; i < len(r.trace.Micros) {
		return r.trace.Micros[i]
	}
	return r.trace.Micros[len(r.trace.Micros)-1]
}

// here returns the line of the current event, as a place in a program.
func (r *Recorder) here(what string, bytes int64) snapshot.Stack {
	return snapshot.Stack{{File: r.trace.Name + ".csv", Line: r.line, Function: fmt.Sprintf("%s of %d bytes", what, bytes)}}
}

func (r *Recorder) allocated(e vram.BufferEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stack := r.here("allocation", e.Bytes)
	r.live[uint64(e.Ptr)] = buffer{e.Bytes, stack}
	r.note(snapshot.Alloc, uint64(e.Ptr), e.Bytes, uint64(e.Handle), stack)
}

func (r *Recorder) freed(e vram.BufferEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stack := r.here("free", e.Bytes)
	delete(r.live, uint64(e.Ptr))
	r.note(snapshot.FreeRequested, uint64(e.Ptr), e.Bytes, uint64(e.Handle), stack)
	r.note(snapshot.FreeCompleted, uint64(e.Ptr), e.Bytes, uint64(e.Handle), stack)
}

// observe runs after each step.
func (r *Recorder) observe(o replay.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil {
		return
	}
	if o.Err != nil {
		r.outOfMemory(o)
	}
	if o.Round == 0 {
		r.curve = append(r.curve, r.reserved)
	}
	r.line = o.Index + 1 + firstLine
	if o.Index+1 < len(r.trace.Events) {
		return
	}
	if o.Round+1 == r.rounds {
		r.last = r.snapshot()
	}
	r.history, r.line = nil, firstLine // of the next round, whose history begins with the leftovers
}

func (r *Recorder) outOfMemory(o replay.Observation) {
	freeBytes := int64(0)
	if r.device != nil {
		freeBytes, _, _ = r.device.MemGetInfo()
	}
	r.note(snapshot.OutOfMemory, 0, o.Event.Bytes, uint64(o.Event.Stream), r.here("allocation", o.Event.Bytes))
	if len(r.history) > 0 {
		r.history[len(r.history)-1].DeviceFreeBytes = freeBytes
	}
}
