package streams

import (
	"slices"

	"github.com/go-vram/vram/internal/effect"
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

// lentMemory returns pages to the pool, and takes the fences for them.
type lentMemory struct {
	wiring    *wiring
	state     *turnState
	sent      uint64         // runs returned and empty reports of freed memory, so far
	lastFence poolcore.Fence // number of the newest fence
	prepared  preparedFence  // on adopted streams, for Returns in the background
	ordered   bool           // recordFence is set, and its outcome has not arrived
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
	return l.wiring.cuda.adopted && !caller && l.state.claims.Len() == 0 && !l.wiring.cuda.synced.Load()
}

// orderFence adds an effect that records a fence over all free memory.
func (l *lentMemory) orderFence() {
	l.state.core.Seal()
	l.ordered = true
	l.lastFence++
	l.wiring.cuda.order()
	l.state.effects().recordFence = l.lastFence
}

// recorded replaces the prepared fence by the one that orderFence ordered.
func (l *lentMemory) recorded(m *recorded) {
	l.ordered = false
	if m.failed {
		l.state.core.Unsealed()
		return
	}
	l.state.core.Covered()
	l.state.core.Note()
	l.dropPrepared()
	l.prepared = preparedFence{fence: m.fence, mark: m.mark}
}

// dropPrepared clears the prepared fence, and releases its mark unless the pool has it.
func (l *lentMemory) dropPrepared() {
	if !l.prepared.sent && !l.prepared.mark.Zero() {
		effect.Push(&l.state.effects().discards, l.prepared.mark)
	}
	l.prepared = preparedFence{}
}

// returnExcess returns the pages beyond the stream's budget. For a caller it also orders a fence,
// if one is wanted. A closed stream returns its pages by returnWhenClosed: its CUDA stream may be
// gone, and so the fence.
func (l *lentMemory) returnExcess(caller bool) {
	if !l.state.core.Over() || l.state.draining {
		return
	}
	if caller && l.state.core.FenceWanted() && !l.ordered {
		l.orderFence()
	}
	if l.state.wanted { // reclaim requests take all free pages; the pool grants back the rest
		return
	}
	covered := l.coveredOnly(caller)
	l.pushReturn(l.state.core.Excess(covered), poolcore.Return{}, covered)
}

// decay returns a part of an idle stream's cache.
func (l *lentMemory) decay() {
	if l.state.core.Idle() {
		covered := l.coveredOnly(inBackground)
		l.pushReturn(l.state.core.Decay(covered), poolcore.Return{Final: true}, covered)
	}
}

// age returns pages that the stream has not needed for a window of ticks. The pool does not lend them back.
func (l *lentMemory) age() {
	covered := l.coveredOnly(inBackground)
	l.pushReturn(l.state.core.Surplus(covered), poolcore.Return{Final: true, Surplus: true}, covered)
}

// releaseAll returns all free pages that may leave.
func (l *lentMemory) releaseAll(covered bool) {
	l.pushReturn(l.state.core.Release(^uint32(0), covered), poolcore.Return{}, covered)
}

// answerReclaim answers the pool's reclaim request for that many pages, or with 0 for all. Once Close
// has begun no fence may be recorded, since the CUDA stream is about to go: the stream then keeps
// its pages until the device was synchronised. Uncovered pages of an adopted stream stay, and are
// reported.
func (l *lentMemory) answerReclaim(pages uint32) {
	m := poolcore.Return{Answer: true, Final: l.state.core.Idle()}
	covered := l.coveredOnly(inBackground)
	var runs []core.Run
	if !l.state.draining || l.wiring.cuda.synced.Load() {
		if pages > 0 {
			runs = l.state.core.ReleaseSome(pages, covered)
		} else {
			runs = l.state.core.Release(^uint32(0), covered)
		}
		if covered {
			l.state.core.WantFence()
			m.UncoveredBytes = l.state.core.UncoveredBytes()
		}
	}
	m.Stirred, m.PendingBytes, m.LetsOnly = l.state.core.TakeCame(), l.state.core.PendingBytes(), l.state.tenantsOnly()
	l.pushReturn(runs, m, covered)
}

// reportCame tells the pool that memory has become free.
func (l *lentMemory) reportCame() {
	if l.state.core.TakeCame() {
		l.sent++
		effect.Push(&l.state.effects().returns, outgoingReturn{Return: poolcore.Return{
			Client: l.wiring.id, LiveBytes: l.state.core.LiveBytes(), OpenBytes: l.state.core.OpenBytes(),
			Sent: l.sent, Stirred: true,
		}})
	}
}

// returnWhenClosed returns the free pages of a closed stream. Until the device has finished the stream's
// work there is no fence for them, so they wait until Close has synchronised.
// The actor ends when the stream holds no pages any more.
func (l *lentMemory) returnWhenClosed() {
	if !l.wiring.cuda.synced.Load() {
		return
	}
	l.pushReturn(l.state.core.Return(), poolcore.Return{}, false)
	if l.state.core.HeldBytes() == 0 {
		l.state.saveStats()
		l.state.effects().end = true
	}
}

// pushReturn adds a Return to the effects, if it has runs or is an answer. Covered runs go with the
// prepared fence.
func (l *lentMemory) pushReturn(runs []core.Run, m poolcore.Return, covered bool) {
	if len(runs) == 0 && !m.Answer {
		return
	}
	l.state.inTransit.runs = runs
	l.state.reach(beforeReturn)
	m.Runs = slices.Clone(runs) // runs are the core's
	l.returned(m, covered)
	l.state.inTransit.runs = nil
}

// returned numbers the fence of a Return. The fence is recorded when the effect is carried out:
// after the pages were taken. A closed stream whose work has finished needs no fence; covered pages
// have theirs.
func (l *lentMemory) returned(m poolcore.Return, covered bool) {
	g := outgoingReturn{Return: m}
	g.Client, g.LiveBytes, g.OpenBytes = l.wiring.id, l.state.core.LiveBytes(), l.state.core.OpenBytes()
	switch {
	case len(g.Runs) == 0 || l.wiring.cuda.synced.Load():
	case covered:
		g.Fence, g.recorded = l.prepared.fence, true
		if !l.prepared.sent {
			g.mark, l.prepared.sent = l.prepared.mark, true
		}
	default:
		l.lastFence++
		g.Fence = l.lastFence
		l.wiring.cuda.order()
	}
	l.sent += uint64(len(g.Runs))
	g.Sent = l.sent
	effect.Push(&l.state.effects().returns, g)
}

// pushDueFences adds an effect for each fence that is due: one with enough blocks, or, with all, one with
// any block.
func (l *lentMemory) pushDueFences(all bool) {
	l.state.core.Due(all || l.state.draining, func(x *line.Line, number uint64) bool {
		effect.Push(&l.state.effects().fences, fencing{timeline(x), number, true})
		return true
	})
}

// lookAtTick queries the fences that were taken before the tick, and takes missing ones except on adopted
// streams.
func (l *lentMemory) lookAtTick() {
	l.eachLook()
	l.takeOwnFences()
}

// eachLook adds an effect that queries each fence that blocks wait for.
func (l *lentMemory) eachLook() {
	l.state.core.EachLine(func(x *line.Line, _ uint64) {
		effect.Push(&l.state.effects().fences, fencing{timeline(x), 0, true})
	})
}

// takeOwnFences adds an effect for each missing fence, except on adopted streams.
func (l *lentMemory) takeOwnFences() {
	l.state.core.Due(true, func(x *line.Line, number uint64) bool {
		t := timeline(x)
		if !t.Lent() {
			effect.Push(&l.state.effects().fences, fencing{t, number, false})
		}
		return !t.Lent()
	})
}

// takePassed frees blocks whose fences have passed.
func (l *lentMemory) takePassed() {
	l.state.core.Drain()
	l.state.core.Renew()
	l.returnWhenClosed()
	if !l.state.draining {
		l.returnExcess(inBackground)
	}
}

// publish stores, for peers, whether memory is pending and how much the stream holds, and takes the fences
// that are due. Each turn calls it last.
func (l *lentMemory) publish() {
	waits := l.state.core.Waits()
	if waits != l.wiring.peer.waits.Load() {
		l.wiring.peer.waits.Store(waits)
	}
	if held := l.state.core.HeldBytes(); held != l.wiring.peer.heldBytes.Load() {
		l.wiring.peer.heldBytes.Store(held)
	}
	if waits {
		l.pushDueFences(false)
	}
}
