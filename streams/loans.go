package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
)

// For whom a turn does something. On an adopted stream a fence is recorded for callers only.
const (
	forCaller    = true
	inBackground = false
)

// loans are the books with what the pool has lent, and how it goes back.
type loans struct {
	books
	sentRuns  uint64         // to the pool
	lastFence poolcore.Fence // numbers them
	left      leftFence      // on adopted streams
	ordered   bool           // a fence to be left is ordered
	last      atomic.Pointer[Stats]
}

// leftFence is the last fence that a caller's turn has left for the background to give pages back with.
type leftFence struct {
	fence poolcore.Fence
	mark  fence.Mark
	sent  bool // the mark is the pool's
}

// coverage reports whether only pages that a fence of its callers covers may leave the stream. An adopted handle may be destroyed,
// or captured into a graph, by a program that does not know of this turn; while one of its requests waits it does.
func (l *loans) coverage(caller bool) bool {
	return l.handle.adopted && !caller && l.claims.Len() == 0 && !l.handle.synced.Load()
}

// leave orders a fence over all that has come home.
func (l *loans) leave() {
	l.core.Seal()
	l.ordered = true
	l.lastFence++
	l.handle.order()
	l.effects().leave = l.lastFence
}

// recorded notes the fence; the one before it is given up if nothing was returned with it.
func (l *loans) recorded(m *recorded) {
	l.ordered = false
	if m.failed {
		l.core.Unsealed()
		return
	}
	l.core.Covered()
	l.core.Note()
	l.dropLeft()
	l.left = leftFence{fence: m.fence, mark: m.mark}
}

// dropLeft gives the last fence up.
func (l *loans) dropLeft() {
	if !l.left.sent && !l.left.mark.Zero() {
		l.effects().discards.Push(l.left.mark)
	}
	l.left = leftFence{}
}

// shed gives back what the stream keeps beyond its budget. A closed stream has other rules, see giveUp: its handle may be gone, and
// with it the fence for a Return. A caller leaves a fence, if one is wanted.
func (l *loans) shed(caller bool) {
	if !l.core.Over() || l.draining {
		return
	}
	if caller && l.core.FenceWanted() && !l.ordered {
		l.leave()
	}
	if l.wanted { // the pool asks for all that there is, and gives home what it does not need
		return
	}
	covered := l.coverage(caller)
	l.giveBack(l.core.Excess(covered), poolcore.Return{}, covered)
}

// decay gives back a part of what an idle stream keeps.
func (l *loans) decay() {
	if l.core.Idle() {
		covered := l.coverage(inBackground)
		l.giveBack(l.core.Decay(covered), poolcore.Return{Final: true}, covered)
	}
}

// giveAll gives back all that is free and may leave.
func (l *loans) giveAll(covered bool) {
	l.giveBack(l.core.Release(^uint32(0), covered), poolcore.Return{}, covered)
}

// answerReclaim answers the pool's reclaim request. Once Close has begun no fence may be recorded any more, since the handle goes
// away: what the stream has then waits for the device to be synchronised. What no fence of an adopted stream's callers covers stays,
// and is named. Lanes give theirs back at their next calls.
func (l *loans) answerReclaim() {
	l.core.AskLanes()
	m := poolcore.Return{Answer: true, Final: l.core.Idle()}
	covered := l.coverage(inBackground)
	var runs []core.Run
	if !l.draining || l.handle.synced.Load() {
		runs = l.core.Release(^uint32(0), covered)
		if covered {
			l.core.WantFence()
			m.UncoveredBytes = l.core.UncoveredBytes()
		}
	}
	m.Stirred, m.PendingBytes, m.LetsOnly = l.core.TakeCame(), l.core.PendingBytes(), l.tenantsOnly()
	l.giveBack(runs, m, covered)
}

// reportCame tells the pool that something has come home.
func (l *loans) reportCame() {
	if l.core.TakeCame() {
		l.effects().returns.Push(giving{Return: poolcore.Return{
			Client: l.id, LiveBytes: l.core.LiveBytes(), OpenBytes: l.core.OpenBytes(), Lanes: l.lanes(), Sent: l.sentRuns, Stirred: true,
		}})
	}
}

// giveUp returns what came home to a closed stream. Before the device has finished the stream's work there is no fence to return it
// with, so it waits for Close to have synchronised. The actor of one that holds nothing any more ends.
func (l *loans) giveUp() {
	if !l.handle.synced.Load() {
		return
	}
	l.giveBack(l.core.Return(), poolcore.Return{}, false)
	if l.core.HeldBytes() == 0 {
		l.remember()
		l.effects().end = true
	}
}

// remember keeps the statistics for the time when no turn can be had any more: from the moment when the actor is told to stop.
func (l *loans) remember() {
	last := l.stats()
	l.last.Store(&last)
}

// giveBack leaves a Return as an effect, if there is something to say. Covered runs go with the fence that was left.
func (l *loans) giveBack(runs []core.Run, m poolcore.Return, covered bool) {
	if len(runs) == 0 && !m.Answer {
		return
	}
	l.hand.runs = runs
	l.reach(beforeReturn)
	m.Runs = slices.Clone(runs) // runs are the core's
	l.returned(m, covered)
	l.hand.runs = nil
}

// returned numbers the fence of a Return. The fence is recorded when the effect is carried out: after the pages were taken. A closed
// stream needs none once its work has finished, covered pages have theirs.
func (l *loans) returned(m poolcore.Return, covered bool) {
	g := giving{Return: m}
	g.Client, g.LiveBytes, g.OpenBytes, g.Lanes = l.id, l.core.LiveBytes(), l.core.OpenBytes(), l.lanes()
	switch {
	case len(g.Runs) == 0 || l.handle.synced.Load():
	case covered:
		g.Fence, g.recorded = l.left.fence, true
		if !l.left.sent {
			g.mark, l.left.sent = l.left.mark, true
		}
	default:
		l.lastFence++
		g.Fence = l.lastFence
		l.handle.order()
	}
	l.sentRuns += uint64(len(g.Runs))
	g.Sent = l.sentRuns
	l.effects().returns.Push(g)
}

// leaveDue leaves the fences that are due: those for which enough waits, or, where all is set, any.
func (l *loans) leaveDue(all bool) {
	l.core.Due(all || l.draining, func(x *line.Line, number uint64) bool {
		l.effects().fences.Push(fencing{timeline(x), number, true})
		return true
	})
}

// background leaves a look at every fence that was taken before the tick. It takes no fence on a stream of the caller's.
func (l *loans) background() {
	l.eachLook()
	l.takeOwn()
}

// eachLook leaves a look at every fence that something waits for.
func (l *loans) eachLook() {
	l.core.EachLine(func(x *line.Line, _ uint64) {
		l.effects().fences.Push(fencing{timeline(x), 0, true})
	})
}

// takeOwn leaves the fences that are missing, save those on streams of the caller's.
func (l *loans) takeOwn() {
	l.core.Due(true, func(x *line.Line, number uint64) bool {
		t := timeline(x)
		if !t.Lent() {
			l.effects().fences.Push(fencing{t, number, false})
		}
		return !t.Lent()
	})
}

// takePassed takes home what was freed by fences that have passed.
func (l *loans) takePassed() {
	l.core.Drain()
	l.core.Renew()
	l.giveUp()
	if !l.draining {
		l.shed(inBackground)
	}
}

// publish tells the peers whether anything is pending and what the stream holds, and sees to the fences that are due. It ends every
// turn.
func (l *loans) publish() {
	waits := l.core.Waits()
	if waits != l.peer.waits.Load() {
		l.peer.waits.Store(waits)
	}
	if held := l.core.HeldBytes(); held != l.peer.heldBytes.Load() {
		l.peer.heldBytes.Store(held)
	}
	if waits {
		l.leaveDue(false)
	}
}
