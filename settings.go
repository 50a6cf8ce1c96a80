package vram

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Settings changes the configuration of a device that is in use. A nil field changes nothing; any
// other has the meaning of the field of that name in Config, 0 included:
//
//	err := dev.Reconfigure(vram.Settings{LimitBytes: new(int64(8 << 30)), Footprint: new(vram.Lean)})
type Settings struct {
	LimitBytes *int64
	// MemoryFraction takes the place of a LimitBytes that was in force, unless both are given.
	MemoryFraction   *float64
	Footprint        *Footprint
	StreamCacheBytes *int64
	PoolCacheBytes   *int64
	ReleaseAfter     *time.Duration
	Stats            *StatsLevel
	Waits            *Waits
	Predict          *bool
	SampleBytes      *int64
	// Tuning replaces all of Config.Tuning.
	Tuning *Tuning
}

// appliedTo returns a configuration with the changes.
func (s *Settings) appliedTo(c Config) Config {
	if s.MemoryFraction != nil {
		c.LimitBytes = 0
	}
	set(&c.LimitBytes, s.LimitBytes)
	set(&c.MemoryFraction, s.MemoryFraction)
	set(&c.Footprint, s.Footprint)
	set(&c.StreamCacheBytes, s.StreamCacheBytes)
	set(&c.PoolCacheBytes, s.PoolCacheBytes)
	set(&c.ReleaseAfter, s.ReleaseAfter)
	set(&c.Stats, s.Stats)
	set(&c.Waits, s.Waits)
	set(&c.Predict, s.Predict)
	set(&c.SampleBytes, s.SampleBytes)
	set(&c.Tuning, s.Tuning)
	return c
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Reconfigure changes settings while the device is in use: all of them or, with a *ConfigError that
// names a field, none. Several calls at once are made one after the other. It waits for the request
// that the pool and each stream are serving; allocations go on meanwhile. Before the first use of
// the device it only notes the change.
//
// Where more is held than a new limit allows, Reconfigure takes the streams' caches and releases
// free memory, waiting for the driver. Live buffers stay; their memory goes back when they are
// freed. Until less than the limit is held nothing is taken from the driver, and requests that free
// memory serves go on. A lower bound of a cache holds at once, a new level of statistics from each
// stream's next turn on. Errors: *ConfigError; ErrClosed; and the driver's when memory was
// released, in which case the settings hold all the same.
func (d *Device) Reconfigure(change Settings) error {
	if !d.opened() {
		return ErrNotOpen
	}
	for {
		if d.closed.Load() {
			return deviceClosed()
		}
		old := d.config.Load()
		next := change.appliedTo(*old)
		if err := next.check(); err != nil {
			return err
		}
		if e := d.engine.Load(); e != nil {
			if err := next.checkLimit(e.driver.Info()); err != nil {
				return err
			}
		}
		if d.config.CompareAndSwap(old, &next) {
			break
		}
	}
	if d.notices != nil {
		d.notices.post(func() { d.notices.log.Info("vram: reconfigured", "settings", change.String()) })
	}
	e := d.engine.Load()
	if e == nil { // the first use reads the configuration again
		return nil
	}
	err := d.apply(e, nil)
	if change.Stats != nil && *change.Stats == StatsOff {
		d.readLast(e)
	}
	return err
}

// readLast reads the counts once more, before statistics are off.
func (d *Device) readLast(e *engine) {
	ctx := context.Background()
	for _, s := range d.streams.Load().open {
		_, _ = s.Stats(ctx) // a stream that has ended keeps those of its end
	}
	_, _ = e.pool.Snapshot(ctx) // likewise
}

// apply brings pool and streams to the configuration, until it is the one that was applied last.
// from is the one that they have; nil: unknown. Every function that writes a configuration, or
// opens a pool or a stream by an earlier one, ends with apply: so the newest one wins.
func (d *Device) apply(e *engine, from *Config) error {
	var applied error
	for c := d.config.Load(); c != from; c = d.config.Load() {
		from = c
		settings := c.settings(e.driver.Info())
		d.limit.Store(settings.LimitBytes)
		d.profile.SetShare(c.profileShare())
		err := e.pool.Reconfigure(context.Background(), settings)
		e.pool.Tick() // a lower PoolCacheBytes holds from now on
		for _, s := range d.streams.Load().open {
			_ = s.Reconfigure(context.Background(), d.ofStream(c)) // a stream that has ended needs none
		}
		if err == nil {
			err = d.shrink(e)
		}
		applied = err
	}
	if errors.Is(applied, pool.ErrClosed) {
		return deviceClosed()
	}
	return applied
}

// shrink releases free memory beyond the limit.
func (d *Device) shrink(e *engine) error {
	books, err := e.pool.Snapshot(context.Background())
	if err != nil || books.ReservedBytes <= books.LimitBytes {
		return err
	}
	if _, err := e.pool.Trim(context.Background(), books.LimitBytes); err != nil {
		return failed("reconfigure", err)
	}
	return nil
}

// applyTo brings a stream that was opened by an earlier configuration to the present one.
func (d *Device) applyTo(s *streams.Control, from *Config) {
	for c := d.config.Load(); c != from; c = d.config.Load() {
		from = c
		_ = s.Reconfigure(context.Background(), d.ofStream(c)) // a stream that has ended needs none
	}
}
