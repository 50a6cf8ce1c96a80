package vram

import (
	"context"
	"errors"

	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// Settings is a change of a device's configuration while it is in use. A field that is nil changes nothing; others
// mean what the field of that name in Config means, 0 included:
//
//	err := dev.Reconfigure(vram.Settings{LimitBytes: new(int64(8 << 30)), Footprint: new(vram.Lean)})
type Settings struct {
	LimitBytes *int64
	// MemoryFraction takes the place of a LimitBytes that was in force, unless both are given.
	MemoryFraction    *float64
	Footprint         *Footprint
	StreamCacheBytes  *int64
	StreamCacheBlocks *int
	PoolCacheBytes    *int64
	PoolCacheBlocks   *int
	Stats             *StatsLevel
	Waits             *Waits
	PressureMark      *float64
	Predict           *bool
}

// over puts the change over a configuration.
func (s *Settings) over(c Config) Config {
	if s.MemoryFraction != nil {
		c.LimitBytes = 0
	}
	set(&c.LimitBytes, s.LimitBytes)
	set(&c.MemoryFraction, s.MemoryFraction)
	set(&c.Footprint, s.Footprint)
	set(&c.StreamCacheBytes, s.StreamCacheBytes)
	set(&c.StreamCacheBlocks, s.StreamCacheBlocks)
	set(&c.PoolCacheBytes, s.PoolCacheBytes)
	set(&c.PoolCacheBlocks, s.PoolCacheBlocks)
	set(&c.Stats, s.Stats)
	set(&c.Waits, s.Waits)
	set(&c.PressureMark, s.PressureMark)
	set(&c.Predict, s.Predict)
	return c
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Reconfigure changes settings while the device is in use, all or none: an error that names a field has changed
// nothing. It waits for the turn at hand of the pool and of each stream; allocations go on meanwhile. Of changes at
// the same time each is made whole, and the last one stays. Before the first use of the device it only notes the
// change.
//
// Where more is held than a new limit allows, Reconfigure has the streams asked for what they cache and gives back
// what is free, waiting for the driver; what lives stays, and goes back once it is free. Until less is held nothing is
// taken from the driver; requests that free memory serves go on. A shorter cache budget is applied at once, a new statistics level
// from each stream's next turn on. Errors: *ConfigError, ErrClosed, and what
// the driver said when memory was given back: the settings hold all the same.
func (d *Device) Reconfigure(change Settings) error {
	if !d.opened() {
		return ErrNotOpen
	}
	for {
		if d.closed.Load() {
			return ErrClosed
		}
		old := d.config.Load()
		next := change.over(*old)
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
		d.notices.post(func() { d.notices.log.Info("vram: reconfigured") })
	}
	e := d.engine.Load()
	if e == nil { // whoever starts it looks at the configuration again
		return nil
	}
	return d.apply(e, nil)
}

// apply brings pool and streams to the configuration, until it is the one that was applied last. from is the one
// that they have; nil: unknown. Every place that writes a configuration, and every place that opens a pool or a stream
// by an earlier one, ends with this: so whichever comes last, the newest one stays.
func (d *Device) apply(e *engine, from *Config) error {
	var applied error
	for c := d.config.Load(); c != from; c = d.config.Load() {
		from = c
		settings := c.settings(e.driver.Info())
		d.limit.Store(settings.LimitBytes)
		err := e.pool.Reconfigure(context.Background(), settings)
		e.pool.Tick() // a shorter budget of the pool holds from now on
		for _, s := range d.streams.Load().open {
			_ = s.Reconfigure(context.Background(), c.ofStream()) // one that has ended needs none
		}
		if err == nil {
			err = d.shrink(e, settings.LimitBytes)
		}
		applied = err
	}
	if errors.Is(applied, pool.ErrClosed) {
		return ErrClosed
	}
	return applied
}

// shrink gives back what is held beyond the limit, as far as it is free.
func (d *Device) shrink(e *engine, limitBytes int64) error {
	books, err := e.pool.Snapshot(context.Background())
	if err != nil || books.ReservedBytes <= limitBytes {
		return err
	}
	if _, err := e.pool.Trim(context.Background(), limitBytes); err != nil {
		return failed("reconfigure", err)
	}
	return nil
}

// applyTo brings a stream that was opened by an earlier configuration to the present one.
func (d *Device) applyTo(s *streams.Control, from *Config) {
	for c := d.config.Load(); c != from; c = d.config.Load() {
		from = c
		_ = s.Reconfigure(context.Background(), c.ofStream()) // one that has ended needs none
	}
}
