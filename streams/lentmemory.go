package streams

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
)

// A turn acts for a caller of the stream, or in the background. On an adopted stream a fence is
// recorded for callers only.
const (
	forCaller    = true
	inBackground = false
)

// lentMemory is the turn's state with the memory that the pool has lent, and the Returns of it.
type lentMemory struct {
	turnState
	sent      uint64                // runs returned and empty reports of memory that came home, so far
	lastFence poolcore.Fence        // number of the newest fence
	prepared  preparedFence         // on adopted streams, for Returns in the background
	ordered   bool                  // recordFence is set, and its outcome has not arrived
	last      atomic.Pointer[Stats] // as read last, and at the end of the stream; nil before
}

// preparedFence is the last fence that a caller's turn has recorded for Returns in the background.
type preparedFence struct {
	fence poolcore.Fence
	mark  fence.Mark
	sent  bool // the pool has the mark
}

// coveredOnly reports whether only covered pages may leave the stream: in the background on an
// adopted stream, which the program may destroy or capture at any time. It may not while one of its
// requests waits.
func (l *lentMemory) coveredOnly(caller bool) bool {
	return l.cuda.adopted && !caller && l.claims.Len() == 0 && !l.cuda.synced.Load()
}

// orderFence leaves the record of a fence over all that has come home, as an effect.
func (l *lentMemory) orderFence() {
	l.core.Seal()
	l.ordered = true
	l.lastFence++
	l.cuda.order()
	l.effects().recordFence = l.lastFence
}

// recorded stores the fence that orderFence has led to, in place of the one before.
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

// dropPrepared forgets the prepared fence, and releases its mark unless the pool has it.
func (l *lentMemory) dropPrepared() {
	if !l.prepared.sent && !l.prepared.mark.Zero() {
		l.effects().discards.Push(l.prepared.mark)
	}
	l.prepared = preparedFence{}
}

// returnExcess returns the pages beyond the stream's budget. For a caller it also orders a fence,
// if one is wanted. A closed stream returns its pages by returnWhenClosed: its CUDA stream may be
// gone, and so the fence.
func (l *lentMemory) returnExcess(caller bool) {
	if !l.core.Over() || l.draining {
		return
	}
	if caller && l.core.FenceWanted() && !l.ordered {
		l.orderFence()
	}
	if l.wanted { // reclaim requests take all free pages; the pool grants back the rest
		return
	}
	covered := l.coveredOnly(caller)
	l.pushReturn(l.core.Excess(covered), poolcore.Return{}, covered)
}

// decay returns a part of an idle stream's cache.
func (l *lentMemory) decay() {
	if l.core.Idle() {
		covered := l.coveredOnly(inBackground)
		l.pushReturn(l.core.Decay(covered), poolcore.Return{Final: true}, covered)
	}
}

// age returns pages that the stream has not needed for a window of ticks. They are not lent back.
func (l *lentMemory) age() {
	covered := l.coveredOnly(inBackground)
	l.pushReturn(l.core.Surplus(covered), poolcore.Return{Final: true, Surplus: true}, covered)
}

// releaseAll returns all free pages that may leave.
func (l *lentMemory) releaseAll(covered bool) {
	l.pushReturn(l.core.Release(^uint32(0), covered), poolcore.Return{}, covered)
}

// answerReclaim answers the pool's reclaim request for so many pages, or with 0 for all. Once Close
// has begun no fence may be recorded, since the CUDA stream is about to go: the stream then keeps
// its pages until the device was synchronised. Uncovered pages of an adopted stream stay, and are
// reported. A request for all also asks the lanes, which release free blocks at their next calls.
func (l *lentMemory) answerReclaim(pages uint32) {
	if pages == 0 {
		l.core.AskLanes()
	}
	m := poolcore.Return{Answer: true, Final: l.core.Idle()}
	covered := l.coveredOnly(inBackground)
	var runs []core.Run
	if !l.draining || l.cuda.synced.Load() {
		if pages > 0 {
			runs = l.core.ReleaseSome(pages, covered)
		} else {
			runs = l.core.Release(^uint32(0), covered)
		}
		if covered {
			l.core.WantFence()
			m.UncoveredBytes = l.core.UncoveredBytes()
		}
	}
	m.Stirred, m.PendingBytes, m.LetsOnly = l.core.TakeCame(), l.core.PendingBytes(), l.tenantsOnly()
	l.pushReturn(runs, m, covered)
}

// reportCame tells the pool that memory has come home.
func (l *lentMemory) reportCame() {
	if l.core.TakeCame() {
		l.sent++
		l.effects().returns.Push(outgoingReturn{Return: poolcore.Return{
			Client: l.id, LiveBytes: l.core.LiveBytes(), OpenBytes: l.core.OpenBytes(), Lanes: l.lanes(), Sent: l.sent, Stirred: true,
		}})
	}
}

// returnWhenClosed returns the pages that came home to a closed stream. Before the device has
// finished the stream's work there is no fence for them, so they wait until Close has synchronised.
// The actor ends when the stream holds no pages any more.
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

// saveStats reads the statistics, and keeps them for readers that take no turn or come after the actor's
// end: a later reader sees no count below one that was read.
func (l *lentMemory) saveStats() Stats {
	last := l.stats()
	l.last.Store(&last)
	return last
}

// pushReturn leaves a Return as an effect, if it has runs or is an answer. Covered runs go with the
// prepared fence.
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

// returned numbers the fence of a Return. The fence is recorded when the effect is carried out:
// after the pages were taken. A closed stream whose work has finished needs no fence; covered pages
// have theirs.
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
	l.sent += uint64(len(g.Runs))
	g.Sent = l.sent
	l.effects().returns.Push(g)
}

// pushDueFences takes, as effects, the fences that are due: those with enough blocks, or, with all,
// any with a block.
func (l *lentMemory) pushDueFences(all bool) {
	l.core.Due(all || l.draining, func(x *line.Line, number uint64) bool {
		l.effects().fences.Push(fencing{timeline(x), number, true})
		return true
	})
}

// lookAtTick looks at the fences taken before the tick, and takes missing ones except on adopted
// streams.
func (l *lentMemory) lookAtTick() {
	l.eachLook()
	l.takeOwnFences()
}

// eachLook looks at every fence that blocks wait for, as effects.
func (l *lentMemory) eachLook() {
	l.core.EachLine(func(x *line.Line, _ uint64) {
		l.effects().fences.Push(fencing{timeline(x), 0, true})
	})
}

// takeOwnFences takes the missing fences, except those on adopted streams, as effects.
func (l *lentMemory) takeOwnFences() {
	l.core.Due(true, func(x *line.Line, number uint64) bool {
		t := timeline(x)
		if !t.Lent() {
			l.effects().fences.Push(fencing{t, number, false})
		}
		return !t.Lent()
	})
}

// takePassed takes home blocks whose fences have passed.
func (l *lentMemory) takePassed() {
	l.core.Drain()
	l.core.Renew()
	l.returnWhenClosed()
	if !l.draining {
		l.returnExcess(inBackground)
	}
}

// publish ends every turn: it stores, for peers, whether memory is pending and how much the stream
// holds, and takes the fences that are due.
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
