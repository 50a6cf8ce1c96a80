package streams

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/batch"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
)

// Config is what a stream is opened with.
type Config struct {
	ID      uint32 // never used twice on one pool
	Pool    *pool.Pool
	Device  cudadrv.Device
	Fences  fence.Source
	Handle  cudadrv.Stream
	Adopted bool // the handle is the caller's: Close does not destroy it
	Limit   *atomic.Int64
	Budget  core.Budget
	Host    actors.Host // nil: the Go scheduler
	Exact   bool        // as in core.Config
	Live    *core.Gauge // likewise
	// Debug holds the books against themselves at every tick. Books that do not balance quarantine the stream.
	Debug bool
	// Watched has the stream keep the places of allocations and frees, and tell the Observer of them.
	Watched  bool
	Observer Observer
	// Handler is asked about a request that the pool refuses for want of memory; true has it served once more. Nil: nobody is.
	Handler func(*pool.OutOfMemoryError) (retry bool)
	Peers   *Peers // of the device; nil: the stream has none
	// Panics is told of every panic that the stream recovers from; nil: only the process is.
	Panics *recovered.Log
	// LongWait is told of each request that has waited for a second, outside every turn. It returns at once. Nil: nobody is.
	LongWait func(LongWait)
}

// Stream is the cache of one CUDA stream. Any number of goroutines may use it.
type Stream struct {
	cache magazine.Cache // first: every allocation begins here

	id       poolcore.Client
	pool     *pool.Pool
	device   cudadrv.Device
	fences   fence.Source
	panics   *recovered.Log
	captures cudadrv.CaptureQueries // nil: the device cannot tell
	handle   cudadrv.Stream
	adopted  bool
	limit    *atomic.Int64 // bytes, of the device
	host     actors.Host   // nil: the Go scheduler
	debug    bool
	handler  func(*pool.OutOfMemoryError) bool // nil: nobody is asked
	witness  *witness                          // nil: nobody is told of buffers
	longWait func(LongWait)                    // nil: nobody is told
	ref      *actors.Ref
	closing  atomic.Bool
	closed   chan struct{}            // Close has returned
	calls    atomic.Int64             // driver calls on the handle that are ordered or under way
	lets     atomic.Bool              // some buffers were charged to tenants
	single   atomic.Bool              // see Exclusive
	due      atomic.Bool              // a woken is on its way
	forbade  atomic.Uint64            // calls on the handle that a capture forbade
	lost     atomic.Uint64            // fences of returns that a capture may have, see Stats
	standing atomic.Pointer[standing] // nil: never suspended
	told     atomic.Bool              // the pool was told once that the stream is suspended
	synced   atomic.Bool              // closed, and the device has finished its work; set in the turn
	spare    atomic.Pointer[effects]  // performed, for the next turn that leaves some
	last     atomic.Pointer[Stats]    // when the actor ended
	failure  atomic.Pointer[error]    // why it ended

	peers     *Peers
	line      *fence.Timeline                   // of the handle, for buffers of others
	number    int                               // of line; or unnumbered
	waits     atomic.Bool                       // something is pending, as the last turn left it
	watched   atomic.Pointer[[]*fence.Timeline] // lines with a goroutine that waits for them; replaced, never changed
	heldBytes atomic.Int64                      // likewise
	usedBytes atomic.Int64                      // as the last tick found it
	pressure  atomic.Uint32                     // the level of the next tick

	// Owned by the turn.
	core      *core.Core
	waiting   map[uint64]claim // for the pool's answer
	parked    []claim          // that wait for other people's frees
	offers    []*offered       // that wait for pages which the pool has granted
	wanted    bool             // requests of the device wait
	said      uint64           // the last number of standing that a turn has had the pool told of
	vain      bool             // the last wait for a fence has brought nothing
	lastToken uint64
	lastFence poolcore.Fence
	draining  bool
	received  uint64 // runs that the pool granted
	sent      uint64 // runs, to the pool
	owed      *asked // waits for the last of those that were under way
	left      left   // adopted streams
	leaving   bool   // a fence is ordered
	hand      hand
	plan      batch.Plan
	runs      []uint32 // of the last Packing
	out       *effects
	hook      func(point) // of tests

	delayed    []delay // claims that wait for a fence
	outlasting bool    // somebody waits for one
	resuming   bool    // and has come back
	vainLooks  int     // misses to rest after the next look in vain
	restLooks  int     // misses that are left of it
}

// Open makes the cache of a stream and starts its actor. It makes no driver call.
func Open(cfg Config) (*Stream, error) {
	s := &Stream{
		id: poolcore.Client(cfg.ID), pool: cfg.Pool, device: cfg.Device, fences: cfg.Fences,
		handle: cfg.Handle, adopted: cfg.Adopted, limit: cfg.Limit, host: cfg.Host, waiting: map[uint64]claim{},
		closed: make(chan struct{}), debug: cfg.Debug, handler: cfg.Handler, panics: cfg.Panics, captures: capturesOf(cfg.Device), peers: cfg.Peers,
		longWait: cfg.LongWait,
	}
	if s.peers == nil {
		s.peers = new(Peers)
	}
	s.line = fence.NewTimeline(cfg.Fences, cfg.Handle, cfg.Adopted, func() error { return s.uncaptured("cuEventRecord") })
	s.line.Panics = cfg.Panics
	s.cache.Extend((*beyondCache)(s))
	cache := &s.cache
	if cfg.Watched {
		cache = new(magazine.Cache) // the turn's: callers find theirs empty
		s.witness = &witness{s, cfg.Observer}
		cache.SetWatcher(s.witness)
	}
	if cfg.Host != nil {
		s.hook = func(p point) { cfg.Host.Reach(p.String()) }
	}
	s.core = core.New(core.Config{
		Base: cfg.Pool.Base(), PageBytes: cfg.Pool.PageBytes(), Places: cfg.Pool.Places(), Budget: cfg.Budget,
		Exact: cfg.Exact, Live: cfg.Live, Cover: cfg.Adopted, Lines: &s.peers.lines, Allowance: &s.peers.slack, Limit: cfg.Limit,
	}, cache, s)
	ref, err := actors.SpawnOn(cfg.Host, cfg.Panics, fmt.Sprintf("vram-stream-%d", cfg.ID), s)
	if err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	s.ref = ref
	s.peers.join(s)
	s.pool.Join(s.id, s)
	return s, nil
}

// Alloc returns a buffer of that many bytes for use on the stream. It does not wait for other people's
// frees, but the driver may have to map memory first. A size of 0 gives a valid buffer that holds
// nothing. Errors: ErrNegative, *SizeError, *pool.OutOfMemoryError, ErrClosed, ErrQuarantined, and what
// the driver said.
func (s *Stream) Alloc(bytes int64) (b Buffer, err error) { // so written because this is short enough to be inlined
	if s == nil { // in place of the check that every access makes
		return b, ErrNotOpen
	}
	b.slot, b.word, b.bytes, err = s.cache.Alloc(bytes)
	return b, err
}

// beyondCache is a stream as the one who serves what the magazines do not.
type beyondCache Stream

// AllocBeyond implements magazine.AllocBeyond: it enters the turn, or else sends a request.
func (c *beyondCache) AllocBeyond(bytes int64) (*magazine.Slot, uint64, int64, error) {
	s := (*Stream)(c)
	if uint64(bytes) > uint64(s.limit.Load()) || s.closing.Load() { //nolint:gosec // a negative one is too large
		if err := s.check(bytes); err != nil {
			return nil, 0, 0, err
		}
	}
	if s.cache.HasFreed() {
		if slot, word := s.cache.TakeBack(bytes); slot != nil {
			return slot, word, bytes, nil
		}
	}
	if s.ref.TryEnter() {
		slot, left := s.turn(bytes, 0, firstSearch)
		if left != nil {
			slot = s.perform(slot, left, bytes, 0)
		}
		if slot != nil {
			word := slot.Word()
			if s.witness != nil { // the one way that is hot
				s.witness.hand(Buffer{slot, word, bytes}, "", s.here())
			}
			return slot, word, bytes, nil
		}
	}
	r := &request{Request: Request{Bytes: bytes}, hint: magazine.Hint(), begun: s.beginning(), from: s.here()}
	r.promise.On(s.host)
	s.ref.Call(r)
	b, err := r.promise.Future().Await(context.Background())
	return b.slot, b.word, b.bytes, err
}

func (s *Stream) check(bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("%w: %d bytes", ErrNegative, bytes)
	}
	if limit := s.limit.Load(); bytes > limit {
		return &SizeError{bytes, limit}
	}
	if s.closing.Load() {
		return ErrClosed
	}
	return nil
}

// allocInline runs the core inside the turn that the caller has entered, and leaves it. ok is false when
// the pool must help, or the turn panicked: the request that follows then gets the answer.
func (s *Stream) allocInline(bytes, align int64) (b Buffer, ok bool) {
	slot, left := s.turn(bytes, align, firstSearch)
	if left != nil {
		slot = s.perform(slot, left, bytes, align)
	}
	if slot == nil {
		return Buffer{}, false
	}
	return Buffer{slot, slot.Word(), bytes}, true
}

// perform performs what the turn of an allocation left, and searches once more if it left a look at fences.
func (s *Stream) perform(slot *magazine.Slot, left actors.Effects, bytes, align int64) *magazine.Slot {
	for next := firstSearch; ; {
		if slot != nil {
			next = firstSearch
		} else {
			next = searchAfter(next, left)
		}
		s.ref.Perform(left)
		if next == firstSearch || !s.ref.TryEnter() {
			return slot
		}
		if slot, left = s.turn(bytes, align, next); left == nil {
			return slot
		}
	}
}

// turn searches once.
func (s *Stream) turn(bytes, align int64, before searching) (slot *magazine.Slot, left actors.Effects) {
	through := false
	defer func() { // cheaper than Exit on the way without a panic: no recover
		if !through {
			slot = nil
			left, _ = s.ref.Fault(recover())
		}
	}()
	if !s.draining {
		if align <= sizeclass.UnitBytes { // search, without the call
			slot, _ = s.core.Alloc(max(bytes, 1), magazine.Hint())
		} else {
			slot, _ = s.core.AllocAligned(max(bytes, 1), align, false)
		}
		if slot == nil || before != firstSearch {
			s.seek(before, slot != nil, bytes)
		}
		if slot != nil {
			s.core.ServedHere()
			if s.core.Over() {
				s.hand.slot = slot
				s.shed(forCaller)
				s.hand.slot = nil
			}
		}
	}
	if s.leaves() {
		left = s.Detach()
	}
	s.ref.End()
	through = true
	return slot, left
}

// search is one search of the core: a slot, or the pages that are missing.
func (s *Stream) search(bytes, align int64, hint int, wide bool) (*magazine.Slot, uint32) {
	if align <= sizeclass.UnitBytes {
		return s.core.Alloc(max(bytes, 1), hint)
	}
	return s.core.AllocAligned(max(bytes, 1), align, wide)
}

// alone is the last search before a request is refused: for a block of its own, where the span that it would share with
// others of its class does not fit anywhere.
func (s *Stream) alone(bytes, align int64) *magazine.Slot {
	slot, _ := s.core.AllocAligned(max(bytes, 1), max(align, sizeclass.UnitBytes), false)
	return slot
}

// Press says how close the device is to its limit, from the next tick on. It takes no turn.
func (s *Stream) Press(level pressure.Level) {
	if s == nil {
		return
	}
	s.pressure.Store(uint32(level))
}

// Tick lets the stream do what is due, if nobody is in its turn.
func (s *Stream) Tick() {
	if !s.opened() {
		return
	}
	if !s.ref.TryEnter() {
		return
	}
	var left actors.Effects
	waits := s.tick(&left)
	if left != nil {
		s.ref.Perform(left)
	}
	for _, w := range waits {
		s.longWait(w)
	}
}

func (s *Stream) tick(left *actors.Effects) (waits []LongWait) {
	defer s.ref.Exit(left, nil)
	waits = s.longWaits()
	s.core.SetPressure(pressure.Level(s.pressure.Load()))
	s.core.Tick()
	s.vain = false
	s.usedBytes.Store(s.core.UsedBytes())
	s.core.NudgeLanes()
	s.audit()
	s.background()
	if s.draining {
		s.giveUp()
		return waits
	}
	s.shed(inBackground)
	s.decay()
	return waits
}

// Close ends the stream's service: magazines are closed, free memory goes back to the pool once the work
// submitted so far has finished, and, unless the handle was adopted, the CUDA stream is destroyed. It
// waits for the stream. Buffers that live stay valid and may be freed later; work that still uses them
// must have finished by then. Requests that wait fail with ErrClosed. Idempotent: later calls wait for the
// first and return nil. A stream that is being captured cannot be waited for: it stays open then, and the error is a
// *CaptureError.
func (s *Stream) Close() error {
	if !s.opened() {
		return ErrNotOpen
	}
	if !s.closing.Load() {
		if err := s.uncaptured("cuStreamSynchronize"); err != nil {
			return err
		}
	}
	if !s.closing.CompareAndSwap(false, true) {
		actors.Wait(s.host, s.closed)
		return nil
	}
	defer close(s.closed)
	_, closeErr := s.order(context.Background(), &order{verb: orderClose})
	s.line.Shut()
	s.awaitCalls() // what is submitted behind the synchronisation would be covered by nothing
	syncErr := s.guard(func() error { return s.device.StreamSynchronize(s.handle) })
	var trimErr error
	if syncErr == nil { // else nobody knows what the device still touches: the memory stays
		s.line.Finish()
		s.peers.lines.Remove(&s.line.Line)
		_, trimErr = s.order(context.Background(), &order{verb: orderTrim})
	}
	s.pool.Leave(s.id, syncErr == nil)
	s.awaitCalls() // a call on a destroyed stream is undefined
	if s.adopted {
		return errors.Join(closeErr, syncErr, trimErr)
	}
	destroyErr := s.guard(func() error { return s.device.StreamDestroy(s.handle) })
	return errors.Join(closeErr, syncErr, trimErr, destroyErr)
}

// awaitCalls waits for the driver calls on the handle that are ordered: whoever owes one is at it.
func (s *Stream) awaitCalls() {
	for s.calls.Load() > 0 || !s.line.Idle() {
		actors.Yield(s.host)
	}
}

// End makes every later free say ErrClosed and ends the actor: the memory is about to go.
func (s *Stream) End() {
	if !s.opened() {
		return
	}
	if s.closing.CompareAndSwap(false, true) {
		close(s.closed)
	}
	_, _ = s.order(context.Background(), &order{verb: orderEnd}) // an actor that has ended already is no worse
	s.ref.Stop(ErrClosed)
	actors.Wait(s.host, s.ref.Done())
	s.core.End() // for the buffers of one that was stopped before
	s.line.Shut()
	s.line.Drop()
}

// Stats reads the stream's books. It waits for the turn at hand and for nothing else.
func (s *Stream) Stats(ctx context.Context) (Stats, error) {
	return s.order(ctx, &order{verb: orderStats})
}

// LastStats is what the books said when the stream ended; zero before.
func (s *Stream) LastStats() Stats {
	if !s.opened() {
		return Stats{}
	}
	if last := s.last.Load(); last != nil {
		return *last
	}
	return Stats{Stream: uint32(s.id)}
}

// ResetPeak restarts the peak of live bytes at what lives now: what was freed until then has come home.
func (s *Stream) ResetPeak(ctx context.Context) error {
	_, err := s.order(ctx, &order{verb: orderResetPeak})
	return err
}

// LiveBuffers lists the buffers that live, in no order. It is meant for a closed stream: with others at
// work the list is one of many that were true.
func (s *Stream) LiveBuffers() []LiveBuffer {
	o := &order{verb: orderList}
	if _, err := s.order(context.Background(), o); err != nil {
		return nil
	}
	return o.list
}

func (s *Stream) order(ctx context.Context, o *order) (Stats, error) {
	if err := s.callable(ctx); err != nil {
		return Stats{}, err
	}
	o.promise.On(s.host)
	s.ref.Call(o)
	return o.promise.Future().Await(ctx)
}

// Wake implements magazine.Waker. It may be called inside a turn, which puts back what a batch had got.
func (s *Stream) Wake() {
	if !s.due.Swap(true) {
		s.ref.Tell(&woken{})
	}
}

// Granted implements pool.Client.
func (s *Stream) Granted(token uint64, runs []poolcore.Run) {
	s.ref.Call(&granted{stream: s, token: token, runs: runs})
}

// Denied implements pool.Client.
func (s *Stream) Denied(token uint64, err error) { s.ref.Tell(&denied{token: token, err: err}) }

// Asked implements pool.Client.
func (s *Stream) Asked(runsGranted uint64) {
	s.ref.Call(&asked{stream: s, runsGranted: runsGranted})
}
