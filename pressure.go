package vram

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/streams"
)

// PressureLevel is how much of the limit is in use: by live buffers, pending memory and the
// magazines' cached blocks. It is computed ten times a second. It rises at one mark and falls below
// a lower one:
//
//	level              from  until below
//	PressureHigh        85%          75%
//	PressureCritical    95%          90%
//
// With another Tuning.PressureMark the distances between the marks are proportional to the rest
// above it. Under pressure, streams release unused memory before another stream needs it:
//
//	level              magazines of large blocks  StreamCacheBytes  a stream counts as idle
//	PressureNormal     1/64 of the live peak      as set            after a second
//	PressureHigh       a quarter of that          half              after 0.3 s
//	PressureCritical   a sixteenth                a quarter         after 0.1 s
//
// An idle stream returns its cache to the pool in steps, under PressureCritical all at once. Lanes
// are asked for their free memory when PressureCritical begins.
type PressureLevel = pressure.Level

// The levels of pressure.
const (
	PressureNormal   = pressure.Normal
	PressureHigh     = pressure.High
	PressureCritical = pressure.Critical
)

// pressureState is the level of a device. The ticker writes it.
type pressureState struct {
	now   atomic.Uint32
	rises atomic.Uint64

	logged   PressureLevel // on the level Info, the last; owned by the ticker, as the next
	loggedAt time.Time
}

// pressureLogInterval is how far apart lines about pressure on the level Info are at least. Not shorter: a service that works as
// designed may rise and fall ten times a second. Not longer: a level that lasts is logged after so long at the latest.
const pressureLogInterval = time.Minute

// isDue reports whether a level is to be logged on the level Info: another one was, and that is long ago.
func (p *pressureState) isDue(level PressureLevel) bool {
	now := time.Now()
	if level == p.logged || !p.loggedAt.IsZero() && now.Sub(p.loggedAt) < pressureLogInterval {
		return false
	}
	p.logged, p.loggedAt = level, now
	return true
}

func (p *pressureState) level() PressureLevel { return PressureLevel(p.now.Load()) } //nolint:gosec // it was one

// updatePressure derives the level from the streams' used bytes, and passes it to them. It holds
// from their next tick on.
func (d *Device) updatePressure(open []*streams.Control) {
	var usedBytes int64
	for _, s := range open {
		usedBytes += s.LastUsedBytes()
	}
	mark, limit, before := d.config.Load().Tuning.PressureMark, d.limit.Load(), d.pressure.level()
	if mark == 0 {
		mark = pressure.DefaultMark
	}
	level := pressure.Mark(mark).Next(before, usedBytes, limit)
	for _, s := range open {
		s.Press(level)
	}
	if level != before {
		d.pressure.now.Store(uint32(level))
	}
	if level > before {
		d.pressure.rises.Add(1)
	}
	if d.notices == nil {
		return
	}
	if isDue, e := d.pressure.isDue(level), (PressureEvent{level, before, usedBytes, limit}); isDue || level != before {
		d.notices.post(func() { d.tellPressure(e, isDue) })
	}
}

// tellPressure logs a level that is due, and a change that is not as a swing, which concerns those alone who look for it.
func (d *Device) tellPressure(e PressureEvent, isDue bool) {
	write, message := d.notices.log.Debug, "vram: pressure swing"
	if isDue {
		write, message = d.notices.log.Info, "vram: pressure"
	}
	write(message, "level", e.Level, "before", e.Before, "usedBytes", e.UsedBytes, "limitBytes", e.LimitBytes)
	if f := d.config.Load().Events.Pressure; f != nil && e.Level != e.Before {
		f(e)
	}
}
