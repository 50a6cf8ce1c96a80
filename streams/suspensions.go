package streams

import (
	"slices"
	"sync/atomic"

	poolcore "github.com/go-vram/vram/internal/pool/core"
)

// suspension is one wait of a stream's goroutine for others.
type suspension struct {
	by   []poolcore.Client // any of which may end it; none: see Suspend
	over atomic.Bool
	told atomic.Bool // and the pool does not count it any more
	need uint64      // of a Handover: values that the other side has sent or received by then
}

// progress describes a stream's goroutines to the pool. It is replaced, never changed.
type progress struct {
	number  uint64 // rising
	all     []*suspension
	freedBy []poolcore.Client // streams whose goroutines got memory of this one
	since   uint64            // the number with which freedBy grew
	kept    int               // the length of freedBy after ended streams were last removed
}

// progressPool is the pool as suspensions use it.
type progressPool interface {
	Demand() int64
	Suspend(m poolcore.Suspend)
}

// suspensions are the waits of a stream's goroutines, as the pool is told of them. Any number of
// goroutines may use it.
type suspensions struct {
	id        poolcore.Client
	pool      progressPool
	peers     *Peers
	exclusive atomic.Bool // see Stream.Exclusive
	progress  atomic.Pointer[progress]
	reported  atomic.Bool   // the pool has got a report, or is about to
	known     atomic.Uint64 // the highest number of a report that the pool has got
}

// edit replaces the progress by a copy that change has changed, and returns that.
func (s *suspensions) edit(change func(*progress)) *progress {
	for {
		old, next := s.progress.Load(), &progress{number: 1}
		if old != nil {
			*next = progress{old.number + 1, slices.Clone(old.all), old.freedBy, old.since, old.kept}
		}
		if change(next); s.progress.CompareAndSwap(old, next) {
			return next
		}
	}
}

// minFreers is how many freers are noted before ended streams are removed for the first time. Not fewer: that visits all
// streams of the device. Not more: each report has all freers.
const minFreers = 16

// addFreer notes that callers of another stream free memory of this one from now on. It removes ended streams, which the pool
// does not count, whenever the list has doubled. When it returns the pool knows, also where another call notes the same.
func (s *suspensions) addFreer(to poolcore.Client) {
	p := s.progress.Load()
	listed := p != nil && slices.Contains(p.freedBy, to)
	if listed && s.known.Load() >= p.since {
		return
	}
	if listed { // another call has yet to report it
		s.report()
		return
	}
	s.edit(func(p *progress) {
		freers := slices.Clone(p.freedBy)
		if len(freers) >= max(minFreers, 2*p.kept) {
			freers = s.peers.withoutEnded(freers)
			p.kept = len(freers)
		}
		p.freedBy, p.since = append(freers, to), p.number
	})
	s.report() // even if no request waits: else the stream's next wait might be refused first
}

// suspend begins a suspension, unless it is over already.
func (s *suspensions) suspend(x *suspension) {
	s.edit(func(p *progress) {
		if !x.over.Load() { // else resume finds it, or makes this edit repeat
			p.all = append(p.all, x)
		}
	})
	if s.pool.Demand() > 0 { // if nothing waits, a turn reports it once something does
		s.report()
	}
}

// resume ends a suspension, even one that suspend has yet to begin: from now on the pool gets no
// report of it, and earlier reports are void. That holds when it returns, also while another call ends the same suspension.
func (s *suspensions) resume(x *suspension) {
	if x.told.Load() {
		return
	}
	x.over.Store(true)
	next := s.edit(func(p *progress) {
		p.all = slices.DeleteFunc(p.all, func(o *suspension) bool { return o == x })
	})
	if s.reported.Load() { // the pool may still count the suspension
		s.tell(next)
	}
	x.told.Store(true)
}

// report sends the progress to the pool. If a resume comes between the load and the message, its
// own message has a higher number.
func (s *suspensions) report() {
	s.reported.Store(true)
	s.tell(s.progress.Load())
}

func (s *suspensions) tell(p *progress) {
	s.pool.Suspend(s.message(p))
	for known := s.known.Load(); known < p.number && !s.known.CompareAndSwap(known, p.number); known = s.known.Load() {
	}
}

func (s *suspensions) message(p *progress) poolcore.Suspend {
	m := poolcore.Suspend{Client: s.id, Number: p.number, FreedBy: p.freedBy}
	for _, x := range p.all {
		if !x.over.Load() {
			m.Waits = append(m.Waits, x.by)
		}
	}
	return m
}
