package simulation

import (
	"context"

	"github.com/go-vram/vram/internal/pressure"
)

func (w *world) canceling(_ *stream, act action) func() {
	n := uint32(len(w.pending))
	if n == 0 {
		return nil
	}
	p := w.pending[act.a%n]
	return func() { w.cancel(p) }
}

func (w *world) expiring(_ *stream, act action) func() {
	n := uint32(len(w.pending))
	if n == 0 {
		return nil
	}
	p := w.pending[act.a%n]
	p.expired = true
	return p.ctx.expire
}

func (w *world) tick(s *stream, act action) func() {
	if act.b%4 > 0 {
		return s.Tick
	}
	return func() { // for a while nobody does anything
		for range 20 {
			s.Tick()
		}
	}
}

func (w *world) tickPool(*stream, action) func() { return w.era.pool.Tick }

func (w *world) trim(_ *stream, act action) func() {
	e := w.era
	return func() {
		_, err := e.pool.Trim(context.Background(), int64(act.b)*w.shape.pageBytes/4%(w.shape.limitBytes+1))
		w.kept(err)
	}
}

func (w *world) warm(_ *stream, act action) func() {
	e := w.era
	runs := make([]uint32, 1+act.b%3)
	for i := range runs {
		runs[i] = 1 + (act.c>>(3*i))%6
	}
	return func() {
		e.ahead = true
		_, _ = e.pool.Warm(context.Background(), runs) // there may be no room
	}
}

// press reports how close the device is to its limit: by the memory that streams used at their last ticks or, in one of two
// cases, at random, so that all levels occur.
func (w *world) press(_ *stream, act action) func() {
	e := w.era
	return func() {
		level := pressure.Level(act.b % pressure.LevelCount) //nolint:gosec // one of three
		if act.c%2 == 0 {
			var usedBytes int64
			for _, s := range e.streams {
				usedBytes += s.LastUsedBytes()
			}
			level = pressure.Mark(pressure.DefaultMark).Next(e.level, usedBytes, e.limit.Load())
		}
		e.level = level
		for _, s := range e.streams {
			s.Press(level)
		}
	}
}

func (w *world) setBudget(s *stream, act action) func() {
	return func() { w.kept(s.Reconfigure(context.Background(), w.shape.ofStream(uint64(act.b)))) }
}

// reconfigure replaces the settings of the pool, as a device does.
func (w *world) reconfigure(_ *stream, act action) func() {
	e := w.era
	settings := w.shape.settings(uint64(act.b))
	settings.LimitBytes = w.shape.totalBytes / int64(1+act.c%3)
	if settings.LimitBytes < w.shape.pageBytes {
		return nil
	}
	return func() {
		e.leastLimit = min(e.leastLimit, settings.LimitBytes)
		e.mostBytes = max(e.mostBytes, settings.LimitBytes)
		e.limit.Store(settings.LimitBytes)
		w.kept(e.pool.Reconfigure(context.Background(), settings))
	}
}

func (w *world) stats(s *stream, _ action) func() {
	return func() { w.kept(w.lookAt(s)) }
}

func (w *world) check(s *stream, _ action) func() {
	return func() {
		w.checkStream(s)
		w.kept(w.lookAt(s))
		w.checkPool()
	}
}

func (w *world) streamOpened(_ *stream, act action) func() { return w.opener(act, false) }

func (w *world) streamAdopted(_ *stream, act action) func() { return w.opener(act, true) }

func (w *world) opener(act action, adopted bool) func() {
	if w.openCount() >= 5 {
		return nil
	}
	return func() { w.openStream(uint64(act.b), adopted) }
}

func (w *world) streamClosed(s *stream, _ action) func() {
	return func() { w.closeStream(s) }
}
