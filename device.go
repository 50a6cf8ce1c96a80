package vram

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Stream is the cache of one CUDA stream; see NewStream and AdoptStream.
type Stream = streams.Stream

// Buffer is device memory that a caller owns: a small value whose copies name one allocation.
type Buffer = streams.Buffer

// Lane is an exclusive lease of a stream's memory for one goroutine at a time; see Stream.Lane.
type Lane = streams.Lane

// Request says what AllocFor and AllocAsync are asked for.
type Request = streams.Request

// Batch is buffers that were allocated together; see Stream.AllocBatchAsync.
type Batch = streams.Batch

// tickInterval is how often streams and the pool do what is due without a request. Not shorter: a tick
// enters the turn of every stream. Not longer: freed memory is merged and given back at ticks where
// nobody allocates.
const tickInterval = 100 * time.Millisecond

// Device is an opened GPU. Any number of goroutines may use it.
type Device struct {
	driver  cudadrv.Device
	meter   *meter.Device
	fences  fence.Source
	pool    *pool.Pool
	config  Config
	limit   atomic.Int64
	lastID  atomic.Uint32
	streams atomic.Pointer[registry]

	background context.Context //nolint:containedctx // its end is Close's: the warm-up and the ticks stop
	stop       context.CancelFunc
	ticks      *ticker
	closed     atomic.Bool
	closeDone  chan struct{}
	closeErr   error // written before closeDone is closed
}

// registry is the streams of a device. It is replaced, never changed.
type registry struct {
	open   []*Stream
	gone   Stats // totals of those that are no more
	closed bool  // nothing is added any more
}

// Open opens a device and reserves address space on it; memory is mapped when it is needed. The caller
// closes the device. Errors: *ConfigError, ErrNoDriver, ErrNoDevice, and what the driver said.
func Open(cfg Config) (*Device, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Driver == nil {
		return nil, fmt.Errorf("vram: no driver named (the simulator is sim.New): %w", ErrNoDriver)
	}
	dev, err := cfg.Driver.Open(cfg.Ordinal)
	if err != nil {
		return nil, fmt.Errorf("vram: %w", err)
	}
	m := meter.New(dev)
	d := &Device{driver: dev, meter: m, fences: fence.NewEvents(m), config: cfg, closeDone: make(chan struct{})}
	d.streams.Store(&registry{})
	settings := cfg.settings(dev.Info())
	d.limit.Store(settings.LimitBytes)
	if d.pool, err = pool.New(m, d.fences, settings); err != nil {
		return nil, errors.Join(fmt.Errorf("vram: %w", err), dev.Close())
	}
	d.background, d.stop = context.WithCancel(context.Background())
	d.ticks = startTicker(tickInterval, d.tick)
	if len(cfg.Warm) > 0 {
		go func() { _ = d.Warm(d.background, cfg.Warm...) }() // what cannot be mapped ahead is mapped when needed
	}
	return d, nil
}

// Info describes the device. It does not change.
func (d *Device) Info() cudadrv.Info { return d.driver.Info() }

// NewStream makes a CUDA stream and its cache. The stream's Close destroys both.
func (d *Device) NewStream() (*Stream, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	h, err := d.meter.StreamCreate()
	if err != nil {
		return nil, fmt.Errorf("vram: %w", err)
	}
	s, err := d.open(h, false)
	if err != nil {
		return nil, errors.Join(err, d.meter.StreamDestroy(h))
	}
	return s, nil
}

// AdoptStream makes a cache for a CUDA stream of the caller's, who destroys it after the cache's Close.
func (d *Device) AdoptStream(h StreamHandle) (*Stream, error) {
	if d.closed.Load() {
		return nil, ErrClosed
	}
	return d.open(h, true)
}

func (d *Device) open(h StreamHandle, adopted bool) (*Stream, error) {
	s, err := streams.Open(streams.Config{
		ID: d.lastID.Add(1), Pool: d.pool, Device: d.meter, Fences: d.fences, Handle: h, Adopted: adopted,
		Limit: &d.limit, Budget: d.config.budget(),
	})
	if err != nil {
		return nil, fmt.Errorf("vram: %w", err)
	}
	if r := d.change(func(r *registry) { r.open = append(r.open, s) }); r.closed {
		s.End() // the device was closed meanwhile: this stream has nothing and is on no list
		return nil, ErrClosed
	}
	return s, nil
}

// change replaces the registry by a changed copy and returns it; once closed it stays as it is.
func (d *Device) change(edit func(*registry)) *registry {
	for {
		old := d.streams.Load()
		if old.closed {
			return old
		}
		next := &registry{open: append([]*Stream(nil), old.open...), gone: old.gone}
		edit(next)
		if d.streams.CompareAndSwap(old, next) {
			return next
		}
	}
}

// tick lets streams and pool do what is due, and forgets streams that are gone.
func (d *Device) tick() {
	for _, s := range d.streams.Load().open {
		s.Tick()
		if s.Gone() {
			d.forget(s)
		}
	}
	d.pool.Tick()
}

func (d *Device) forget(s *Stream) {
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

// Trim asks the streams for what they cache and gives free memory back to the driver until at most
// keepBytes are held, or no more can be given back. It waits for the driver, not for buffers, and
// returns the bytes given back.
func (d *Device) Trim(ctx context.Context, keepBytes int64) (int64, error) {
	if keepBytes < 0 {
		return 0, &ConfigError{"keepBytes", keepBytes, "0 or more"}
	}
	n, err := d.pool.Trim(ctx, keepBytes)
	if errors.Is(err, pool.ErrClosed) {
		return n, ErrClosed
	}
	if err != nil {
		return n, fmt.Errorf("vram: trim: %w", err)
	}
	return n, nil
}

// Close ends the device: requests fail with ErrClosed, magazines are closed, the device is synchronised,
// all memory goes back to the driver. If buffers were live the error is an *InUseError that lists them;
// a later Free of one says ErrClosed. It waits for the device. Idempotent: every call returns the first
// one's error, after it has finished.
func (d *Device) Close() error {
	if !d.closed.CompareAndSwap(false, true) {
		<-d.closeDone
		return d.closeErr
	}
	defer close(d.closeDone)
	d.stop()
	d.ticks.stop()
	open := d.change(func(r *registry) { r.closed = true }).open
	var errs []error
	inUse := &InUseError{}
	for _, s := range open {
		errs = append(errs, s.Close())
		for _, b := range s.LiveBuffers() {
			inUse.add(b)
		}
	}
	errs = append(errs, d.meter.CtxSynchronize())
	for _, s := range open {
		s.End()
	}
	errs = append(errs, d.pool.Close(), d.fences.Close(), d.driver.Close())
	if inUse.BufferCount > 0 {
		errs = append(errs, inUse)
	}
	d.closeErr = errors.Join(errs...)
	return d.closeErr
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
