package streams

import (
	"maps"
	"slices"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
)

var (
	_ actors.Behavior = (*Stream)(nil)
	_ pool.Client     = (*Stream)(nil)
	_ magazine.Waker  = (*Stream)(nil)
)

// Receive implements actors.Behavior.
func (s *Stream) Receive(m actors.Message) {
	received, ok := m.(message)
	if !ok {
		return // nothing else is ever posted
	}
	switch m := received.(type) {
	case claim:
		m.serve(s)
	case *granted:
		s.granted(m)
	case *denied:
		s.denied(m)
	case *asked:
		s.asked(m)
	case *marked:
		s.marked(m)
	case *order:
		s.obey(m)
	case *looked:
		s.passed()
	case *outlasted:
		s.resume(m)
	case *woken:
		s.due.Store(false) // first: what comes home from here on wakes again
		s.core.DrainAll()
		s.giveUp()
	case *awaited:
		s.tellBlocked(m)
	case *withdrawn:
		s.withdraw(m)
	case *demanded:
		s.heed()
	case *offered:
		s.offered(m)
	case *consulted:
		s.heard(m)
	case *visit:
		m.promise.Complete(s.attend(m.lane, m.what, m.bytes))
	}
}

// asked answers the pool's wish at once, or when what the pool had granted before has arrived: else the
// pool would refuse others for memory that is on its way to a stream which does not need it. Where others want memory and
// fences keep some, it looks at these before it answers.
func (s *Stream) asked(a *asked) {
	s.heed()
	if s.received < a.runsGranted {
		s.owed = a
		return
	}
	if others := len(s.waiting) == 0; others && !a.looked && !s.draining && s.core.PendingBytes() > 0 {
		a.looked, s.owed = true, nil
		s.core.Press()
		s.takeOwn()
		s.eachLook()
		s.effects().wish = a
		return
	}
	s.surrender()
	s.owed = nil // now: if the turn panics before, it is still owed
}

// surrender answers the pool's wish. Once Close has begun no fence may be recorded any more, since the handle goes away: what the stream has then waits for the
// device to be synchronised. What no fence of an adopted stream's callers covers stays, and is named. Lanes give theirs
// back at their next calls.
func (s *Stream) surrender() {
	s.core.AskLanes()
	r := poolcore.Return{Answer: true, Final: s.core.Idle()}
	covered := s.covered(inBackground)
	var runs []core.Run
	if !s.draining || s.synced.Load() {
		runs = s.core.Release(^uint32(0), covered)
		if covered {
			s.core.WantFence()
			r.UncoveredBytes = s.core.UncoveredBytes()
		}
	}
	r.Stirred, r.PendingBytes, r.LetsOnly = s.core.TakeCame(), s.core.PendingBytes(), s.letsOnly()
	s.giveBack(runs, r, covered)
}

// giveUp returns what came home to a closed stream. Before the device has finished the stream's work
// there is no fence to return it with, so it waits for Close to have synchronised.
func (s *Stream) giveUp() {
	if s.synced.Load() {
		s.giveBack(s.core.Return(), poolcore.Return{}, false)
		s.endIfEmpty()
	}
}

// endIfEmpty ends the actor of a closed stream that holds nothing any more.
func (s *Stream) endIfEmpty() {
	if s.core.HeldBytes() == 0 {
		s.remember()
		s.effects().end = true
	}
}

// granted adds runs, and answers the request that they were for.
func (s *Stream) granted(g *granted) {
	if !g.kept {
		s.received += uint64(len(g.runs))
	}
	for len(g.runs) > 0 {
		run := g.runs[0]
		g.runs = g.runs[1:] // first: what is in the books is not Fail's to give back
		s.core.Grant(run)
	}
	s.heed()
	s.giveUp()
	r := s.take(g.token)
	if r == nil {
		r = s.unpark(g.token)
	}
	if r != nil {
		r.serve(s)
		s.core.NoteSpare()
	} else if g.token != 0 { // nobody wants it any more
		s.core.Note()
	} else if !g.kept && !s.draining { // what was kept stays until the next turn: the driver refuses just now
		s.shed(inBackground)
	}
	if s.owed != nil {
		s.asked(s.owed)
	}
	s.reoffer()
}

func (s *Stream) denied(d *denied) {
	if r := s.take(d.token); r != nil {
		s.core.Press()
		r.refuse(s, d.err, false)
	} else if r := s.unpark(d.token); r != nil { // it has waited, and that is the end
		s.waited(r.patient())
		r.drop(s)
		r.Fail(s.shortage(r, d.err))
	}
}

// wait sends a claim to the pool and keeps it until the answer comes.
func (s *Stream) wait(r claim, pages uint32, more []uint32) (token uint64) {
	token = s.hold(r)
	m := poolcore.Refill{
		Client: s.id, Token: token, Pages: pages, More: more, Most: s.core.MostPages(pages),
		LiveBytes: s.core.LiveBytes(), OpenBytes: s.core.OpenBytes(), Bytes: r.missingBytes(), Lanes: s.lanes(),
		RequestedBytes: r.requestedBytes(), BlockBytes: r.blockBytes(),
	}
	p := r.state()
	m.Place.Account, m.Place.ChargedBytes = s.account(p), p.cost
	if p.wait {
		m.Patience, m.Place.Priority = poolcore.Patient, p.priority
	}
	if p.draws != nil {
		m.From = p.draws.ID()
	}
	s.effects().refill(m)
	return token
}

// hold keeps a claim until somebody takes it by its token, and counts what it wants and what it has got.
func (s *Stream) hold(c claim) (token uint64) {
	s.lastToken++
	s.waiting[s.lastToken] = c
	s.core.Wait(c.missingBytes())
	s.core.AddParts(c.partBytes())
	return s.lastToken
}

func (s *Stream) take(token uint64) claim {
	r := s.waiting[token]
	if r != nil {
		delete(s.waiting, token)
		s.core.Wait(-r.missingBytes())
		s.core.AddParts(-r.partBytes())
	}
	return r
}

// failWaiting answers all that wait for the pool.
func (s *Stream) failWaiting(cause error) {
	for _, token := range slices.Sorted(maps.Keys(s.waiting)) { // the same history fails them in the same order
		r := s.take(token)
		r.drop(s)
		r.Fail(cause)
	}
	for len(s.parked) > 0 {
		r := s.parked[0]
		s.effects().withdrawals = append(s.effects().withdrawals, r.patient().token)
		s.unpark(r.patient().token)
		s.waited(r.patient())
		r.Fail(cause)
	}
	for _, o := range s.takeOffers() {
		o.Fail(cause)
	}
}

func (s *Stream) obey(o *order) {
	switch o.verb {
	case orderStats:
	case orderResetPeak:
		s.core.ResetPeak()
	case orderList:
		s.core.Live(func(p cudadrv.Ptr, bytes int64, slot *magazine.Slot) {
			o.list = append(o.list, LiveBuffer{uint32(s.id), p, bytes, slot.Tag(), slot.Allocated()})
		})
	case orderSettings:
		s.core.Drain() // what was freed since the last turn counts against the new budget
		s.core.SetSettings(o.settings)
		s.shed(inBackground)
	case orderCoalesce:
		s.core.Coalesce()
	case orderReturn:
		if s.draining {
			o.promise.Complete(Stats{}, ErrClosed)
			return
		}
		s.core.AskLanes()
		s.giveBack(s.core.Release(^uint32(0), false), poolcore.Return{Final: true}, false)
	case orderClose:
		s.draining = true
		s.failWaiting(ErrClosed)
		s.core.Close()
	case orderCheck:
		if err := s.core.Check(); err != nil {
			o.promise.Complete(Stats{}, err)
			return
		}
	case orderLookup:
		o.found = s.find(o.address)
	case orderFences:
		s.core.Drain()
		s.core.EachLine(func(l *line.Line, number uint64) {
			o.fences = append(o.fences, fencing{line: timeline(l), number: number})
		})
	case orderPassed:
		s.passed()
	case orderTrim: // the device has finished the stream's work: no fence is needed any more
		s.synced.Store(true)
		s.giveUp()
	case orderEnd:
		s.draining = true
		s.failWaiting(ErrClosed)
		s.core.End()
		s.remember()
	}
	if o.verb.gives() {
		e := s.effects()
		e.home = append(e.home, reply{o, s.stats()})
		return
	}
	o.promise.Complete(s.stats(), nil)
}

// shed gives back what the stream keeps beyond its budget. A closed stream has other rules, see giveUp: its handle
// may be gone, and with it the fence for a Return. A caller leaves a fence, if one is wanted.
func (s *Stream) shed(caller bool) {
	if !s.core.Over() || s.draining {
		return
	}
	if caller && s.core.FenceWanted() && !s.leaving {
		s.leave()
	}
	if s.wanted { // the pool asks for all that there is, and gives home what it does not need
		return
	}
	covered := s.covered(caller)
	s.giveBack(s.core.Excess(covered), poolcore.Return{}, covered)
}

// decay gives back a part of what an idle stream keeps.
func (s *Stream) decay() {
	if s.core.Idle() {
		covered := s.covered(inBackground)
		s.giveBack(s.core.Decay(covered), poolcore.Return{Final: true}, covered)
	}
}

// giveBack leaves a Return as an effect, if there is something to say. covered runs go with the fence that was left.
func (s *Stream) giveBack(runs []core.Run, r poolcore.Return, covered bool) {
	if len(runs) == 0 && !r.Answer {
		return
	}
	s.hand.runs = runs
	s.reach(beforeReturn)
	r.Runs = append([]poolcore.Run(nil), runs...) // runs are the core's
	s.returned(r, covered)
	s.hand.runs = nil
}

// returned numbers the fence of a Return. The fence is recorded when the effect is performed: after the
// pages were taken. A closed stream needs none once its work has finished, covered pages have theirs.
func (s *Stream) returned(r poolcore.Return, covered bool) {
	g := giving{Return: r}
	g.number(s, covered)
	s.effects().returns = append(s.effects().returns, g)
}

// number completes a Return.
func (r *giving) number(s *Stream, covered bool) {
	r.Client, r.LiveBytes, r.OpenBytes, r.Lanes = s.id, s.core.LiveBytes(), s.core.OpenBytes(), s.lanes()
	switch {
	case len(r.Runs) == 0 || s.synced.Load():
	case covered:
		r.Fence, r.covered = s.left.fence, true
		if !s.left.sent {
			r.mark, s.left.sent = s.left.mark, true
		}
	default:
		s.lastFence++
		r.Fence = s.lastFence
		s.calls.Add(1)
	}
	s.sent += uint64(len(r.Runs))
	r.Sent = s.sent
}

func (s *Stream) effects() *effects {
	if s.out == nil {
		if s.out = s.spare.Swap(nil); s.out == nil {
			s.out = &effects{stream: s}
		}
	}
	return s.out
}

// leaves reports whether there is anything for Detach to do.
func (s *Stream) leaves() bool { return s.out != nil || s.wanted || s.core.Waits() || s.waits.Load() }

// Detach implements actors.Behavior.
func (s *Stream) Detach() actors.Effects {
	s.publish()
	if s.wanted {
		s.report()
	}
	if s.out == nil {
		return nil
	}
	out := s.out
	s.out = nil
	return out
}
