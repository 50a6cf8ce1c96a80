package simulation

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// era is the life of a device: from its opening to its close, as the root package has it.
type era struct {
	inner      *watched       // below the injected failures
	device     cudadrv.Device // above them
	fences     *fence.Events
	pool       *pool.Pool
	limit      atomic.Int64
	level      pressure.Level
	leastLimit int64 // since all was settled last
	mostBytes  int64 // bound of the memory in use: the highest limit since then, or the memory in use then
	streams    []*stream
	peers      streams.Peers
	tenants    [2]*pool.Tenant
	checker    cudadrv.Stream   // touches memory to see that it is mapped
	adopting   []cudadrv.Stream // captured, and not on the list of streams yet
	ahead      bool             // pages were mapped ahead: those do not age before they are used
	closing    bool
	unmapping  bool // all memory goes, live or not
	closed     bool
	closeErr   error
}

// stream is one of the allocator's, with its callers' records.
type stream struct {
	*streams.Control
	era      *era
	adopted  bool
	closing  bool
	closed   bool // Close has returned
	unsynced bool // a failure may have kept Close from synchronising: memory stays
	ended    bool

	allocs, frees uint64
	live          int
	reported      streams.Stats
	shares        bool          // several goroutines use it
	standing      int           // of those, or its only one, that say so
	stood         bool          // some have, since all was settled
	waitsUntil    time.Duration // virtual time before which its later work does not start on the device
	capture       capture
	exclusion     exclusion
	closers       int // that are inside Close
}

func (s *stream) id() uint32 { return s.ID() }

// openEra opens the device, the pool and the first streams, with a driver that works.
func (w *world) openEra(draw uint64) {
	w.heal()
	e := &era{}
	w.era = e
	w.do("open", func() {
		var err error
		if e.device, err = w.faults.Open(0); err != nil {
			w.broken("open", "%w", err)
			return
		}
		e.device = &front{e.device, e.inner}
		e.fences = fence.NewEvents(e.device)
		e.checker, err = w.watch.StreamCreate()
		w.must(err, "open")
		settings := w.shape.settings(draw)
		e.limit.Store(settings.LimitBytes)
		e.leastLimit, e.mostBytes = settings.LimitBytes, settings.LimitBytes
		if e.pool, err = pool.New(pool.Config{
			Device: e.device, Fences: e.fences, Settings: settings, Plain: w.shape.segments, Debug: true, Host: host{w}, Panics: &w.panicLog,
			Modelled: w.watch,
		}); err != nil {
			w.broken("open", "%w", err)
			return
		}
		w.openTenants()
		for i := range 1 + draw%3 {
			w.openStream(mixed(draw, i), false)
		}
	})
}

// openStream is Device.NewStream or AdoptStream.
func (w *world) openStream(draw uint64, adopted bool) {
	e := w.era
	if e.closing {
		return
	}
	handle, err := e.device.StreamCreate()
	if err != nil {
		w.refused(nil, nil, 0, err)
		return
	}
	w.lastID++
	captured := adopted && !e.closing && mixed(draw, 11)%4 == 0
	if captured {
		w.must(w.watch.BeginCapture(handle), "capture")
		e.adopting = append(e.adopting, handle)
	}
	cfg := w.shape.ofStream(draw)
	_, inner, err := streams.Open(streams.Config{
		ID: w.lastID, Pool: e.pool, Device: e.device, Fences: e.fences, Handle: handle, Adopted: adopted,
		Limit: &e.limit, Budget: cfg.Budget, Host: host{w},
		Exact: cfg.Exact, AgeTicks: cfg.AgeTicks, Debug: true, Peers: &e.peers,
		Handler: w.handle, Panics: &w.panicLog,
	})
	if err != nil {
		w.broken("open", "%w", err)
		return
	}
	w.note("stream %d opens", inner.ID())
	e.adopting = slices.DeleteFunc(e.adopting, func(h cudadrv.Stream) bool { return h == handle })
	if e.closing { // it has left the list, and its capture has ended
		inner.End()
		return
	}
	s := &stream{Control: inner, era: e, adopted: adopted}
	if s.shares = mixed(draw, 12)%3 > 0; !s.shares { // callers here know of no goroutines: on those they get deadlocks
		s.Exclusive()
	}
	e.streams, e.inner.owner[handle] = append(e.streams, s), s
	w.report.Streams++
	if captured {
		w.captureNoted(s, false)
	}
}

// closeStream is a caller inside Stream.Close, who destroys an adopted handle after it.
func (w *world) closeStream(s *stream) {
	s.closing = true
	s.closers++
	injected, since := w.disturbances(), w.moment
	err := s.Close()
	s.closers--
	refused, why := w.refusedByCapture(err, since)
	switch {
	case why != "":
		w.broken("answer", "close of stream %d: %w: %s", s.id(), err, why)
	case !refused && s.capture.throughout(since):
		w.broken("answer", "close of stream %d while it is captured returns %v", s.id(), err)
	case refused: // it stays open, unless somebody else was in time
		s.closing = s.closers > 0 || s.closed
		return
	}
	first := !s.closed // of those who closed it
	s.closed = true
	w.note("stream %d has closed: %v", s.id(), err)
	if err != nil {
		s.unsynced = true
		if w.disturbances() == injected && !w.disturbed() && !s.era.closing {
			w.broken("answer", "close of stream %d: %w", s.id(), err)
		}
	}
	if first && s.adopted && !s.era.closed {
		w.must(s.era.inner.StreamDestroy(s.Handle()), "handle")
	}
}

// closeDevice is Device.Close of the root package: the same calls in the same order.
func (w *world) closeDevice() {
	e := w.era
	if e.closing {
		return
	}
	e.closing = true
	w.note("the device is closing")
	for slices.ContainsFunc(e.streams, func(s *stream) bool { return s.capture.announcing > 0 }) {
		w.reach("the close of the device")
	}
	w.endCaptures()
	for _, handle := range e.adopting { // the device would not be synchronised while any stream is captured
		_, err := w.watch.EndCapture(handle)
		w.must(err, "capture")
	}
	disturbed := w.disturbed()
	open := e.streams
	var errs []error
	for _, s := range open {
		s.closing = true
		errs = append(errs, s.Close())
		_ = s.LiveBuffers()
	}
	w.must(w.watch.CtxSynchronize(), "synchronise")
	for _, s := range open {
		s.End()
		s.ended = true
	}
	if n, err := e.pool.Snapshot(context.Background()); err == nil {
		w.report.Waited += n.Waits.Count
	}
	e.unmapping = true
	errs = append(errs, e.pool.Close(), e.fences.Close())
	e.closed, e.closeErr = true, errors.Join(errs...)
	w.note("the device is closed: %v", e.closeErr)
	if e.closeErr != nil && !disturbed && !w.disturbed() && !w.lossy {
		w.broken("answer", "close of the device: %w", e.closeErr)
	}
}

// endEra checks the invariants at the end of a device, when all is idle.
func (w *world) endEra() {
	e := w.era
	used := w.usedBytes()
	if used != 0 && e.closeErr == nil {
		w.broken("leak", "%d bytes are in use after a close without an error", used)
	}
	for _, b := range w.held {
		if err := b.Free(); !errors.Is(err, streams.ErrClosed) {
			w.broken("free", "a free after the end returns %v", err)
		}
	}
	for _, s := range e.streams {
		if err := s.Check(context.Background()); err == nil {
			w.broken("end", "stream %d answers after its end", s.id())
		}
	}
	w.must(w.watch.Audit(), "audit")
	w.heal()
	w.must(e.device.Close(), "close")
	w.ranges, w.uses = ranges{}, uses{}
	w.held, w.stale, w.freedAt, w.sought = w.held[:0], w.stale[:0], w.freedAt[:0], false
	w.lossy = false
	w.report.Devices++
}
