package vram

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
	streamcore "github.com/go-vram/vram/streams/core"
)

// Request is what AllocFor and AllocAsync are asked for.
type Request = streams.Request

// BatchRequest is what AllocBatchFor and AllocBatchForAsync are asked for.
type BatchRequest = streams.BatchRequest

// Tenant is an account that requests are charged to: see Device.Tenant.
type Tenant = pool.Tenant

// Reservation is memory that is set aside for the requests that name it: see Device.Reserve.
type Reservation = pool.Reservation

// Quota is how much memory a tenant may have.
type Quota = pool.Quota

// TenantStats is one tenant's part of Stats.
type TenantStats = pool.TenantStats

// Observer has functions that are called for every buffer: see Config.Observer.
type Observer = streams.Observer

// BufferEvent is a buffer that was allocated or freed, as an Observer is told of it.
type BufferEvent = streams.BufferEvent

// tickInterval is how often streams and the pool do what is due without a request. Not shorter: a tick
// enters the turn of every stream. Not longer: freed memory is merged and given back at ticks where
// nobody allocates.
const tickInterval = 100 * time.Millisecond

// Device is an opened GPU and the memory that is held from its driver. Open makes one, Close ends it. Any number of goroutines may use it at once.
// Callers see some fifteen of its methods; the others open, tick and close what it is made of.
type Device struct {
	config  atomic.Pointer[Config]
	started atomic.Pointer[opening] // nil before the first use
	engine  atomic.Pointer[engine]  // nil before the first use has succeeded
	limit   atomic.Int64
	lastID  atomic.Uint32
	streams atomic.Pointer[registry]
	guests  *guests
	live    streamcore.Gauge // with StatsExact
	sampled atomic.Int64     // the most that was live at a tick, with StatsOn
	pressed pressed
	tenants atomic.Pointer[[]*Tenant] // replaced, never changed
	notices *notices                  // nil if nobody wants to hear of anything
	panics  recovered.Log
	failed  map[uint32]bool // streams of whose failure was told, 0 the pool; of the ticker, then of Close

	background context.Context //nolint:containedctx // its end is Close's: the warm-up stops
	stop       context.CancelFunc
	closed     atomic.Bool
	closeDone  chan struct{}
	closeErr   error // written before closeDone is closed
}

// registry is the streams of a device. It is replaced, never changed.
type registry struct {
	open   []*streams.Control
	gone   Stats // totals of those that are no more
	closed bool  // nothing is added any more
}

// Open makes a Device. It asks the driver only how many GPUs there are: the context is made and address space is reserved by the first use
// (NewStream, AdoptStream, Info, Warm or Reserve), and memory is taken from the driver when it is needed. The caller closes the device.
// Errors: *ConfigError, ErrNoDriver, ErrNoDevice, and what the driver said. What goes wrong in the GPU itself is the error of the first use.
func Open(cfg Config) (*Device, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Driver == nil {
		cfg.Driver = dynamic.New(dynamic.Config{})
	}
	count, err := cfg.Driver.DeviceCount()
	if err != nil {
		return nil, failed("", err)
	}
	if cfg.Ordinal >= count {
		return nil, fmt.Errorf("vram: Ordinal is %d, the driver has %s: %w", cfg.Ordinal, units.Count(count, "device"), ErrNoDevice)
	}
	d := &Device{closeDone: make(chan struct{}), failed: map[uint32]bool{}, guests: newGuests()}
	cfg.Logger = loggerOf(cfg.Logger)
	if cfg.watched() {
		d.notices = newNotices(cfg.Logger, &d.panics)
		d.panics.Tell(func(p recovered.Panic) { d.notices.post(func() { d.tellPanic(p) }) })
	}
	d.config.Store(&cfg)
	d.limit.Store(cfg.LimitBytes)
	d.streams.Store(&registry{})
	d.background, d.stop = context.WithCancel(context.Background())
	if len(cfg.Warm) > 0 {
		go func() { _ = d.Warm(d.background, cfg.Warm...) }() // what cannot be mapped ahead is mapped when needed
	}
	return d, nil
}

// opened reports whether it is one that Open made: neither nil nor the zero Device.
func (d *Device) opened() bool { return d != nil && d.closeDone != nil }

// callable says why a call cannot be made: ErrNotOpen, ErrNilContext.
func (d *Device) callable(ctx context.Context) error {
	if !d.opened() {
		return ErrNotOpen
	}
	if ctx == nil {
		return ErrNilContext
	}
	return nil
}

// Info describes the device: its name, memory, page length and what it can do. It is always the same. It counts as a use of the device: the
// first one opens it. Where that fails, Info has the ordinal and the driver's name alone, and the next use returns the error.
func (d *Device) Info() cudadrv.Info {
	if !d.opened() {
		return cudadrv.Info{}
	}
	if e, err := d.use(); err == nil {
		return e.driver.Info()
	}
	c := d.config.Load()
	return cudadrv.Info{Driver: c.Driver.Name(), Ordinal: c.Ordinal}
}

// NewStream creates a non-blocking CUDA stream with a cache of its own. Stream.Close destroys both. Errors: ErrClosed, what the driver said, and those
// of the first use of the device: *ConfigError, ErrNoDevice.
func (d *Device) NewStream() (*Stream, error) {
	e, err := d.use()
	if err != nil {
		return nil, err
	}
	if !d.guests.enter() {
		return nil, ErrClosed
	}
	defer d.guests.leave()
	h, err := e.meter.StreamCreate()
	if err != nil {
		return nil, failed("", err)
	}
	s, err := d.open(e, h, false)
	if err != nil {
		return nil, errors.Join(err, e.meter.StreamDestroy(h))
	}
	return s, nil
}

func (d *Device) open(e *engine, h StreamHandle, adopted bool) (*Stream, error) {
	return d.openBy(d.config.Load(), e, h, adopted)
}

// openBy opens a stream by a configuration that may be replaced meanwhile.
func (d *Device) openBy(c *Config, e *engine, h StreamHandle, adopted bool) (*Stream, error) {
	settings := c.ofStream()
	s, control, err := streams.Open(streams.Config{
		ID: d.lastID.Add(1), Pool: e.pool, Device: e.meter, Fences: e.fences, Handle: h, Adopted: adopted,
		Limit: &d.limit, Budget: settings.Budget, Exact: settings.Exact, Live: &d.live, Panics: &d.panics, Debug: c.Debug, Peers: &e.peers,
		Watched: c.Debug || c.Observer.Allocated != nil || c.Observer.Freed != nil, Observer: c.Observer, Handler: c.OnOutOfMemory,
		LongWait: d.longWait(),
	})
	if err != nil {
		return nil, failed("", err)
	}
	var taken error
	r := d.change(func(r *registry) {
		if taken = nil; adopted {
			taken = r.free(h)
		}
		if taken == nil {
			r.open = append(r.open, control)
		}
	})
	switch {
	case r.closed:
		control.End() // the device was closed meanwhile: this stream has nothing and is on no list
		return nil, ErrClosed
	case taken != nil: // by a call at the same time
		return nil, errors.Join(taken, s.Close())
	}
	d.applyTo(control, c)
	return s, nil
}

// change replaces the registry by a changed copy and returns it; once closed it stays as it is.
func (d *Device) change(edit func(*registry)) *registry {
	for {
		old := d.streams.Load()
		if old.closed {
			return old
		}
		next := &registry{open: append([]*streams.Control(nil), old.open...), gone: old.gone}
		edit(next)
		if d.streams.CompareAndSwap(old, next) {
			return next
		}
	}
}

// tick lets streams and pool do what is due, samples, and forgets streams that are gone.
func (d *Device) tick(e *engine) {
	usedBytes, all := int64(0), d.config.Load().Stats == StatsOn
	open := d.streams.Load().open
	for _, s := range open {
		s.Tick()
		if all {
			var n int64
			n, all = s.UsedBytes()
			usedBytes += n
		}
		if s.Gone() {
			d.forget(s)
		}
	}
	if all {
		raise(&d.sampled, usedBytes)
	}
	d.press(open)
	e.pool.Tick()
	d.tellFailures(e)
}

func raise(peak *atomic.Int64, value int64) {
	for old := peak.Load(); value > old && !peak.CompareAndSwap(old, value); old = peak.Load() {
	}
}

func (d *Device) forget(s *streams.Control) {
	d.change(func(r *registry) {
		for i := range r.open {
			if r.open[i] == s {
				r.open = append(r.open[:i], r.open[i+1:]...)
				r.gone.count(s.LastStats())
				return
			}
		}
	})
}

// Trim gives free memory back to the driver until the device holds at most keepBytes, or nothing more is free. With 0 it is PyTorch's
// empty_cache. It takes what streams cache, all of it if need be, and what has become free since announced uses have finished; live buffers,
// pending memory and reservations stay. It returns how many bytes went back. It waits for the driver and for the request that each stream is
// serving, not for buffers to be freed nor for work on the device. Errors: *ConfigError for a negative keepBytes, the context's, ErrClosed,
// and what the driver said.
func (d *Device) Trim(ctx context.Context, keepBytes int64) (int64, error) {
	if err := d.callable(ctx); err != nil {
		return 0, err
	}
	if keepBytes < 0 {
		return 0, &ConfigError{"keepBytes", keepBytes, "0 or more"}
	}
	e := d.engine.Load()
	if e == nil { // nothing is held
		if d.closed.Load() {
			return 0, ErrClosed
		}
		return 0, ctx.Err()
	}
	for _, s := range d.streams.Load().open {
		_ = s.Sweep(ctx) // one that has ended meanwhile has nothing to look at; that the context has, the pool says
	}
	n, err := e.pool.Trim(ctx, keepBytes)
	if errors.Is(err, pool.ErrClosed) {
		return n, ErrClosed
	}
	if err != nil {
		return n, failed("trim", err)
	}
	return n, nil
}

// Close ends the device. Requests, those that wait included, fail with ErrClosed; the device is synchronised; all memory goes back to the driver. If
// buffers were live the error is, or wraps, an *InUseError that lists them, and Config.Logger and Events.Leak are told; freeing one later returns
// ErrClosed. Close waits for the work on the device and for calls of Events that are due. Every further call waits for the first one, and
// returns its error.
func (d *Device) Close() error {
	if !d.opened() {
		return ErrNotOpen
	}
	if !d.closed.CompareAndSwap(false, true) {
		<-d.closeDone
		return d.closeErr
	}
	defer close(d.closeDone)
	d.stop()
	e := d.sealed()
	open := d.change(func(r *registry) { r.closed = true }).open
	d.guests.close()
	if e != nil {
		d.closeErr = d.closeEngine(e, open)
	}
	if d.notices != nil {
		d.notices.flush()
	}
	return d.closeErr
}

func (d *Device) closeEngine(e *engine, open []*streams.Control) error {
	e.ticks.stop()
	d.tellFailures(e)
	var errs []error
	inUse := &InUseError{}
	for _, s := range open {
		errs = append(errs, s.Close())
		for _, b := range s.LiveBuffers() {
			inUse.add(b)
		}
	}
	errs = append(errs, e.meter.CtxSynchronize())
	if closed := d.config.Load().Observer.Closed; closed != nil {
		closed()
	}
	for _, s := range open {
		s.End()
	}
	if books, err := e.pool.Snapshot(context.Background()); err == nil {
		e.last.Store(&books)
	}
	errs = append(errs, e.pool.Close(), e.fences.Close(), e.driver.Close())
	if inUse.BufferCount > 0 {
		d.tellLeak(inUse)
		errs = append(errs, inUse)
	}
	return errors.Join(errs...)
}

// liveBufferLimit bounds the list of an InUseError: enough to see a pattern.
const liveBufferLimit = 1000

func (e *InUseError) add(b streams.LiveBuffer) {
	e.BufferCount++
	e.Bytes += b.Bytes
	if len(e.Buffers) < liveBufferLimit {
		e.Buffers = append(e.Buffers, LiveBuffer(b))
	}
}
