package vram

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Events has functions that a device calls after events; nil ones are not called.
// The calls are made one at a time, in the order of the events, on a goroutine that lives only
// while calls are due. A function may use the device, and may wait: no allocation waits for it.
// While a thousand calls are due, further events are dropped; their number is logged. A panic in a
// function is contained and logged. Device.Close waits for the calls that are due. A function may
// call it, but must not wait for a Close of another goroutine.
type Events struct {
	// Growth reports that memory was taken from the driver.
	Growth func(GrowthEvent)
	// Warm reports the progress of a warm-up, after each driver job for it that succeeded. A warm-up that
	// finds enough free memory needs none.
	Warm func(WarmEvent)
	// Trim reports that memory was released to the driver, by Device.Trim or by the pool itself.
	Trim func(TrimEvent)
	// Pressure reports that the level of pressure has changed. The level is computed ten times a
	// second.
	Pressure func(PressureEvent)
	// OutOfMemory reports that the pool refused a request. The request may still succeed: its stream
	// searches once more before it returns the error.
	OutOfMemory func(*OutOfMemoryError)
	// Panic reports that a panic was recovered: in the allocator, a driver call, or a function of the
	// program such as OnOutOfMemory. The operation has failed with an error; the device continues.
	// Each panic is a defect. Panics of functions of Events and of the Logger are counted and logged,
	// and not reported here.
	Panic func(PanicEvent)
	// Quarantine reports that the books of a stream or of the pool did not balance after a panic:
	// its requests fail from then on, and its memory is not touched. The report comes within a
	// tenth of a second.
	Quarantine func(QuarantineEvent)
	// LongWait reports that a request with Wait has waited for a second, once for each wait.
	LongWait func(LongWaitEvent)
	// Leak reports that buffers were live when the device was closed. Close returns the same error.
	Leak func(*InUseError)
}

// LongWaitEvent is a request that has waited for memory for a second.
type LongWaitEvent = streams.LongWait

// GrowthEvent is the outcome of a driver job that took memory.
type GrowthEvent struct {
	Bytes         int64 `json:"bytes"`
	ReservedBytes int64 `json:"reserved_bytes"` // held from the driver afterwards
}

// WarmEvent is the progress of a Device.Warm, or of Config.Warm.
type WarmEvent struct {
	MappedBytes int64 `json:"mapped_bytes"` // so far, by this warm-up
	WantedBytes int64 `json:"wanted_bytes"` // in all, in whole pages, with those that were free already
}

// TrimEvent is the outcome of a driver job that released memory.
type TrimEvent struct {
	Bytes         int64 `json:"bytes"`
	ReservedBytes int64 `json:"reserved_bytes"` // held from the driver afterwards
}

// PressureEvent is a change of the level of pressure.
type PressureEvent struct {
	Level      PressureLevel `json:"level"`
	Before     PressureLevel `json:"before"`
	UsedBytes  int64         `json:"used_bytes"` // by live buffers, pending memory, and the magazines' cached blocks
	LimitBytes int64         `json:"limit_bytes"`
}

// PanicEvent is a panic that was recovered.
type PanicEvent struct {
	Place string // where it was recovered: an actor by its name, "vram-driver", "OnOutOfMemory"
	Value any    // the argument of panic; an error if runtime.Goexit ended the goroutine
	Stack []byte // as debug.Stack prints it
}

// QuarantineEvent is a stream, or the pool, that serves no more requests.
type QuarantineEvent struct {
	Stream uint32 `json:"stream"` // by its ID; 0: the pool
	Err    error  `json:"err"`    // why
}

// Logger writes a message and its attributes, which are alternating names and values as in package
// log/slog. The first attribute of each message is device, the device's number.
// *slog.Logger implements it.
type Logger interface {
	// Debug gets growth, trims and each change of the level of pressure, and with Config.Debug each driver job.
	Debug(msg string, args ...any)
	// Info gets changed settings, and levels of pressure once a minute at most.
	Info(msg string, args ...any)
	// Warn gets refused requests, long waits, driver jobs that failed, and unknown variables of the environment
	// (ConfigFromEnv).
	Warn(msg string, args ...any)
	// Error gets panics, leaks and quarantines.
	Error(msg string, args ...any)
}

// loggerOf is the logger, and nil where it is a nil pointer.
func loggerOf(log Logger) Logger {
	if v := reflect.ValueOf(log); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return log
}

// numbered is a logger that adds the device's number to each line, as the first attribute.
type numbered struct {
	log     Logger
	ordinal int
}

// with is not inlined: each method has it.
//
//go:noinline
func (n *numbered) with(args []any) []any { return append([]any{"device", n.ordinal}, args...) }

func (n *numbered) Debug(msg string, args ...any) { n.log.Debug(msg, n.with(args)...) }
func (n *numbered) Info(msg string, args ...any)  { n.log.Info(msg, n.with(args)...) }
func (n *numbered) Warn(msg string, args ...any)  { n.log.Warn(msg, n.with(args)...) }
func (n *numbered) Error(msg string, args ...any) { n.log.Error(msg, n.with(args)...) }

// noLogger takes the place of a logger where there is none.
type noLogger struct{}

func (noLogger) Debug(string, ...any) {}
func (noLogger) Info(string, ...any)  {}
func (noLogger) Warn(string, ...any)  {}
func (noLogger) Error(string, ...any) {}

// watched reports whether there is a Logger or a function of Events.
func (c *Config) watched() bool {
	e := &c.Events
	return c.Logger != nil || e.Growth != nil || e.Warm != nil || e.Trim != nil || e.Pressure != nil || e.OutOfMemory != nil || e.Panic != nil || e.Quarantine != nil ||
		e.LongWait != nil || e.Leak != nil
}

// observer passes the pool's events on. Its functions return at once.
func (d *Device) observer() pool.Observer {
	return pool.Observer{
		JobDone: func(r pool.JobReport) {
			if o := d.observers.Load(); o != nil && o.Mapped != nil {
				for _, m := range r.Mappings {
					o.Mapped(m.At, m.ChangeBytes)
				}
			}
			if o := d.observers.Load(); o != nil && o.Reserved != nil && r.CreatedBytes != r.ReleasedBytes {
				o.Reserved(r.CreatedBytes-r.ReleasedBytes, r.ReservedBytes)
			}
			if d.notices != nil {
				d.notices.post(func() { d.tellJob(r) })
			}
		},
		Denied: func(e *OutOfMemoryError) {
			if o := d.observers.Load(); o != nil && o.Denied != nil {
				o.Denied(e)
			}
			if d.notices != nil {
				d.notices.post(func() { d.tellDenial(e) })
			}
		},
	}
}

func (d *Device) tellJob(r pool.JobReport) {
	c, log := d.config.Load(), d.notices.log
	if c.Debug {
		log.Debug("vram: driver job", "calls", r.Calls, "createdBytes", r.CreatedBytes,
			"releasedBytes", r.ReleasedBytes, "reservedBytes", r.ReservedBytes)
	}
	if r.Err != nil {
		log.Warn("vram: driver job failed", "calls", r.Calls, "error", r.Err)
	}
	if r.ReleasedBytes > 0 {
		log.Debug("vram: trim", "bytes", r.ReleasedBytes, "reservedBytes", r.ReservedBytes)
		if f := c.Events.Trim; f != nil {
			f(TrimEvent{r.ReleasedBytes, r.ReservedBytes})
		}
	}
	if f := c.Events.Warm; f != nil && r.WarmWantedBytes > 0 && r.Err == nil {
		f(WarmEvent{r.WarmMappedBytes, r.WarmWantedBytes})
	}
	if r.CreatedBytes > 0 {
		log.Debug("vram: growth", "bytes", r.CreatedBytes, "reservedBytes", r.ReservedBytes)
		if f := c.Events.Growth; f != nil {
			f(GrowthEvent{r.CreatedBytes, r.ReservedBytes})
		}
	}
}

func (d *Device) tellDenial(e *OutOfMemoryError) {
	e.Largest = d.engine.Load().peers.Largest()
	d.nameProcesses(e)
	d.notices.log.Warn("vram: out of memory", "stream", e.Stream, "bytes", e.RequestedBytes, "missingBytes", e.MissingBytes,
		"freeBytes", e.FreeBytes, "reservedBytes", e.ReservedBytes, "limitBytes", e.LimitBytes, "error", e)
	if f := d.config.Load().Events.OutOfMemory; f != nil {
		f(e)
	}
}

func (d *Device) tellPanic(p recovered.Panic) {
	d.notices.log.Error("vram: recovered from a panic", "place", p.Place, "value", p.Value, "stack", string(p.Stack))
	if f := d.config.Load().Events.Panic; f != nil {
		f(PanicEvent(p))
	}
}

// longWait passes the long waits of streams on; nil without a Logger and Events.
func (d *Device) longWait() func(LongWaitEvent) {
	if d.notices == nil {
		return nil
	}
	return func(e LongWaitEvent) {
		d.notices.post(func() {
			d.notices.log.Warn("vram: long wait for memory", "stream", e.Stream, "bytes", e.Bytes, "waited", e.Waited,
				"priority", e.Priority, "tag", e.Tag, "tenant", e.Tenant, "forQuota", e.ForQuota)
			if f := d.config.Load().Events.LongWait; f != nil {
				f(e)
			}
		})
	}
}

func (d *Device) tellLeak(e *InUseError) {
	if d.notices == nil {
		return
	}
	d.notices.post(func() {
		d.notices.log.Error("vram: leak", "buffers", e.BufferCount, "bytes", e.Bytes, "error", e)
		if f := d.config.Load().Events.Leak; f != nil {
			f(e)
		}
	})
}

// tellFailures reports the streams and the pool that have failed, each once. One goroutine at a
// time calls it: the ticker, then Close.
func (d *Device) tellFailures(e *engine) {
	if d.notices == nil {
		return
	}
	tell := func(stream uint32, cause error) {
		if cause == nil || d.failed[stream] {
			return
		}
		d.failed[stream] = true
		d.notices.post(func() {
			d.notices.log.Error("vram: quarantine", "stream", stream, "error", cause)
			if f := d.config.Load().Events.Quarantine; f != nil {
				f(QuarantineEvent{stream, cause})
			}
		})
	}
	tell(0, e.pool.Failure())
	for _, s := range d.streams.Load().open {
		tell(s.ID(), s.Failure())
	}
}

// String prints both figures.
func (e GrowthEvent) String() string {
	return fmt.Sprintf("grew by %s to %s", units.Bytes(e.Bytes), units.Bytes(e.ReservedBytes))
}

// String prints both figures.
func (e WarmEvent) String() string {
	return fmt.Sprintf("warmed %s of %s", units.Bytes(e.MappedBytes), units.Bytes(e.WantedBytes))
}

// String prints both figures.
func (e TrimEvent) String() string {
	return fmt.Sprintf("trimmed by %s to %s", units.Bytes(e.Bytes), units.Bytes(e.ReservedBytes))
}

// String prints the levels and the figures.
func (e PressureEvent) String() string {
	return fmt.Sprintf("pressure %v after %v, %s of %s in use", e.Level, e.Before, units.Bytes(e.UsedBytes), units.Bytes(e.LimitBytes))
}

// String prints the place and the value, without the stack.
func (e PanicEvent) String() string { return fmt.Sprintf("panic in %s: %v", e.Place, e.Value) }

// String prints the stream, or the pool, and the cause.
func (e QuarantineEvent) String() string {
	if e.Stream == 0 {
		return fmt.Sprintf("the pool is quarantined: %v", e.Err)
	}
	return fmt.Sprintf("stream %d is quarantined: %v", e.Stream, e.Err)
}

// String prints the number of records and the sampling rate.
func (p Profile) String() string {
	var inUse ProfileTotals
	for i := range p.Records {
		inUse.Count += p.Records[i].InUse.Count
		inUse.Bytes += p.Records[i].InUse.Bytes
	}
	return fmt.Sprintf("%s, a sample each %s; in use %s with %s", units.Count(len(p.Records), "place"), units.Bytes(p.SampleBytes),
		units.Count(inUse.Count, "buffer"), units.Bytes(inUse.Bytes))
}

// noticeLimit bounds the calls that are due. Not smaller: a loop over a thousand streams may be
// refused at once. Not larger: a reader with so many unread events does not look at each.
const noticeLimit = 1000

// notices calls functions one at a time in the order in which they were posted, on a goroutine that
// ends when no call is due.
//
//	top:  nil --post--> notice (the poster starts the goroutine) --take--> busy --nothing more--> nil
//	                    busy --post--> notice --take--> busy
type notices struct {
	log     Logger
	panics  *recovered.Log
	top     atomic.Pointer[notice] // posted last
	due     atomic.Int64
	dropped atomic.Uint64
	caller  atomic.Uint64 // the goroutine that makes the calls, or the last that did
	rest    *notice       // taken and not called yet; of the goroutine
}

type notice struct {
	call func()
	next *notice // posted before
}

// busy is at the bottom of the posted notices while the goroutine lives.
var busy notice //nolint:gochecknoglobals // an identity, never written

func newNotices(log Logger, panics *recovered.Log) *notices {
	if log == nil {
		log = noLogger{}
	}
	return &notices{log: log, panics: panics}
}

// post has the function called later, unless too many are due. It does not wait.
func (n *notices) post(call func()) {
	if n.due.Add(1) > noticeLimit {
		n.due.Add(-1)
		n.dropped.Add(1)
		return
	}
	n.push(&notice{call: call})
}

func (n *notices) push(last *notice) {
	for {
		top := n.top.Load()
		if last.next = top; n.top.CompareAndSwap(top, last) {
			if top == nil {
				go n.run()
			}
			return
		}
	}
}

// last has the function called after all posted ones, however many are due. It does not wait.
func (n *notices) last(call func()) {
	n.due.Add(1)
	n.push(&notice{call: call})
}

// flush waits until all posted functions have been called.
func (n *notices) flush() {
	through := make(chan struct{})
	n.last(func() { close(through) })
	<-through
}

// calling reports whether the caller is in one of the calls: a wait there for the calls that are
// due would wait for itself.
func (n *notices) calling() bool { return n != nil && n.caller.Load() == goroutine() }

// goroutine is the number at the beginning of a stack trace: "goroutine 7 [running]". It costs a
// microsecond, and no two goroutines of a process ever have the same.
func goroutine() (number uint64) {
	const before = "goroutine "
	var stack [64]byte
	for _, c := range stack[len(before):runtime.Stack(stack[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		number = 10*number + uint64(c-'0')
	}
	return number
}

// run makes the calls that are due. A function that ends its goroutine ends no other call: another
// goroutine makes the rest.
func (n *notices) run() {
	done := false
	defer func() {
		if !done {
			go n.run()
		}
	}()
	n.caller.Store(goroutine())
	for n.rest != nil || n.collect() {
		call := n.rest.call
		n.rest = n.rest.next
		n.due.Add(-1)
		n.make(call)
	}
	done = true
}

// collect takes the posted functions, oldest first. It reports whether there is any; if not, the
// goroutine ends.
func (n *notices) collect() bool {
	for {
		for last := n.top.Swap(&busy); last != nil && last != &busy; {
			last, last.next, n.rest = last.next, n.rest, last
		}
		if dropped := n.dropped.Swap(0); dropped > 0 {
			n.make(func() { n.log.Warn("vram: events were not told", "count", dropped) })
		}
		if n.rest != nil {
			return true
		}
		if n.top.CompareAndSwap(&busy, nil) {
			return false
		}
	}
}

// make calls a function of the caller's. A panic there ends nothing else.
func (n *notices) make(call func()) {
	defer func() {
		if value := recover(); value != nil {
			n.panics.Note(recovered.Panic{Place: "event function", Value: value, Stack: debug.Stack()})
			n.logPanic(value)
		}
	}()
	call()
}

// logPanic recovers: the logger itself may have panicked.
func (n *notices) logPanic(value any) {
	defer func() { _ = recover() }()
	n.log.Error("vram: an event function panicked", "value", value)
}

// Observe has the functions called for each buffer, as Config.Observer has, from now on until stop is called. Observer.Found is
// called for each buffer that is live already, in its stream's turn, after which allocations and frees of that stream are told.
// Observe waits for the request that each stream is serving. stop waits for the same; of several calls the first ends it, and
// functions that were called before may still run. Errors: ErrNotOpen, ErrClosed.
func (d *Device) Observe(o Observer) (stop func(), err error) {
	if !d.opened() {
		return nil, ErrNotOpen
	}
	if d.closed.Load() {
		return nil, deviceClosed()
	}
	d.observe(func(all []*Observer) []*Observer { return append(all, &o) })
	ctx := context.Background()
	for _, s := range d.streams.Load().open {
		_ = s.Watch(ctx, d.ofStream(d.config.Load()), o.Found) // a stream that has ended has nothing to tell
	}
	var stopped atomic.Bool
	return func() {
		if !stopped.CompareAndSwap(false, true) {
			return
		}
		d.observe(func(all []*Observer) []*Observer {
			return slices.DeleteFunc(all, func(x *Observer) bool { return x == &o })
		})
		for _, s := range d.streams.Load().open {
			_ = s.Reconfigure(ctx, d.ofStream(d.config.Load()))
		}
	}, nil
}

// observe replaces the observers by an edited copy, and the configuration by an equal one, so that a stream which
// is being opened with the old settings gets the new ones.
func (d *Device) observe(edit func([]*Observer) []*Observer) {
	d.observers.EditAll(edit)
	for { // the last of several calls at once sees the lists of all
		old := d.observers.Load()
		if d.observers.CompareAndSwap(old, d.together()) {
			break
		}
	}
	for {
		old := d.config.Load()
		next := *old
		if d.config.CompareAndSwap(old, &next) {
			return
		}
	}
}

// together returns one observer that calls all; nil if there is none.
func (d *Device) together() *Observer {
	var all []*Observer
	if d.named != nil {
		all = append(all, d.named)
	}
	if o := &d.config.Load().Observer; o.Observes() {
		all = append(all, o)
	}
	all = append(all, d.observers.All()...)
	if len(all) == 0 {
		return nil
	}
	if len(all) == 1 {
		return all[0]
	}
	return &Observer{
		Allocated: func(e BufferEvent) { each(all, func(o *Observer) func(BufferEvent) { return o.Allocated }, e) },
		Freed:     func(e BufferEvent) { each(all, func(o *Observer) func(BufferEvent) { return o.Freed }, e) },
		Denied:    func(e *OutOfMemoryError) { each(all, func(o *Observer) func(*OutOfMemoryError) { return o.Denied }, e) },
		Reserved: func(changeBytes, reservedBytes int64) {
			for _, o := range all {
				if o.Reserved != nil {
					o.Reserved(changeBytes, reservedBytes)
				}
			}
		},
		Mapped: func(at Ptr, changeBytes int64) {
			for _, o := range all {
				if o.Mapped != nil {
					o.Mapped(at, changeBytes)
				}
			}
		},
		Closed: func() {
			for _, o := range all {
				if o.Closed != nil {
					o.Closed()
				}
			}
		},
	}
}

// observerOf returns the functions of a driver that names buffers in its errors.
func observerOf(driver cudadrv.BufferObserver) *Observer {
	event := func(e BufferEvent) cudadrv.BufferEvent {
		return cudadrv.BufferEvent{Ptr: e.Ptr, Bytes: e.Bytes, Tag: e.Tag, Place: e.Place}
	}
	return &Observer{
		Allocated: func(e BufferEvent) { driver.BufferAllocated(event(e)) },
		Freed:     func(e BufferEvent) { driver.BufferFreed(event(e)) },
	}
}

func each[E any](all []*Observer, function func(*Observer) func(E), event E) {
	for _, o := range all {
		if f := function(o); f != nil {
			f(event)
		}
	}
}

// PressureLevel is how much of the limit is in use: by live buffers, pending memory and the
// magazines' cached blocks. It is computed ten times a second. It rises at one mark and falls below
// a lower one:
//
//	level              from  until below
//	PressureHigh        85%          75%
//	PressureCritical    95%          90%
//
// With another Tuning.PressureMark the distances between the marks are proportional to the rest
// above it. Under pressure, streams release unused memory before another stream needs it:
//
//	level              magazines of large blocks  StreamCacheBytes  a stream counts as idle
//	PressureNormal     1/64 of the live peak      as set            after a second
//	PressureHigh       a quarter of that          half              after 0.3 s
//	PressureCritical   a sixteenth                a quarter         after 0.1 s
//
// An idle stream returns its cache to the pool in steps, under PressureCritical all at once.
type PressureLevel = pressure.Level

// The levels of pressure.
const (
	PressureNormal   = pressure.Normal
	PressureHigh     = pressure.High
	PressureCritical = pressure.Critical
)

// pressureState is the level of a device. The ticker writes it.
type pressureState struct {
	now   atomic.Uint32
	rises atomic.Uint64

	logged   PressureLevel // on the level Info, the last; owned by the ticker, as the next
	loggedAt time.Time
}

// pressureLogInterval is how far apart lines about pressure on the level Info are at least. Not shorter: a service that works
// as designed may rise and fall ten times a second. Not longer: a level that lasts is logged after so long at the latest.
const pressureLogInterval = time.Minute

// isDue reports whether a level is to be logged on the level Info: another one was, and that is long ago.
func (p *pressureState) isDue(level PressureLevel) bool {
	now := time.Now()
	if level == p.logged || !p.loggedAt.IsZero() && now.Sub(p.loggedAt) < pressureLogInterval {
		return false
	}
	p.logged, p.loggedAt = level, now
	return true
}

func (p *pressureState) level() PressureLevel { return PressureLevel(p.now.Load()) } //nolint:gosec // it was one

// updatePressure derives the level from the streams' used bytes, and passes it to them. It holds
// from their next tick on.
func (d *Device) updatePressure(open []*streams.Control) {
	var usedBytes int64
	for _, s := range open {
		usedBytes += s.LastUsedBytes()
	}
	mark, limit, before := d.config.Load().Tuning.PressureMark, d.limit.Load(), d.pressure.level()
	if mark == 0 {
		mark = pressure.DefaultMark
	}
	level := pressure.Mark(mark).Next(before, usedBytes, limit)
	for _, s := range open {
		s.Press(level)
	}
	if level != before {
		d.pressure.now.Store(uint32(level))
	}
	if level > before {
		d.pressure.rises.Add(1)
	}
	if d.notices == nil {
		return
	}
	if isDue, e := d.pressure.isDue(level), (PressureEvent{level, before, usedBytes, limit}); isDue || level != before {
		d.notices.post(func() { d.tellPressure(e, isDue) })
	}
}

// tellPressure logs a level that is due, and a change that is not as a swing, which concerns those alone who look for it.
func (d *Device) tellPressure(e PressureEvent, isDue bool) {
	write, message := d.notices.log.Debug, "vram: pressure swing"
	if isDue {
		write, message = d.notices.log.Info, "vram: pressure"
	}
	write(message, "level", e.Level, "before", e.Before, "usedBytes", e.UsedBytes, "limitBytes", e.LimitBytes)
	if f := d.config.Load().Events.Pressure; f != nil && e.Level != e.Before {
		f(e)
	}
}
