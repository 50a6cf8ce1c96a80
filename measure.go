package vram

import (
	"context"
	"fmt"
	"time"

	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
	streamcore "github.com/go-vram/vram/streams/core"
)

// Measurement has a device's figures of the time in which a function ran: see Device.Measure.
type Measurement struct {
	Elapsed time.Duration
	// Stats are the differences as Stats.Sub has them: counts, driver calls and their time are those
	// inside, bytes by state are their growth, the longest wait is of the waits inside. Peaks are the
	// maxima inside, and buffers that lived before are part of them. Streams has the part of each stream.
	Stats Stats
}

// Measure calls f, which may be nil, and returns the device's figures of that time, in all and by
// stream, so that the part of one stream can be told from that of others at the same time. Any number
// of measurements may go on at once, one inside another or side by side; the peaks of Stats go on as
// if there were none, and ResetPeaks inside f changes no peak of the measurement. It waits as Stats
// does, before and after f. Streams that end inside are part of the sums alone. Where f panics the
// panic goes on.
func (d *Device) Measure(f func()) (m Measurement) {
	if !d.opened() {
		begun := time.Now()
		call(f)
		return Measurement{Elapsed: time.Since(begun)}
	}
	scope := d.beginScope()
	before := d.Stats()
	begun := time.Now()
	defer func() {
		elapsed := time.Since(begun)
		m = Measurement{Elapsed: elapsed, Stats: scope.end().Sub(before)}
	}()
	call(f)
	return m
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// scope is a measurement that goes on.
type scope struct {
	device  *Device
	number  uint64
	streams []*streams.Control // in which the scope has begun
	engine  *engine            // nil: the device was not in use then
	shared  []sharedScope
}

// sharedScope is the scope of a maximum that many goroutines note, and where its peak goes.
type sharedScope struct {
	mark *shared.Scope
	set  func(*readings, int64)
}

func (d *Device) beginScope() *scope {
	ctx := context.Background()
	s := &scope{device: d, number: d.scopes.Add(1), engine: d.engine.Load()}
	open := d.streams.Load().open
	liveBytes, pendingBytes := liveOf(ctx, open)
	for _, one := range open {
		if one.BeginScope(ctx, s.number) == nil {
			s.streams = append(s.streams, one)
		}
	}
	s.shared = []sharedScope{
		{d.live.BeginScope(), func(r *readings, peak int64) { r.live = &peak }},
		{d.sampled.Begin(0), func(r *readings, peak int64) { r.sampled = &peak }},
		{d.pending.Begin(pendingBytes), func(r *readings, peak int64) { r.pendingBytes = &peak }},
	}
	for _, t := range d.tenants.list() {
		s.shared = append(s.shared, sharedScope{(*pool.TenantControl)(t).BeginScope(), func(r *readings, peak int64) {
			r.tenants[t.Name()] = peak
		}})
	}
	if s.engine != nil {
		_ = s.engine.pool.BeginScope(ctx, s.number, liveBytes) // a pool that has ended has no peak to come
	}
	return s
}

// end ends the scope and reads the statistics, with the peaks inside it.
func (s *scope) end() Stats {
	r := &readings{streams: map[uint32]streamcore.Peaks{}, tenants: map[string]int64{}, gone: new(int64)}
	for _, one := range s.streams {
		p := one.EndScope(s.number)
		r.streams[one.ID()] = p
		if one.Gone() {
			*r.gone = max(*r.gone, p.LiveBytes)
		}
	}
	for _, x := range s.shared {
		x.set(r, x.mark.End())
	}
	if s.engine != nil {
		if p, err := s.engine.pool.EndScope(context.Background(), s.number); err == nil {
			r.pool = &p
		}
	}
	return s.device.read(r)
}

// Since is the difference between an earlier reading and Stats: see Stats.Sub.
func (d *Device) Since(before Stats) Stats { return d.Stats().Sub(before) }

// String has the main figures, on one line.
func (m Measurement) String() string { return fmt.Sprintf("in %v: %s", m.Elapsed, m.Stats.line()) }
