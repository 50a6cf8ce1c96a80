package vram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/limits"
	"github.com/go-vram/vram/internal/recovered"
	streamcore "github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Request describes a buffer for AllocFor and AllocAsync.
type Request = streams.Request

// BatchRequest describes buffers for AllocBatchFor and AllocBatchForAsync.
type BatchRequest = streams.BatchRequest

// Tenant is an account that requests are charged to: see Device.Tenant.
type Tenant = pool.Tenant

// Reservation is memory that is set aside for the requests that name it: see Device.Reserve.
type Reservation = pool.Reservation

// Quota bounds the memory of a tenant.
type Quota = pool.Quota

// TenantStats is one tenant's part of Stats.
type TenantStats = pool.TenantStats

// GPUProcess is a process with memory on a GPU: see Config.Processes.
type GPUProcess = pool.GPUProcess

// Observer has functions that are called for every buffer: see Config.Observer.
type Observer = streams.Observer

// BufferEvent is a buffer that was allocated or freed, for an Observer.
type BufferEvent = streams.BufferEvent

// tickInterval is the interval at which streams and the pool do periodic work. Not shorter: a tick
// enters the turn of every stream. Not longer: while no request comes, ticks merge freed memory and
// release it.
const tickInterval = 100 * time.Millisecond

// Device is an opened GPU with its memory. Open makes one, Close ends it. It is safe for concurrent use.
//
//   - Streams: [Device.NewStream], [Device.AdoptStream].
//   - Memory ahead of need, and released: [Device.Warm], [Device.Reserve], [Device.Trim], [Device.Coalesce].
//   - Customers: [Device.Tenant].
//   - Figures: [Device.Stats], [Device.Since], [Device.Measure], [Device.GPUMemory], [Device.ResetPeaks].
//   - Buffers and requests: [Device.LiveBuffers], [Device.Waiters], [Device.MemoryMap], [Device.Lookup],
//     [Device.Profile], [Device.SampledBuffers], [Device.Observe].
//   - Settings: [Device.Reconfigure], [Device.Info], [Device.Ordinal], [Device.State].
//   - Several GPUs: [Device.CanAccessPeer], [Device.EnablePeerAccess], and [Set].
type Device struct {
	config  atomic.Pointer[Config]
	started atomic.Pointer[opening] // nil before the first use
	made    atomic.Pointer[engine]  // before engine: tenants and configurations that come during the first use go to it
	engine  atomic.Pointer[engine]  // nil before the first use has succeeded
	limit   atomic.Int64

	surroundings limits.Surroundings
	unread       atomic.Pointer[[]string] // sources of limits that could not be read, for the log
	lastID       atomic.Uint32
	streams      atomic.Pointer[registry]
	creations    *callGate
	live         streamcore.Gauge // with StatsExact
	sampled      shared.Mark      // live bytes at ticks, with StatsOn
	pending      shared.Mark      // pending bytes of all streams, as statistics were read
	gonePeak     shared.Mark      // live bytes of streams that have ended, each alone
	gonePending  shared.Mark      // likewise of their pending bytes
	scopes       atomic.Uint64    // numbers of Measure
	running      scopes           // of Measure
	profile      streams.Profile  // see Profile
	helpers      *site.Helpers    // of Config.Helpers
	observers    streams.Observers
	named        *Observer // the driver's, which names buffers in its errors; may be nil
	pressure     pressureState
	tenants      tenants
	notices      *notices // nil without a Logger and Events
	panics       recovered.Log
	failed       map[uint32]bool // open streams whose failure was reported, 0 the pool; owned by the ticker, then by Close

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
	return openIn(cfg, limits.Surroundings{Variable: os.LookupEnv, Files: os.DirFS("/")})
}

// openIn opens a device that has the limit of the surroundings as its default.
func openIn(cfg Config, in limits.Surroundings) (*Device, error) {
	cfg.outer = limits.Limit{}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := cfg.findDriver(); err != nil {
		return nil, err
	}
	count, err := cfg.Driver.DeviceCount()
	if err != nil {
		return nil, failed("", err)
	}
	if cfg.Ordinal >= count {
		return nil, fmt.Errorf("vram: Ordinal is %d, the driver has %s: %w", cfg.Ordinal, units.Count(count, "device"), ErrNoDevice)
	}
	d := &Device{surroundings: in, released: make(chan struct{}), closeDone: make(chan struct{}), failed: map[uint32]bool{}, creations: newCallGate()}
	d.helpers = site.NewHelpers(cfg.Helpers)
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
	if named := cudadrv.BufferObserverOf(cfg.Driver); named != nil {
		d.named = observerOf(named)
	}
	if first := d.together(); first != nil {
		d.observers.Store(first)
	}
	d.limit.Store(cfg.LimitBytes)
	d.streams.Store(&registry{})
	d.background, d.stop = context.WithCancel(context.Background())
	if warm := slices.Clone(cfg.Warm); len(warm) > 0 { // the caller may change its own when Open has returned
		go func() { _ = d.Warm(d.background, warm...) }() // after an error memory is mapped when needed
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
// Errors: ErrClosed, the driver's, and the errors of the device's first use: *ConfigError, ErrNoDevice.
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

// openBy opens a stream by a configuration that Reconfigure may replace during the call.
func (d *Device) openBy(c *Config, e *engine, h StreamHandle, adopted bool) (*Stream, error) {
	settings := d.ofStream(c)
	s, control, err := streams.Open(streams.Config{
		ID: d.lastID.Add(1), Pool: e.pool, Device: e.meter, Fences: e.fences, Handle: h, Adopted: adopted,
		Limit: &d.limit, Budget: settings.Budget, Exact: settings.Exact, AgeTicks: settings.AgeTicks, Share: settings.Share, Profile: &d.profile, Helpers: d.helpers, Live: &d.live, Panics: &d.panics, Debug: c.Debug, Peers: &e.peers,
		Observers: &d.observers, Handler: d.handleShortage, Handles: d.handlesShortage,
		LongWait: d.longWait(), Sibling: d.NewStream, LimitSource: d.limitSource, Complete: d.completer(c),
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
		control.End() // Close came first: this stream has no memory and is on no list
		return nil, deviceClosed()
	case taken != nil: // by a call at the same time
		return nil, errors.Join(taken, s.Close())
	}
	d.join(control)
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
	if e.count++; e.count%followTicks == 0 {
		d.follow(e)
	}
	e.pool.Tick()
	d.tellFailures(e)
}

func (d *Device) forget(s *streams.Control) {
	d.leave(s) // before it leaves the list: see scope.end
	d.change(func(r *registry) {
		for i := range r.open {
			if r.open[i] == s {
				r.open = append(r.open[:i], r.open[i+1:]...)
				last := s.LastStats()
				r.gone.count(last)
				d.gonePeak.Raise(last.PeakLiveBytes)
				d.gonePending.Raise(last.PeakPendingBytes)
				return
			}
		}
	})
}

// Trim releases free memory to the driver until the device holds at most keepBytes, or nothing more
// is free. With 0 it is PyTorch's empty_cache. It takes the streams' caches, all of them if need
// be, and freed memory whose announced uses have finished; live buffers, pending memory and
// reservations stay. Memory whose uses have finished becomes free even if the device already holds no more than
// keepBytes, so that nothing is released. It returns the number of released bytes. It
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
		_ = s.Sweep(ctx) // an error means that the stream or the context has ended; the pool returns the latter
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
			err = e.peers.Tell(e.meter.CtxSynchronize())
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

// engine is made by the first use of a device: its context, and the pool of its memory.
type engine struct {
	driver cudadrv.Device
	meter  *meter.Device
	fences *fence.Events
	pool   *pool.Pool
	peers  streams.Peers
	ticks  *ticker
	count  uint64 // of ticks, which alone read it
}

// opening is a first use in progress, or its outcome.
type opening struct {
	done   chan struct{}
	engine *engine
	err    error // of a failed opening
}

// errNoStart is the error of calls that wait for a driver that panicked when it was opened.
var errNoStart = errors.New("vram: the device could not be opened")

// use returns the engine. The first call makes it, others wait for that; after a failure the next
// call tries again. Errors: ErrClosed, *ConfigError, ErrNoDriver, ErrNoDevice, and the driver's.
func (d *Device) use() (*engine, error) {
	if !d.opened() {
		return nil, ErrNotOpen
	}
	if e := d.engine.Load(); e != nil {
		return e, nil
	}
	for {
		if d.closed.Load() {
			return nil, deviceClosed()
		}
		first := &opening{done: make(chan struct{}), err: errNoStart}
		if d.started.CompareAndSwap(nil, first) {
			d.begin(first)
			return first.engine, first.err
		}
		if s := d.started.Load(); s != nil {
			<-s.done
			return s.engine, s.err
		}
	}
}

// begin makes the engine.
func (d *Device) begin(s *opening) {
	defer func() {
		if s.err != nil {
			d.started.CompareAndSwap(s, nil)
		}
		close(s.done)
	}()
	c := d.config.Load()
	if s.engine, s.err = d.openDevice(c); s.err != nil {
		return
	}
	neighbours.add(s.engine.driver.Info().UUID, d)
	s.engine.ticks = startTicker(tickInterval, func() { d.tick(s.engine) })
	d.made.Store(s.engine) // tenants and changes that do not see it are in the list and the configuration that follow
	s.engine.pool.AddTenants(d.tenants.list()...)
	_ = d.apply(s.engine, c) // changes since the open began; nothing is held yet, so no limit can fail
	d.engine.Store(s.engine)
}

// openDevice opens the device and its pool by a configuration.
func (d *Device) openDevice(c *Config) (e *engine, err error) {
	dev, err := c.Driver.Open(c.Ordinal)
	if err != nil {
		return nil, failed("", err)
	}
	opened := false
	defer func() {
		if !opened { // also after a panic of the driver
			err = errors.Join(err, dev.Close())
		}
	}()
	info := dev.Info()
	if c.Segments == SegmentsVMM && !info.Capabilities.Has(cudadrv.VirtualMemory) {
		return nil, badField("Segments", c.Segments, "auto or plain: "+info.Name+" has no virtual memory management")
	}
	c = d.surround(c, info)
	if err := c.checkLimit(info); err != nil {
		return nil, err
	}
	e = &engine{driver: dev}
	if c.FaultPlaces != FaultPlacesOff {
		e.peers.RecordLaunches(c.FaultPlaces == FaultPlacesBlocking)
	}
	m := meter.NewTranslating(dev, func(err error) error { return e.peers.Failed(err, dev) })
	e.meter, e.fences = m, fence.NewEvents(m)
	settings := c.settings(info)
	if c.LimitBytes > settings.LimitBytes && d.notices != nil {
		d.notices.post(func() {
			d.notices.log.Warn("vram: the limit is above the device's memory", "wantedBytes", c.LimitBytes, "limitBytes", settings.LimitBytes)
		})
	}
	d.limit.Store(settings.LimitBytes)
	d.profile.SetShare(c.profileShare())
	modelled, _ := dev.(cudadrv.Modelled)
	e.pool, err = pool.New(pool.Config{
		Device: m, Fences: e.fences, Settings: settings, Plain: c.plain(info),
		Observer: d.observer(), Debug: c.Debug, Panics: &d.panics, Modelled: modelled, Handed: e.peers.Handed,
	})
	if err != nil {
		return nil, failed("", err)
	}
	opened = true
	return e, nil
}

// endOpening refuses further openings, waits for the one in progress, and returns the engine, nil
// if the device was never used.
func (d *Device) endOpening() *engine {
	end := &opening{done: make(chan struct{}), err: deviceClosed()}
	close(end.done)
	if s := d.started.Swap(end); s != nil {
		<-s.done
	}
	return d.engine.Load()
}

// DriverNamed makes a driver for Config.Driver by name:
//
//   - "dynamic": libcuda, loaded at run time.
//   - "sim": the simulated device, its virtual time running with the clock. Kernels take time and compute nothing.
//   - "auto": dynamic where this machine has a GPU, and sim where it has no driver or no device. A
//     driver that is installed and does not work is an error, not a reason to simulate. The name is
//     resolved by the call, which can take a second.
//   - a name that an imported package has registered (cudadrv.Register): package cudadrv/cpu registers "cpu", a device that
//     computes on this machine's processor.
//   - "gpu-or-" and such a name, as "gpu-or-cpu": as auto, with the other driver where there is no GPU.
//
// The driver's Name, and Device.Info, tell them apart. Errors: *ConfigError; with "auto" and "gpu-or-" also the driver's.
func DriverNamed(name string) (cudadrv.Driver, error) {
	if other, ok := strings.CutPrefix(name, gpuOr); ok && other != "" {
		without, err := driverNamed(other)
		switch {
		case err != nil:
			return nil, err
		case without == nil:
			return nil, unknownDriver(name)
		}
		return automatic(dynamic.New(dynamic.Config{}), without)
	}
	if name == "auto" {
		return automatic(dynamic.New(dynamic.Config{}), simulated())
	}
	driver, err := driverNamed(name)
	if err == nil && driver == nil {
		err = unknownDriver(name)
	}
	return driver, err
}

// findDriver makes the driver of DriverName if there is none.
func (c *Config) findDriver() (err error) {
	switch {
	case c.Driver != nil:
	case c.DriverName == "":
		c.Driver = dynamic.New(dynamic.Config{})
	default:
		c.Driver, err = DriverNamed(c.DriverName)
	}
	return err
}

// driverNamed makes the one driver that has a name, nil if there is none.
func driverNamed(name string) (cudadrv.Driver, error) {
	switch name {
	case "dynamic":
		return dynamic.New(dynamic.Config{}), nil
	case "sim":
		return simulated(), nil
	}
	driver, err := cudadrv.Named(name)
	if err != nil {
		return nil, failed("", err)
	}
	return driver, nil
}

const (
	// gpuOr begins a name for a GPU, or for another driver if there is none.
	gpuOr = "gpu-or-"
	// computing is the package that registers the name computingName.
	computing, computingName = "github.com/go-vram/vram/cudadrv/cpu", "cpu"
)

// unknownDriver returns the error of a name that no driver has.
func unknownDriver(name string) error { return badArgument("DriverNamed", "name", name, driverNames()) }

// driverNames lists the valid names.
func driverNames() string {
	names := []string{"auto", "dynamic"}
	known := cudadrv.Names()
	for _, name := range known {
		names = append(names, name, gpuOr+name)
	}
	text := strings.Join(names, ", ") + " or sim"
	if !slices.Contains(known, computingName) {
		text += fmt.Sprintf("; %s and %s need an import of %s", computingName, gpuOr+computingName, computing)
	}
	return text
}

func simulated() cudadrv.Driver { return sim.New(sim.Config{Clock: sim.Running}) }

// automatic returns the GPU's driver or, on a machine without a GPU, the other one.
func automatic(gpu, without cudadrv.Driver) (cudadrv.Driver, error) {
	count, err := gpu.DeviceCount()
	switch {
	case err == nil && count > 0:
		return gpu, nil
	case err == nil || dynamic.Missing(err):
		return without, nil
	}
	return nil, failed("the driver does not work (sim is the simulator)", err)
}

// DeviceState is a stage of a device's life.
type DeviceState uint8

// The states of a device.
const (
	DeviceNotOpen DeviceState = iota // nil, or the zero Device
	DeviceUnused                     // open, and no call has used the GPU yet
	DeviceInUse
	DeviceClosed // Close was called
)

var deviceStateNames = [...]string{ //nolint:gochecknoglobals // constant table
	DeviceNotOpen: "not open", DeviceUnused: "unused", DeviceInUse: "in use", DeviceClosed: "closed",
}

// String returns the state's name.
func (s DeviceState) String() string { return nameOf(deviceStateNames[:], int(s), "DeviceState") }

// MarshalText implements encoding.TextMarshaler: the name.
func (s DeviceState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error is a *ConfigError.
func (s *DeviceState) UnmarshalText(text []byte) error {
	return unmarshal(text, s, func(name string) (DeviceState, error) {
		return parseName[DeviceState](deviceStateNames[:], name, "DeviceState", "not open, unused, in use or closed")
	})
}

// State returns the stage of the device's life. It takes no turn and does not open the device.
func (d *Device) State() DeviceState {
	switch {
	case !d.opened():
		return DeviceNotOpen
	case d.closed.Load():
		return DeviceClosed
	case d.engine.Load() == nil:
		return DeviceUnused
	default:
		return DeviceInUse
	}
}

// callGate counts the calls that make streams. Close waits for those in progress before it releases
// the context: a CUDA stream whose caller came too late is destroyed in time, also in a context
// that others keep.
type callGate struct {
	word atomic.Int64  // calls in progress, and gateClosed: one word, so that no call looks before it is counted
	left chan struct{} // has a token once the last call has ended after the closing began
}

const gateClosed = int64(1) << 62

func newCallGate() *callGate { return &callGate{left: make(chan struct{}, 1)} }

// enter begins a call, which ends with leave. It is false once the gate is closed.
func (g *callGate) enter() bool {
	if g.word.Add(1) < gateClosed {
		return true
	}
	g.leave()
	return false
}

func (g *callGate) leave() {
	if g.word.Add(-1) == gateClosed {
		select {
		case g.left <- struct{}{}:
		default: // one token is enough: the closer looks again
		}
	}
}

// close refuses further calls and waits for those in progress. It is called once.
func (g *callGate) close() {
	g.word.Or(gateClosed)
	for g.word.Load() != gateClosed {
		<-g.left
	}
}

// ticker calls a function again and again, never twice at once, on a goroutine that lives only as
// long as a call: between calls nothing waits.
type ticker struct {
	timer    *time.Timer
	interval time.Duration
	call     func()
	state    atomic.Uint32
	ended    chan struct{} // closed by the call during which stop was called
}

// The states of a ticker: armed --timer--> calling --> armed; stop ends either.
const (
	armed uint32 = iota
	calling
	stopped
)

func startTicker(interval time.Duration, call func()) *ticker {
	t := &ticker{interval: interval, call: call, ended: make(chan struct{})}
	t.state.Store(calling) // until the timer is in its field
	t.timer = time.AfterFunc(time.Hour, t.fire)
	t.state.Store(armed)
	t.timer.Reset(interval)
	return t
}

func (t *ticker) fire() {
	if !t.state.CompareAndSwap(armed, calling) {
		return
	}
	defer func() { // also where a function of the caller ends the goroutine
		if !t.state.CompareAndSwap(calling, armed) {
			close(t.ended)
			return
		}
		t.timer.Reset(t.interval)
	}()
	t.call()
}

// stop ends the calls and waits for one in progress. Call it once.
func (t *ticker) stop() {
	if t.state.Swap(stopped) == calling {
		<-t.ended
	}
	t.timer.Stop()
}

// Coalesce merges neighbouring free blocks in each stream, those in magazines included, so that its
// free ranges are as long as they can be: for a large request after many small ones. The streams
// keep their memory; the next small requests refill magazines, at the cost of a miss each. It
// waits for the request that each stream is serving. Errors: ErrClosed, or the context's.
func (d *Device) Coalesce(ctx context.Context) error {
	if err := d.callable(ctx); err != nil {
		return err
	}
	if d.closed.Load() {
		return deviceClosed()
	}
	for _, s := range d.streams.Load().open {
		_ = s.Coalesce(ctx) // a closed stream has nothing to merge
	}
	return ctx.Err()
}

// closedOr returns a *ClosedError for a pool that was closed, and other errors unchanged.
func closedOr(err error) error {
	if errors.Is(err, pool.ErrClosed) {
		return deviceClosed()
	}
	return err
}

// Lookup finds the live buffer in whose memory an address lies, at its beginning or inside: for
// code that has only an address, a view of a tensor for instance, and has to announce a use with
// RecordStream. The result stands for the same allocation as the original buffer; only its Bytes
// may be more, the length of the whole block. It is false for free, cached and pending memory, for
// a buffer that is being transferred at this moment, and for addresses that are not this device's.
// The caller makes sure that nobody frees the buffer during the call.
//
// It asks the streams one after the other, in the order in which they were opened, and waits for
// the request that each is serving. The first call visits every block of a stream; later ones take
// logarithmic time.
func (d *Device) Lookup(p Ptr) (Buffer, bool) {
	if !d.opened() {
		return Buffer{}, false
	}
	for _, s := range d.streams.Load().open {
		if b, found := s.Lookup(p); found {
			return b, true
		}
	}
	return Buffer{}, false
}

// ErrTenantClosed refuses a request that names a tenant after its Close.
var ErrTenantClosed = pool.ErrTenantClosed

// Tenant returns the account of that name, which is not empty, with the quota. If there is one already its quota is
// replaced. A request that names the tenant (Request.Tenant, BatchRequest.Tenant), on any stream,
// is charged to it from its beginning until its buffer is freed, so while it waits, too. See Quota
// for the bounds of a tenant. A request beyond Quota.LimitBytes is refused with a *QuotaError or,
// with Wait, waits for the tenant's own frees, first in first out, and only then for memory.
//
// Where deadlocks are looked for, it is tenants that hold memory and wait for it, in place of
// streams: where several pieces of work share a stream, and each allocates while it holds memory,
// give each a tenant. Requests without a tenant pay nothing for all this. The call makes no driver
// call and does not wait. Tenant.Close ends a tenant. Errors: *ConfigError, *QuotaBoundsError, ErrClosed, ErrNotOpen.
func (d *Device) Tenant(name string, q Quota) (*Tenant, error) {
	if !d.opened() {
		return nil, ErrNotOpen
	}
	if name == "" {
		return nil, badArgument("Device.Tenant", "name", name, "a name that is not empty")
	}
	if err := pool.CheckQuota(q); err != nil {
		return nil, err
	}
	part := d.tenants.part(name)
	for {
		if d.closed.Load() {
			return nil, deviceClosed()
		}
		old := part.Load()
		if t := old.named(name); t != nil {
			if err := t.SetQuota(q); !errors.Is(err, ErrTenantClosed) {
				d.enlist(t) // the call that made it may not have done it yet
				return t, err
			}
		}
		t := pool.NewTenant(name, d.tenants.last.Add(1), q)
		(*pool.TenantControl)(t).OnClose(func() { d.tenants.drop(t) })
		if part.CompareAndSwap(old, old.with(name, t)) {
			d.enlist(t)
			d.joinTenant((*pool.TenantControl)(t))
			return t, nil
		}
	}
}

// enlist makes a tenant known to the pool, if that does not know it. Before the pool is made it does nothing: the first use of the device makes all
// tenants known before any other call uses the pool.
func (d *Device) enlist(t *Tenant) {
	if e := d.made.Load(); e != nil && !(*pool.TenantControl)(t).Enlisted() {
		e.pool.AddTenants(t)
	}
}

// tenantParts is the number of parts of the map of names. Not fewer: a new name copies its part, 40 names of 10,000. Not more:
// each part is a word of every device.
const tenantParts = 256

// tenants are the open tenants of a device by name. Any number of goroutines may use them.
type tenants struct {
	parts [tenantParts]atomic.Pointer[tenantNames] // replaced, never changed
	last  atomic.Uint32                            // ID
}

// tenantNames is a part.
type tenantNames struct{ all map[string]*Tenant }

func (n *tenantNames) named(name string) *Tenant {
	if n == nil {
		return nil
	}
	return n.all[name]
}

// with returns a copy with a name's tenant.
func (n *tenantNames) with(name string, t *Tenant) *tenantNames {
	next := &tenantNames{map[string]*Tenant{}}
	if n != nil {
		next.all = maps.Clone(n.all)
	}
	next.all[name] = t
	return next
}

// part returns the part of a name.
func (s *tenants) part(name string) *atomic.Pointer[tenantNames] {
	h := uint32(2166136261) // FNV-1a
	for _, c := range []byte(name) {
		h = (h ^ uint32(c)) * 16777619
	}
	return &s.parts[h%tenantParts]
}

// drop removes a tenant, unless another one has its name already.
func (s *tenants) drop(t *Tenant) {
	part := s.part(t.Name())
	for {
		old := part.Load()
		if old.named(t.Name()) != t {
			return
		}
		var next *tenantNames
		if len(old.all) > 1 {
			next = &tenantNames{maps.Clone(old.all)}
			delete(next.all, t.Name())
		}
		if part.CompareAndSwap(old, next) {
			return
		}
	}
}

// list returns the open tenants in order of creation.
func (s *tenants) list() (all []*Tenant) {
	for i := range s.parts {
		if n := s.parts[i].Load(); n != nil {
			for _, t := range n.all {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Tenant) int {
		return cmp.Compare((*pool.TenantControl)(a).ID(), (*pool.TenantControl)(b).ID())
	})
	return all
}
