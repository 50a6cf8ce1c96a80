package simulation

import (
	"context"
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// wait is a caller whose request waits for other people's frees, or may.
type wait struct {
	stream *stream
	bytes  int64 // 0: how many pages it needs is not known
}

// waited is a caller that asks for a buffer and waits for it.
func (w *world) waited(s *stream, act action) func() {
	if act.c%9 == 5 {
		return w.reserved(s, act)
	}
	want := streams.Request{Bytes: w.shape.size(act.b), Wait: true, Priority: int(act.c >> 8 % 3), Zero: act.c%13 == 0}
	bytes := want.Bytes
	if act.c%11 == 0 {
		want.Align, bytes = 1<<(act.c/16%22), 0
	}
	if act.c%4 == 0 {
		want.Tenant, bytes = w.era.tenants[act.c/4%2], 0
		want.Wait = act.c%3 > 0
	}
	return func() {
		x := w.await(s, bytes)
		if b := w.async(s, want, true); b != nil {
			b.tenant = want.Tenant
		}
		w.awaited(x)
	}
}

// openTenants opens a device's tenants: one with a limit, one with a share.
func (w *world) openTenants() {
	w.era.tenants = [2]*pool.Tenant{
		pool.NewTenant("limited", 1, pool.Quota{LimitBytes: w.shape.limitBytes / 4}),
		pool.NewTenant("borrowing", 2, pool.Quota{ShareBytes: w.shape.limitBytes / 8}),
	}
	w.era.pool.AddTenants(w.era.tenants[:]...)
}

// settledTenants compares tenants' charges with their callers' memory when all is idle.
func (w *world) settledTenants() {
	for _, t := range w.era.tenants {
		var held int64
		for _, b := range w.held {
			if b.tenant == t {
				held += int64(sizeclass.Units(max(b.asked, 1))) << sizeclass.UnitShift //nolint:gosec // of a buffer
			}
		}
		n := t.Stats()
		if n.HeldBytes != held || n.ChargedBytes != held || n.Queued != 0 || n.Quota.LimitBytes > 0 && held > n.Quota.LimitBytes {
			w.broken("tenant", "callers have %d bytes, the tenant says %+v", held, n)
		}
		w.report.Charged += uint64(held) //nolint:gosec // bytes
	}
}

// batchWaited is a caller that asks for several buffers and waits for them.
func (w *world) batchWaited(s *stream, act action) func() {
	sizes := w.batchSizes(act)
	return func() {
		x := w.await(s, 0)
		d := w.newDeadline()
		f := s.AllocBatchForAsync(d, streams.BatchRequest{Bytes: sizes, Wait: true, Priority: int(act.c >> 8 % 3)})
		p := w.expect(f.Cancel, d)
		got, err := f.Await(context.Background())
		w.cease(p)
		w.batchAnswered(s, p, got.Buffers(), sizes, err)
		w.awaited(x)
	}
}

// futureWaited is a caller that frees while its request waits.
func (w *world) futureWaited(s *stream, act action) func() {
	want := streams.Request{Bytes: w.shape.size(act.b), Wait: true}
	return func() {
		f := s.AllocAsync(context.Background(), want)
		p := w.expect(f.Cancel, nil)
		w.reach("between asking and waiting")
		for i := range act.c % 4 {
			if n := uint32(len(w.held)); n > 0 {
				w.free(w.held[mixed(uint64(act.c), uint64(i))%uint64(n)], act.b)
			}
		}
		w.collect(s, f, p, want.Bytes)
	}
}

func (w *world) collect(s *stream, f futures.Future[streams.Buffer], p *pending, bytes int64) {
	x := w.await(s, bytes)
	b, err := f.Await(context.Background())
	w.cease(p)
	w.answered(s, p, b, bytes, 0, err)
	w.awaited(x)
}

// suspended is a caller that says that its stream stands still, until something else has happened.
func (w *world) suspendedFor(s *stream, act action) func() {
	return func() {
		resume := s.standStill()
		for range 1 + act.c%4 {
			w.reach("suspended")
		}
		resume()
	}
}

// standStill declares that nobody frees on the stream until resume is called. The world notes the suspension before the
// allocator learns of it, and until the allocator has ended it: a request may be refused as a deadlock while Suspend is still
// running.
func (s *stream) standStill() (resume func()) {
	s.standing++
	s.stood = true
	end := s.Suspend()
	return func() {
		end()
		s.standing--
	}
}

// handle is the callers' shortage handler: it frees something at times, and answers at random.
func (w *world) handle(*pool.OutOfMemoryError) (retry bool) {
	draw := mixed(uint64(w.step), w.report.Handled)
	w.report.Handled++
	w.reach("the handler")
	if n := uint64(len(w.held)); draw%3 == 0 && n > 0 && w.fault == nil {
		w.free(w.held[draw>>8%n], uint32(draw>>16))
	}
	return draw%5 < 2
}

func (w *world) await(s *stream, bytes int64) *wait {
	x := &wait{s, bytes}
	w.sleepers = append(w.sleepers, x)
	return x
}

func (w *world) awaited(x *wait) {
	w.sleepers = slices.DeleteFunc(w.sleepers, func(o *wait) bool { return o == x })
}

// isWait reports whether a refusal is one that only waiting requests get, and checks that it was possible.
func (w *world) isWait(err error) bool {
	if errors.Is(err, pool.ErrQuota) {
		w.report.OverQuota++
		return true
	}
	var deadlock *pool.DeadlockError
	if !errors.As(err, &deadlock) {
		return false
	}
	w.report.Deadlocks++
	for _, h := range deadlock.Holders {
		i := slices.IndexFunc(w.era.streams, func(s *stream) bool { return s.id() == h.Stream })
		if i >= 0 && w.era.streams[i].shares && !w.era.streams[i].stood {
			w.broken("deadlock", "stream %d holds memory and several use it: %w", h.Stream, err)
		}
	}
	return true
}

// relieve helps waiting requests when nothing else can run: in the end it frees everything. It reports whether anything is
// left to do.
func (w *world) relieve(draw uint64) bool {
	key := mixed(draw, 11)
	switch {
	case len(w.sleepers) == 0:
		return false
	case !w.ticked: // the driver works again, and nobody has said so
		w.ticked, w.waiters = true, len(w.sleepers)
		w.start(key, "ticks", w.tickAll)
		return true
	}
	w.checkWaits(w.waiters)
	w.ticked = false
	switch {
	case draw%5 == 0 && len(w.pending) > 0:
		p := w.pending[draw>>8%uint64(len(w.pending))]
		w.start(key, "cancel", func() { w.cancel(p) })
	case len(w.held) > 0:
		b := w.held[draw>>8%uint64(len(w.held))]
		w.start(key, "free", func() {
			if b.held {
				w.free(b, uint32(draw))
			}
		})
	case w.capturedAny(): // memory freed in a capture is free after it
		w.start(key, "end captures", w.endCaptures)
	case len(w.pending) > 0 && w.strands():
		w.start(key, "cancel", func() { w.cancel(w.pending[0]) })
	default:
		if w.barren++; w.barren < mostBarren { // who was served by the last ticks may have left something where callers have to look
			return w.relieve(draw)
		}
		w.broken("wait", "%d requests wait, the first for %d bytes, though no buffer is live", len(w.sleepers), w.sleepers[0].bytes)
		return false
	}
	w.barren = 0
	return true
}

// mostBarren bounds the ticks of all streams without a live buffer before a waiting request counts as stuck.
const mostBarren = 4

// strands reports whether somebody may have memory that nobody gives back.
func (w *world) strands() bool {
	return w.lossy || w.unfinished() || slices.ContainsFunc(w.era.streams, func(s *stream) bool { return s.closing != s.closed })
}

// tickAll ticks all streams as the background does, in the end also for the callers of adopted streams.
func (w *world) tickAll() {
	w.finishExcluded()
	w.let()
	if len(w.held) == 0 {
		w.returnAll()
	}
	for _, s := range w.era.streams {
		s.Tick()
	}
	w.era.pool.Tick()
}

// look asks the pool whether the driver has taken memory back, and for the streams' memory, and the streams for their live
// buffers, also for the memory of futures that wait for others. It resumes nothing else.
func (w *world) look() {
	if w.lookedAt == w.report.Resumes {
		return
	}
	w.start(keyOf("look"), "look", func() {
		if n, err := w.era.pool.Snapshot(context.Background()); err == nil { // one that is closed loses nothing more
			w.lossy = w.lossy || n.LostBytes > 0
			w.lentBytes = n.LentBytes
		}
		w.pinned = map[cudadrv.Ptr]bool{}
		for _, s := range w.era.streams {
			for _, b := range s.LiveBuffers() {
				w.pin(w.pinned, b)
			}
		}
	})
	for range settleLimit {
		ready := w.runnable()
		if len(ready) == 0 {
			break
		}
		w.resume(ready[0], 1<<30)
		w.report.Resumes++
	}
	w.lookedAt = w.report.Resumes
}

// checkWaits runs when somebody waits and was just tried without success. After a tick no stream then keeps a page without
// live buffers, since all free memory was requested; and nobody waits for less than the unowned memory. With handles of one
// page that is every page without live buffers. ticked counts the waiters when all ticked; 0: nobody has just ticked.
func (w *world) checkWaits(ticked int) {
	e := w.era
	if w.shape.segments || e.closing || w.unfinished() || w.waits() || w.capturedAny() || w.reserving > 0 {
		return
	}
	if w.excludedAny() && (ticked == 0 || w.watch.Drained() > w.watch.Now()) {
		return // it may be refused, or keep waiting, for work that nobody waits for: the end of such work is seen at a tick
	}
	small := false // the need of a small one is unknown
	var largest int64
	for _, x := range w.sleepers {
		if x.bytes == 0 || x.stream.closing {
			return
		}
		small = small || x.bytes <= sizeclass.MaxBytes && spanBytes(x.bytes) > w.shape.pageBytes
		largest = max(largest, x.bytes)
	}
	for _, s := range e.streams {
		if s.adopted || s.closing {
			return // uncovered memory stays, and closed streams are in no list
		}
	}
	for _, t := range w.tasks {
		if t.paused != "waiting" {
			return
		}
	}
	if w.look(); w.lossy || w.fault != nil {
		return
	}
	// If several wait, one may have got memory that others were tried with before, and keeps the rest until it is asked.
	alone := ticked == 1 && len(w.sleepers) == 1
	if kept := w.lentBytes/w.shape.pageBytes - int64(len(w.pinned)); kept > 0 && alone && !w.disturbed() {
		w.broken("kept", "requests wait, and streams keep %d pages that no live buffer lies on", kept)
	}
	if pages := e.limit.Load()/w.shape.pageBytes - int64(len(w.pinned)); w.shape.plain && !small && largest <= pages*w.shape.pageBytes {
		w.broken("wait", "requests wait, the largest for %d bytes, though %d pages are unowned", largest, pages)
	}
}
