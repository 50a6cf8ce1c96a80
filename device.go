package vram

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
	streamcore "github.com/go-vram/vram/streams/core"
)

// Request is a request of AllocFor and AllocAsync.
type Request = streams.Request

// BatchRequest is a request of AllocBatchFor and AllocBatchForAsync.
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

// BufferEvent is a buffer that was allocated or freed, for an Observer.
type BufferEvent = streams.BufferEvent

// tickInterval is the interval at which streams and the pool do periodic work. Not shorter: a tick
// enters the turn of every stream. Not longer: while no request comes, ticks merge freed memory and
// release it.
const tickInterval = 100 * time.Millisecond

// Device is an opened GPU and the memory that is held from its driver. Open makes one, Close ends
// it. Any number of goroutines may use it at once. It has more than forty methods, of which each is a caller's question or
// request in a few lines; the work is in the pool, the streams and the parts that its fields name.
type Device struct {
	config    configPointer
	started   atomic.Pointer[opening] // nil before the first use
	engine    atomic.Pointer[engine]  // nil before the first use has succeeded
	limit     atomic.Int64
	lastID    atomic.Uint32
	streams   atomic.Pointer[registry]
	creations *callGate
	live      streamcore.Gauge // with StatsExact
	sampled   shared.Mark      // live bytes at ticks, with StatsOn
	pending   shared.Mark      // pending bytes of all streams, as statistics were read
	gonePeak  shared.Mark      // live bytes of streams that have ended, each alone
	scopes    atomic.Uint64    // numbers of Measure
	profile   streams.Profile  // see Profile
	observers streams.Observers
	pressure  pressureState
	tenants   tenants
	notices   *notices // nil without a Logger and Events
	panics    recovered.Log
	failed    map[uint32]bool // open streams whose failure was reported, 0 the pool; owned by the ticker, then by Close

	background     context.Context //nolint:containedctx // its end is Close's: the warm-up stops
	stop           context.CancelFunc
	closed         atomic.Bool
	closer         atomic.Uint64 // the goroutine of the first Close
	neighbourBytes atomic.Int64  // see Stats.NeighbourBytes
	released       chan struct{} // closed when all memory is released
	closeDone      chan struct{} // closed when the calls of Events are made, too
	closeErr       error         // written before released is closed
}

// registry is the streams of a device. It is replaced, never changed.
type registry struct {
	open   []*streams.Control
	gone   Stats // totals of streams that have ended
	closed bool  // no stream is added any more
}

// Open makes a Device. It asks the driver only how many GPUs there are: the first use (NewStream,
// AdoptStream, Info, Warm or Reserve) makes the context and reserves address space, and memory is
// taken from the driver when it is needed. The caller closes the device. Errors: *ConfigError,
// ErrNoDriver, ErrNoDevice, and the driver's. Failures of the GPU itself are errors of the first
// use.
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
	d := &Device{released: make(chan struct{}), closeDone: make(chan struct{}), failed: map[uint32]bool{}, creations: newCallGate()}
	cfg.Logger = loggerOf(cfg.Logger)
	if cfg.watched() {
		if log := cfg.Logger; log != nil {
			d.notices = newNotices(&numbered{log: log, ordinal: cfg.Ordinal}, &d.panics)
		} else {
			d.notices = newNotices(nil, &d.panics)
		}
		d.panics.Tell(func(p recovered.Panic) { d.notices.post(func() { d.tellPanic(p) }) })
	}
	d.config.Store(&cfg)
	if cfg.Observer.Observes() {
		d.observers.Store(&cfg.Observer)
	}
	d.limit.Store(cfg.LimitBytes)
	d.streams.Store(&registry{})
	d.background, d.stop = context.WithCancel(context.Background())
	if len(cfg.Warm) > 0 {
		go func() { _ = d.Warm(d.background, cfg.Warm...) }() // after an error memory is mapped when needed
	}
	return d, nil
}

// opened reports whether Open made the device: it is neither nil nor the zero Device.
func (d *Device) opened() bool { return d != nil && d.closeDone != nil }

// callable returns the error of a call that cannot be made: ErrNotOpen, ErrNilContext.
func (d *Device) callable(ctx context.Context) error {
	if !d.opened() {
		return ErrNotOpen
	}
	if ctx == nil {
		return ErrNilContext
	}
	return nil
}

// Info describes the device: its name, memory, page length and capabilities. It is always the same.
// It counts as a use of the device: the first one opens it. Where that fails, Info has the ordinal
// and the driver's name alone, and the next use returns the error.
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

// Ordinal is the device's number with its driver, as Config has it. It does not use the device; 0 of a
// nil or zero Device.
func (d *Device) Ordinal() int {
	if !d.opened() {
		return 0
	}
	return d.config.Load().Ordinal
}

// NewStream creates a non-blocking CUDA stream with a cache of its own. Stream.Close destroys both.
// Errors: ErrClosed, the driver's, and those of the first use of the device: *ConfigError,
// ErrNoDevice.
func (d *Device) NewStream() (*Stream, error) {
	e, err := d.use()
	if err != nil {
		return nil, err
	}
	if !d.creations.enter() {
		return nil, deviceClosed()
	}
	defer d.creations.leave()
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
	settings := d.ofStream(c)
	s, control, err := streams.Open(streams.Config{
		ID: d.lastID.Add(1), Pool: e.pool, Device: e.meter, Fences: e.fences, Handle: h, Adopted: adopted,
		Limit: &d.limit, Budget: settings.Budget, Exact: settings.Exact, AgeTicks: settings.AgeTicks, Share: settings.Share, Profile: &d.profile, Live: &d.live, Panics: &d.panics, Debug: c.Debug, Peers: &e.peers,
		Observers: &d.observers, Handler: d.handleShortage, Handles: d.handlesShortage,
		LongWait: d.longWait(), Sibling: d.NewStream,
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
		control.End() // the device was closed meanwhile: this stream has no memory and is on no list
		return nil, deviceClosed()
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

// tick does the periodic work of streams and pool, samples, and removes streams that have ended.
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
			delete(d.failed, s.ID())
		}
	}
	if all {
		d.sampled.Raise(usedBytes)
	}
	d.updatePressure(open)
	e.pool.Tick()
	d.tellFailures(e)
}

func (d *Device) forget(s *streams.Control) {
	d.change(func(r *registry) {
		for i := range r.open {
			if r.open[i] == s {
				r.open = append(r.open[:i], r.open[i+1:]...)
				last := s.LastStats()
				r.gone.count(last)
				d.gonePeak.Raise(last.PeakLiveBytes)
				return
			}
		}
	})
}

// Trim releases free memory to the driver until the device holds at most keepBytes, or nothing more
// is free. With 0 it is PyTorch's empty_cache. It takes the streams' caches, all of them if need
// be, and freed memory whose announced uses have finished; live buffers, pending memory and
// reservations stay. Memory whose uses have finished comes home also where the device holds no more
// than keepBytes already, and nothing is released. It returns the number of released bytes. It
// waits for the driver and for the request that each stream is serving, not for buffers to be freed
// nor for work on the device; memory of a buffer that was freed after its stream was closed may still
// be on its way then. Memory of a stream that is being captured stays with that, without an error, and
// the capture is not disturbed. Errors: *ConfigError for a negative keepBytes, the context's,
// ErrClosed, and the driver's.
func (d *Device) Trim(ctx context.Context, keepBytes int64) (int64, error) {
	if err := d.callable(ctx); err != nil {
		return 0, err
	}
	if keepBytes < 0 {
		return 0, badArgument("Device.Trim", "keepBytes", keepBytes, "0 or more")
	}
	e := d.engine.Load()
	if e == nil { // nothing is held
		if d.closed.Load() {
			return 0, deviceClosed()
		}
		return 0, ctx.Err()
	}
	for _, s := range d.streams.Load().open {
		_ = s.Sweep(ctx) // a stream may have ended meanwhile; if the context has, the pool returns that
	}
	n, err := e.pool.Trim(ctx, keepBytes)
	if errors.Is(err, pool.ErrClosed) {
		return n, deviceClosed()
	}
	if err != nil {
		return n, failed("trim", err)
	}
	return n, nil
}

// Close ends the device. Requests, also waiting ones, fail with ErrClosed; the device is
// synchronised; all memory goes back to the driver. If buffers were live the error is, or wraps, an
// *InUseError that lists them, and Config.Logger and Events.Leak get it; freeing one later returns
// ErrClosed. Close waits for the work on the device and for calls of Events that are due. Every
// further call waits for the first one, and returns its error. Where the work of a stream waits for a
// process that died the error is, or wraps, a *StrandedError: the device is not synchronised then, and
// its memory and its context stay until this process ends.
//
// To synchronise the device would end captures of streams that other Devices of the process have on
// the same GPU. Close waits for those that package cuda has begun, and holds up new ones. Where one
// lasts longer than ten seconds the error is, or wraps, a *CaptureError, and memory and context stay
// as with a *StrandedError.
//
// A function of Events may call Close: that call waits for no calls of Events, since its own is one
// of them. Close calls Observer.Closed, where a further Close returns a *ClosedError.
func (d *Device) Close() error {
	if !d.opened() {
		return ErrNotOpen
	}
	if !d.closed.CompareAndSwap(false, true) {
		return d.awaitClose()
	}
	d.closer.Store(goroutine())
	defer d.endClose()
	d.stop()
	e := d.endOpening()
	open := d.change(func(r *registry) { r.closed = true }).open
	d.creations.close()
	if e != nil {
		d.closeErr = d.closeEngine(e, open)
	}
	return d.closeErr
}

// awaitClose waits for the Close that an earlier call has begun.
func (d *Device) awaitClose() error {
	select {
	case <-d.released:
	default:
		if d.closer.Load() == goroutine() {
			return deviceClosed()
		}
	}
	if d.notices.calling() {
		<-d.released
	} else {
		<-d.closeDone
	}
	return d.closeErr
}

// endClose ends the waits of further Closes: of those in functions of Events at once, of all others
// after the calls that are due.
func (d *Device) endClose() {
	close(d.released)
	switch {
	case d.notices == nil:
		close(d.closeDone)
	case d.notices.calling():
		d.notices.last(func() { close(d.closeDone) })
	default:
		d.notices.flush()
		close(d.closeDone)
	}
}

func (d *Device) closeEngine(e *engine, open []*streams.Control) error {
	others := neighbours.of(d)
	neighbours.remove(d)
	e.peers.End()
	e.ticks.stop()
	d.tellFailures(e)
	var errs []error
	inUse := &InUseError{}
	for _, s := range open {
		errs = append(errs, s.Close())
		inUse.Buffers = append(inUse.Buffers, s.LiveBuffers()...)
	}
	stranded := e.peers.Stranded() // then no call that waits for the device returns
	if !stranded {
		release, err := holdCaptures(others)
		if stranded = err != nil; !stranded {
			err = e.meter.CtxSynchronize()
			release()
		}
		errs = append(errs, err)
	}
	if o := d.observers.Load(); o != nil && o.Closed != nil {
		o.Closed()
	}
	for _, s := range open {
		s.End()
	}
	_, _ = e.pool.Snapshot(context.Background()) // for Stats: see engine.books
	if !stranded {
		errs = append(errs, e.pool.Close(), e.fences.Close(), e.driver.Close())
	}
	if inUse.sum(); inUse.BufferCount > 0 {
		d.tellLeak(inUse)
		errs = append(errs, inUse)
	}
	return joined(errs...)
}

// liveBufferLimit bounds the list of an InUseError: enough to see a pattern.
const liveBufferLimit = 1000

// sum counts the buffers, puts the largest first and shortens the list.
func (e *InUseError) sum() {
	list := inventory.Of(e.Buffers)
	e.BufferCount, e.Bytes, e.Buffers = uint64(len(list.Buffers)), list.Bytes, list.Largest(liveBufferLimit)
}
