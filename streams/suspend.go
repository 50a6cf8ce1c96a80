package streams

import (
	"slices"
	"sync/atomic"

	poolcore "github.com/go-vram/vram/pool/core"
)

// Exclusive says that one goroutine uses the stream: while it waits for memory, or in a Handover, nobody frees on the stream. Only
// then can a wait be known for a deadlock that the stream takes part in: see the package comment. A stream is otherwise taken to
// have several callers, of which others free while one waits. Say it before the stream is used.
func (s *Stream) Exclusive() {
	if s.opened() {
		s.single.Store(true)
	}
}

// Suspend says that, until resume is called, nobody frees on the stream, because its goroutine waits for what only other
// streams' goroutines do: a lock, the end of a step. by are the streams of the device of which any may end the wait; none: any that
// holds memory or waits for some. A wait for memory is then a deadlock also where some streams that hold memory are suspended,
// if of those that may have them go on none does. That holds for a stream that is not Exclusive, too. Waits at once
// all have to end.
//
// Whoever ends such a wait calls resume, before it does anything else: only then is no deadlock declared meanwhile. A resume that the waiting
// goroutine calls itself comes too late: for a value that one goroutine sends and another receives use a Handover. resume may be
// called from any goroutine; the second call does nothing. Neither call waits.
func (s *Stream) Suspend(by ...*Stream) (resume func()) {
	x := &suspension{}
	if !s.opened() {
		return func() {}
	}
	for _, other := range by {
		if !other.opened() || other.pool != s.pool { // the pool knows nothing of it, and has to take it to go on
			return func() {}
		}
		x.by = append(x.by, other.id)
	}
	s.suspend(x)
	return func() { s.unsuspend(x) }
}

// suspension is one wait of a stream's goroutine for others.
type suspension struct {
	by   []poolcore.Client // any of which may end it; none: see Suspend
	over atomic.Bool
	need uint64 // of a Handover: how much the other side will have done by then
}

// standing is what the pool is told of a stream's goroutines. It is replaced, never changed.
type standing struct {
	number  uint64 // rising
	all     []*suspension
	freedBy []poolcore.Client // who was handed memory of the stream, or has goroutines that were
}

// edit replaces what stands by a copy that change has changed, and returns that.
func (s *Stream) edit(change func(*standing)) *standing {
	for {
		old, next := s.standing.Load(), &standing{number: 1}
		if old != nil {
			*next = standing{old.number + 1, slices.Clone(old.all), old.freedBy}
		}
		if change(next); s.standing.CompareAndSwap(old, next) {
			return next
		}
	}
}

// entrust says that callers of another stream free memory of this one, too, from here on.
func (s *Stream) entrust(to poolcore.Client) {
	if st := s.standing.Load(); st != nil && slices.Contains(st.freedBy, to) {
		return
	}
	s.edit(func(st *standing) { st.freedBy = append(slices.Clone(st.freedBy), to) })
	s.tellSuspended() // also where nothing waits: else the stream's next wait might be refused before the pool knows
}

// suspend begins a suspension, unless it is over already.
func (s *Stream) suspend(x *suspension) {
	s.edit(func(st *standing) {
		if !x.over.Load() { // else unsuspend finds it, or has this edit made anew
			st.all = append(st.all, x)
		}
	})
	if s.pool.Demand() > 0 { // if nothing waits, heed tells once something does
		s.tellSuspended()
	}
}

// unsuspend ends a suspension, also one that has yet to begin: from here on the pool is told of it no more, and what it was told before
// counts no more.
func (s *Stream) unsuspend(x *suspension) {
	if x.over.Swap(true) {
		return
	}
	next := s.edit(func(st *standing) {
		st.all = slices.DeleteFunc(st.all, func(o *suspension) bool { return o == x })
	})
	if s.told.Load() { // the pool may believe it still
		s.pool.Suspend(s.suspended(next))
	}
}

// tellSuspended tells the pool how it stands. Whoever resumes after that was read sees that it is told, and tells the pool
// a higher number.
func (s *Stream) tellSuspended() {
	s.told.Store(true)
	s.pool.Suspend(s.suspended(s.standing.Load()))
}

func (s *Stream) suspended(st *standing) poolcore.Suspend {
	m := poolcore.Suspend{Client: s.id, Number: st.number, FreedBy: st.freedBy}
	for _, x := range st.all {
		if !x.over.Load() {
			m.Waits = append(m.Waits, x.by)
		}
	}
	return m
}
