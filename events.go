package vram

import (
	"reflect"

	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Events has functions that a device calls when something has happened; nil ones are not called.
// The calls are made one at a time, in the order of the events, on a goroutine that lives only
// while calls are due. A function may use the device, and may wait: no allocation waits for it.
// While a thousand calls are due, further events are dropped; their number is logged. A panic in a
// function is contained and logged. Device.Close waits for the calls that are due. A function may
// call it, but must not wait for a Close of another goroutine.
type Events struct {
	// Growth reports that memory was taken from the driver.
	Growth func(GrowthEvent)
	// Warm reports the progress of a warm-up, after each driver job for it. A warm-up that finds
	// enough free memory needs none.
	Warm func(WarmEvent)
	// Trim reports that memory was released to the driver, by Device.Trim or by the pool itself.
	Trim func(TrimEvent)
	// Pressure reports that the level of pressure has changed. The level is computed ten times a
	// second.
	Pressure func(PressureEvent)
	// OutOfMemory reports that the pool refused a request. The request may be served all the same:
	// its stream searches once more before it returns the error.
	OutOfMemory func(*OutOfMemoryError)
	// Panic reports that a panic was recovered: in the allocator, a driver call, or a function of
	// the program's such as OnOutOfMemory. The operation has failed with an error; the rest goes
	// on. Each is a defect somewhere. Panics of functions of Events and of the Logger are counted
	// and logged, and not reported here.
	Panic func(PanicEvent)
	// Quarantine reports that the books of a stream or of the pool did not balance after a panic:
	// its requests fail from now on, and its memory is left as it is. The report comes within a
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
	Bytes         int64
	ReservedBytes int64 // held from the driver afterwards
}

// WarmEvent is the progress of a Device.Warm, or of Config.Warm.
type WarmEvent struct {
	MappedBytes int64 // so far, by this warm-up
	WantedBytes int64 // in all, in whole pages, with those that were free already
}

// TrimEvent is the outcome of a driver job that released memory.
type TrimEvent struct {
	Bytes         int64
	ReservedBytes int64 // held from the driver afterwards
}

// PressureEvent is a change of the level of pressure.
type PressureEvent struct {
	Level, Before PressureLevel
	UsedBytes     int64 // by live buffers, pending memory, and the magazines' cached blocks
	LimitBytes    int64
}

// PanicEvent is a panic that was recovered.
type PanicEvent struct {
	Place string // where it was recovered: an actor by its name, "vram-driver", "OnOutOfMemory"
	Value any    // the argument of panic; an error if runtime.Goexit ended the goroutine
	Stack []byte // as debug.Stack prints it
}

// QuarantineEvent is a stream, or the pool, that serves no more requests.
type QuarantineEvent struct {
	Stream uint32 // by its ID; 0: the pool
	Err    error  // why
}

// Logger writes a message and its attributes, which are names and values in turns, as those of
// package log/slog are. The first attribute of each message is device, the device's number.
// *slog.Logger implements it. It is an interface so that a program that does
// not log is not linked with log/slog, which has encoding/json in it.
type Logger interface {
	// Debug gets growth, trims and each change of the level of pressure, and with Config.Debug each driver job.
	Debug(msg string, args ...any)
	// Info gets changed settings, and levels of pressure once a minute at most.
	Info(msg string, args ...any)
	// Warn gets refused requests, long waits, driver jobs that failed, and unknown variables of the environment (ConfigFromEnv).
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

// numbered is a logger that adds the device's number to each line, behind the message.
type numbered struct {
	_ [0]func() // is not compared, and programs have no code for it

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
