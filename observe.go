package vram

import (
	"context"
	"slices"
	"sync/atomic"
)

// Observe has the functions called for each buffer, as Config.Observer has, from now on until stop is called.
// Observer.Found is called for each buffer that is live already, in its stream's turn, after which
// allocations and frees of that stream are told. Live buffers of a lane that works at the same time may be freed
// untold. Observe waits for the request that each stream is serving. stop waits for the same; of several calls
// the first ends it, and functions that were called before may still run. Errors: ErrNotOpen, ErrClosed.
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
// is being opened by the settings of before gets those of now.
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

// together is the observer that stands for all; nil if there is none.
func (d *Device) together() *Observer {
	var all []*Observer
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

func each[E any](all []*Observer, function func(*Observer) func(E), event E) {
	for _, o := range all {
		if f := function(o); f != nil {
			f(event)
		}
	}
}
