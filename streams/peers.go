package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// Peers are the streams of one device, which may use each other's buffers. The zero value is ready.
// Any number of goroutines may use it.
type Peers struct {
	lines  line.Lines
	slack  core.Allowance
	orders atomic.Uint64           // that were made
	found  atomic.Pointer[listing] // the last since the last tick
	all    atomic.Pointer[[]*peer] // replaced, never changed

	faults Faults

	recordsLaunches, awaitsLaunches bool // see RecordLaunches

	ended    atomic.Bool // the device is being closed
	stranded atomic.Bool // a stream was closed that has not finished and never will
	// reached are the devices whose memory kernels of this one reach; replaced, never changed.
	reached atomic.Pointer[[]*Peers]
}

// End records that the device is being closed: refusals of its streams name it, and not the stream. Call it
// before the streams are closed.
func (p *Peers) End() { p.ended.Store(true) }

// Reach notes that kernels of the device reach the memory of another one.
func (p *Peers) Reach(other *Peers) {
	for {
		old := p.reached.Load()
		now := []*Peers{other}
		if old != nil {
			if slices.Contains(*old, other) {
				return
			}
			now = append(now, *old...)
		}
		if p.reached.CompareAndSwap(old, &now) {
			return
		}
	}
}

// reaches reports whether kernels of the device reach another's memory. Its time grows only with the number of such devices.
func (p *Peers) reaches(other *Peers) bool {
	all := p.reached.Load()
	return all != nil && slices.Contains(*all, other)
}

// peer is the part of a stream that other streams of its device read.
type peer struct {
	id     uint32
	number int // of its line, as buffers record it; or unnumbered
	line   *fence.Timeline
	entry  peerTurn // into the stream's turn
	hands  hands    // streams that have its buffers

	// As of its last turn.
	waits     atomic.Bool  // it has pending memory
	heldBytes atomic.Int64 // lent by the pool
	// As of its last turn that published: see turn.outdate.
	usedBytes atomic.Int64   // core.LiveBytes
	freePages atomic.Uint64  // all, and in the lower half the pages of the longest range
	outdated  atomic.Bool    // there was another turn since
	reporter  *pool.Reporter // of these

	launches *launches // nil unless they are recorded

	watched atomic.Pointer[[]*fence.Timeline] // lines that a goroutine waits for; replaced, never changed
}

// publish stores the figures for the pool after a turn.
func (s *peer) publish(c *core.Core) {
	changed := false
	if used := c.LiveBytes(); used != s.usedBytes.Load() {
		s.usedBytes.Store(used)
		changed = true
	}
	all, longest := c.NoteFree()
	if free := uint64(all)<<32 | uint64(longest); free != s.freePages.Load() {
		s.freePages.Store(free)
		changed = true
	}
	if s.outdated.Load() { // last
		s.outdated.Store(false)
		changed = true
	}
	if changed {
		s.reporter.Changed()
	}
}

// outdate marks the figures as outdated.
func (s *peer) outdate() {
	if !s.outdated.Load() {
		s.outdated.Store(true)
		s.reporter.Changed()
	}
}

// usage returns the stream's memory as it was published last. It is stale if the stream has served an
// allocation since, or if blocks were freed that no turn has drained.
func (s *peer) usage(freed bool) poolcore.Usage {
	free := s.freePages.Load()
	return poolcore.Usage{
		UsedBytes: s.usedBytes.Load(),
		FreePages: uint32(free >> 32), MaxFreePages: uint32(free), //nolint:gosec // two halves
		Stale: freed || s.outdated.Load(),
	}
}

// peerTurn has the calls into a stream's turn that other streams, and waits for fences, make outside every turn.
type peerTurn interface {
	// pendingFences returns the fences of the stream's pending memory. It waits for the current turn.
	pendingFences() ([]fencing, error)
	// fencePassed makes the stream free pending memory whose fences have passed.
	fencePassed()
	// retryDelayed makes the stream serve its delayed claims, or refuse them.
	retryDelayed(passed bool)
	// largestBlocks adds the stream's largest live blocks. It waits for the current turn, if it may.
	largestBlocks(l *core.Largest, wait bool)
}

// unnumbered is the number of a stream that has none.
const unnumbered = -1

// list returns the streams that have not ended.
func (p *Peers) list() []*peer {
	if all := p.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (p *Peers) change(edit func([]*peer) []*peer) {
	for {
		old := p.all.Load()
		var next []*peer
		if old != nil {
			next = append(next, *old...)
		}
		if next = edit(next); p.all.CompareAndSwap(old, &next) {
			return
		}
	}
}

// join adds a stream and gives its line a number, if one is left.
func (p *Peers) join(s *peer) {
	s.number = unnumbered
	if number, ok := p.lines.Add(&s.line.Line); ok {
		s.number = number
	}
	p.change(func(all []*peer) []*peer { return append(all, s) })
}

// leave removes a stream that has ended. Idempotent.
func (p *Peers) leave(s *peer) {
	p.change(func(all []*peer) []*peer {
		return slices.DeleteFunc(all, func(other *peer) bool { return other == s })
	})
}

// withoutEnded removes streams that have ended from a list, which it may change.
func (p *Peers) withoutEnded(clients []poolcore.Client) []poolcore.Client {
	open := map[poolcore.Client]bool{poolcore.Anybody: true}
	for _, s := range p.list() {
		open[poolcore.Client(s.id)] = true
	}
	return slices.DeleteFunc(clients, func(id poolcore.Client) bool { return !open[id] })
}

// anyPending reports whether any stream has pending memory.
func (p *Peers) anyPending() bool {
	return slices.ContainsFunc(p.list(), func(s *peer) bool { return s.waits.Load() })
}

// holders returns the streams that hold memory, with their bytes. A buffer that was handed over counts for the
// stream that has it.
func (p *Peers) holders() (all []pool.Holder) {
	for _, s := range p.list() {
		if held := s.heldBytes.Load(); held > 0 {
			all = append(all, pool.Holder{Stream: s.id, HeldBytes: held})
		}
	}
	return pool.ChargeHolders(all, p.Handed())
}

// watching reports whether a goroutine waits for a fence of pending memory of any stream.
func (p *Peers) watching() bool {
	return slices.ContainsFunc(p.list(), func(s *peer) bool {
		watched := s.watched.Load()
		return watched != nil && len(*watched) > 0
	})
}

// watchBegins records that a line is watched for the stream. False: it is watched already.
func (s *peer) watchBegins(l *fence.Timeline) bool {
	for {
		old := s.watched.Load()
		var next []*fence.Timeline
		if old != nil {
			next = slices.Clone(*old)
		}
		if slices.Contains(next, l) {
			return false
		}
		next = append(next, l)
		if s.watched.CompareAndSwap(old, &next) {
			return true
		}
	}
}

func (s *peer) watchEnds(l *fence.Timeline) {
	for {
		old := s.watched.Load()
		next := slices.DeleteFunc(slices.Clone(*old), func(o *fence.Timeline) bool { return o == l })
		if s.watched.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Handed lists the bytes that open streams have of others. Close of a stream ends its uses: the buffers of a
// closed stream are charged to the stream that the memory belongs to.
func (p *Peers) Handed() (all []pool.Handed) {
	var here map[uint32]bool
	list := p.list()
	for _, s := range list {
		for _, x := range s.hands.list() {
			bytes := x.Bytes()
			if bytes <= 0 {
				continue
			}
			if here == nil {
				here = make(map[uint32]bool, len(list))
				for _, other := range list {
					here[other.id] = !other.line.Finished()
				}
			}
			if here[x.To] {
				all = append(all, pool.Handed{From: s.id, To: x.To, Bytes: bytes})
			}
		}
	}
	return all
}

// Largest returns at most ten live buffers with the most bytes, the largest first. It takes each stream's
// turn, unless the last look was made since the last tick.
func (p *Peers) Largest() []LiveBuffer { return p.largest(nil, true) }

// fill sets a nil list to the largest live buffers.
func (p *Peers) fill(at *[]LiveBuffer, h actors.Host, wait bool) {
	if *at == nil {
		*at = p.largest(h, wait)
	}
}

// largest returns at most ten live buffers with the most bytes, largest first, as of at most a tick ago,
// without the buffers that were freed since. If wait is false it waits for no turn: it leaves out streams in
// whose turn another goroutine is, and returns nil while another goroutine makes a list that waits for turns.
// It must not be called inside a turn.
func (p *Peers) largest(h actors.Host, wait bool) []pool.LiveBuffer {
	l := p.found.Load()
	for l == nil {
		l = &listing{done: make(chan struct{}), waits: wait}
		if p.found.CompareAndSwap(nil, l) {
			p.look(l)
			break
		}
		l = p.found.Load()
	}
	if !wait && l.waits && !l.over() {
		return nil
	}
	actors.Wait(h, l.done)
	return l.buffers()
}

// look makes a list. It ends also where a function of the caller, in a turn's effects, ends the goroutine.
func (p *Peers) look(l *listing) {
	defer close(l.done)
	for _, s := range p.list() {
		s.entry.largestBlocks(&l.found, l.waits)
	}
}

// listed returns the list of the last look, or nil if the look has not ended or has expired.
func (p *Peers) listed() *listing {
	if l := p.found.Load(); l != nil && l.over() {
		return l
	}
	return nil
}

// expire drops the list of the last look.
func (p *Peers) expire() {
	if l := p.found.Load(); l != nil && l.over() {
		p.found.CompareAndSwap(l, nil)
	}
}
