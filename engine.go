package vram

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// engine is made by the first use of a device: its context, and the pool of its memory.
type engine struct {
	_ [0]func() // is not compared, and programs have no code for it

	driver cudadrv.Device
	meter  *meter.Device
	fences *fence.Events
	pool   *pool.Pool
	peers  streams.Peers
	ticks  *ticker
}

// opening is a first use in progress, or its outcome.
type opening struct {
	_ [0]func() // is not compared, and programs have no code for it

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
	d.engine.Store(s.engine)
	s.engine.pool.AddTenants(d.tenants.list()...)
	_ = d.apply(s.engine, c) // changes made meanwhile; nothing is held yet, so that no limit can fail
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
	if err := c.checkLimit(info); err != nil {
		return nil, err
	}
	m := meter.New(dev)
	e = &engine{driver: dev, meter: m, fences: fence.NewEvents(m)}
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
