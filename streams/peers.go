package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// Peers are the streams of one device, which may use each other's buffers. The zero value is ready.
// Any number of goroutines may use it.
type Peers struct {
	lines line.Lines
	slack core.Allowance
	found atomic.Pointer[listing] // the last since the last tick
	all   atomic.Pointer[[]*peer] // replaced, never changed

	ended    atomic.Bool  // the device is being closed
	stranded atomic.Bool  // a stream was closed that has not finished and never will
	reached  atomic.Value // a *reach; nil: kernels of this device reach the memory of no other one
}

// End says that the device is being closed: refusals of its streams name it, and not the stream. It comes before the streams are closed.
func (p *Peers) End() { p.ended.Store(true) }

// reach is the devices whose memory kernels of one reach. It does not change.
type reach struct{ all []*Peers }

// Reach notes that kernels of the device reach the memory of another one.
func (p *Peers) Reach(other *Peers) {
	for !p.reaches(other) {
		old, _ := p.reached.Load().(*reach)
		now := &reach{[]*Peers{other}}
		if old == nil && p.reached.CompareAndSwap(nil, now) {
			return
		}
		if old != nil {
			now.all = append(now.all, old.all...)
			p.reached.CompareAndSwap(old, now)
		}
	}
}

// reaches takes a time that grows with the number of such devices alone.
func (p *Peers) reaches(other *Peers) bool {
	r, ok := p.reached.Load().(*reach)
	return ok && slices.Contains(r.all, other)
}

// peer is the part of a stream that other streams of its device read.
type peer struct {
	id     uint32
	number int // of its line, as buffers record it; or unnumbered
	line   *fence.Timeline
	turn   peerTurn
	hands  hands // streams that have its buffers

	// As of its last turn.
	waits     atomic.Bool  // it has pending memory
	heldBytes atomic.Int64 // lent by the pool
	// As of its last turn that published: see turn.outdate.
	usedBytes atomic.Int64   // core.LiveBytes
	freePages atomic.Uint64  // all, and those of the longest range in the lower half
	outdated  atomic.Bool    // there was another turn since
	reporter  *pool.Reporter // of these

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

// outdate marks the figures as those of an earlier turn.
func (s *peer) outdate() {
	if !s.outdated.Load() {
		s.outdated.Store(true)
		s.reporter.Changed()
	}
}

// usage is the stream's memory as it was published last. It is stale if the stream has served an
// allocation since, or freed: if blocks were freed that no turn has taken home.
func (s *peer) usage(freed bool) poolcore.Usage {
	free := s.freePages.Load()
	return poolcore.Usage{
		UsedBytes: s.usedBytes.Load(),
		FreePages: uint32(free >> 32), MaxFreePages: uint32(free), //nolint:gosec // two halves
		Stale: freed || s.outdated.Load(),
	}
}

// peerTurn has the calls that waits for fences make on a stream, outside every turn.
type peerTurn interface {
	// pendingFences are the fences of the stream's pending memory. It waits for the current turn.
	pendingFences() ([]fencing, error)
	// fencePassed makes the stream take home freed memory.
	fencePassed()
	// retryDelayed makes the stream serve its delayed claims, or refuse them.
	retryDelayed(passed bool)
	// largestBlocks adds the stream's largest live blocks. It waits for the current turn, if it may.
	largestBlocks(l *core.Largest, wait bool)
}

// unnumbered is the number of a stream that has none.
const unnumbered = -1

// list are the streams that have not ended.
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

// holders are the streams that hold memory, with their bytes. Buffers that were handed over count for the
// stream that has them.
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

// watchBegins notes that a line is watched for the stream. False: it is watched already.
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
