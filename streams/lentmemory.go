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
type lentMemory struct {
	turnState
	sentRuns  uint64         // to the pool
	lastFence poolcore.Fence // numbers them
	prepared  preparedFence  // on adopted streams
	ordered   bool           // a fence to be left is ordered
	last      atomic.Pointer[Stats]
}

// leftFence is the last fence that a caller's turn has left for the background to give pages back with.
type preparedFence struct {
	fence poolcore.Fence
	mark  fence.Mark
	sent  bool // the mark is the pool's
}

// coverage reports whether only pages that a fence of its callers covers may leave the stream. An adopted handle may be destroyed,
// or captured into a graph, by a program that does not know of this turn; while one of its requests waits it does.
func (l *lentMemory) coveredOnly(caller bool) bool {
	return l.cuda.adopted && !caller && l.claims.Len() == 0 && !l.cuda.synced.Load()
}

// leave orders a fence over all that has come home.
func (l *lentMemory) orderFence() {
	l.core.Seal()
	l.ordered = true
	l.lastFence++
	l.cuda.order()
	l.effects().recordFence = l.lastFence
}

// recorded notes the fence; the one before it is given up if nothing was returned with it.
func (l *lentMemory) recorded(m *recorded) {
	l.ordered = false
	if m.failed {
		l.core.Unsealed()
		return
	}
	l.core.Covered()
	l.core.Note()
	l.dropPrepared()
	l.prepared = preparedFence{fence: m.fence, mark: m.mark}
}

// dropLeft gives the last fence up.
func (l *lentMemory) dropPrepared() {
	if !l.prepared.sent && !l.prepared.mark.Zero() {
		l.effects().discards.Push(l.prepared.mark)
	}
	l.prepared = preparedFence{}
}

// shed gives back what the stream keeps beyond its budget. A closed stream has other rules, see giveUp: its handle may be gone, and
// with it the fence for a Return. A caller leaves a fence, if one is wanted.
func (l *lentMemory) returnExcess(caller bool) {
	if !l.core.Over() || l.draining {
		return
	}
	if caller && l.core.FenceWanted() && !l.ordered {
		l.orderFence()
	}
	if l.wanted { // the pool asks for all that there is, and gives home what it does not need
		return
	}
	covered := l.coveredOnly(caller)
	l.pushReturn(l.core.Excess(covered), poolcore.Return{}, covered)
}

// decay gives back a part of what an idle stream keeps.
func (l *lentMemory) decay() {
	if l.core.Idle() {
		covered := l.coveredOnly(inBackground)
		l.pushReturn(l.core.Decay(covered), poolcore.Return{Final: true}, covered)
	}
}

// giveAll gives back all that is free and may leave.
func (l *lentMemory) releaseAll(covered bool) {
	l.pushReturn(l.core.Release(^uint32(0), covered), poolcore.Return{}, covered)
}

// answerReclaim answers the pool's reclaim request. Once Close has begun no fence may be recorded any more, since the handle goes
// away: what the stream has then waits for the device to be synchronised. What no fence of an adopted stream's callers covers stays,
// and is named. Lanes give theirs back at their next calls.
func (l *lentMemory) answerReclaim() {
	l.core.AskLanes()
	m := poolcore.Return{Answer: true, Final: l.core.Idle()}
	covered := l.coveredOnly(inBackground)
	var runs []core.Run
	if !l.draining || l.cuda.synced.Load() {
		runs = l.core.Release(^uint32(0), covered)
		if covered {
			l.core.WantFence()
			m.UncoveredBytes = l.core.UncoveredBytes()
		}
	}
	m.Stirred, m.PendingBytes, m.LetsOnly = l.core.TakeCame(), l.core.PendingBytes(), l.tenantsOnly()
	l.pushReturn(runs, m, covered)
}

// reportCame tells the pool that something has come home.
func (l *lentMemory) reportCame() {
	if l.core.TakeCame() {
		l.effects().returns.Push(outgoingReturn{Return: poolcore.Return{
			Client: l.id, LiveBytes: l.core.LiveBytes(), OpenBytes: l.core.OpenBytes(), Lanes: l.lanes(), Sent: l.sentRuns, Stirred: true,
		}})
	}
}

// giveUp returns what came home to a closed stream. Before the device has finished the stream's work there is no fence to return it
// with, so it waits for Close to have synchronised. The actor of one that holds nothing any more ends.
func (l *lentMemory) returnWhenClosed() {
	if !l.cuda.synced.Load() {
		return
	}
	l.pushReturn(l.core.Return(), poolcore.Return{}, false)
	if l.core.HeldBytes() == 0 {
		l.saveStats()
		l.effects().end = true
	}
}

// remember keeps the statistics for the time when no turn can be had any more: from the moment when the actor is told to stop.
func (l *lentMemory) saveStats() {
	last := l.stats()
	l.last.Store(&last)
}

// giveBack leaves a Return as an effect, if there is something to say. Covered runs go with the fence that was left.
func (l *lentMemory) pushReturn(runs []core.Run, m poolcore.Return, covered bool) {
	if len(runs) == 0 && !m.Answer {
		return
	}
	l.inTransit.runs = runs
	l.reach(beforeReturn)
	m.Runs = slices.Clone(runs) // runs are the core's
	l.returned(m, covered)
	l.inTransit.runs = nil
}

// returned numbers the fence of a Return. The fence is recorded when the effect is carried out: after the pages were taken. A closed
// stream needs none once its work has finished, covered pages have theirs.
func (l *lentMemory) returned(m poolcore.Return, covered bool) {
	g := outgoingReturn{Return: m}
	g.Client, g.LiveBytes, g.OpenBytes, g.Lanes = l.id, l.core.LiveBytes(), l.core.OpenBytes(), l.lanes()
	switch {
	case len(g.Runs) == 0 || l.cuda.synced.Load():
	case covered:
		g.Fence, g.recorded = l.prepared.fence, true
		if !l.prepared.sent {
			g.mark, l.prepared.sent = l.prepared.mark, true
		}
	default:
		l.lastFence++
		g.Fence = l.lastFence
		l.cuda.order()
	}
	l.sentRuns += uint64(len(g.Runs))
	g.Sent = l.sentRuns
	l.effects().returns.Push(g)
}

// leaveDue leaves the fences that are due: those for which enough waits, or, where all is set, any.
func (l *lentMemory) pushDueFences(all bool) {
	l.core.Due(all || l.draining, func(x *line.Line, number uint64) bool {
		l.effects().fences.Push(fencing{timeline(x), number, true})
		return true
	})
}

// look leaves a look at every fence that something waits for, and takes those that are missing first.
func (l *lentMemory) look() {
	l.pushDueFences(true)
	l.eachLook()
}

// background is look for a tick, which looks at what was taken before it. It takes no fence on a stream of the caller's.
func (l *lentMemory) lookAtTick() {
	l.eachLook()
	l.takeOwnFences()
}

// eachLook leaves a look at every fence that something waits for.
func (l *lentMemory) eachLook() {
	l.core.EachLine(func(x *line.Line, _ uint64) {
		l.effects().fences.Push(fencing{timeline(x), 0, true})
	})
}

// takeOwn leaves the fences that are missing, save those on streams of the caller's.
func (l *lentMemory) takeOwnFences() {
	l.core.Due(true, func(x *line.Line, number uint64) bool {
		t := timeline(x)
		if !t.Lent() {
			l.effects().fences.Push(fencing{t, number, false})
		}
		return !t.Lent()
	})
}

// takePassed takes home what was freed by fences that have passed.
func (l *lentMemory) takePassed() {
	l.core.Drain()
	l.core.Renew()
	l.returnWhenClosed()
	if !l.draining {
		l.returnExcess(inBackground)
	}
}

// publish tells the peers whether anything is pending and what the stream holds, and sees to the fences that are due. It ends every
// turn.
func (l *lentMemory) publish() {
	waits := l.core.Waits()
	if waits != l.peer.waits.Load() {
		l.peer.waits.Store(waits)
	}
	if held := l.core.HeldBytes(); held != l.peer.heldBytes.Load() {
		l.peer.heldBytes.Store(held)
	}
	if waits {
		l.pushDueFences(false)
	}
}
