package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pool/memory"
)

// ladder finds memory for a Refill that free memory does not serve, rung by rung: see the package comment.
type ladder struct {
	settings *Settings
	memory   *memory.Memory
	clients  *clients
	budget   *budget
	fences   *fences
	answers  *answers
	asks     *asks
	jobs     *jobs
}

// climb takes the next rung for a request whose search failed. It reports whether the request leaves the queue; if not, either a job
// is in flight, or answers are awaited, or the next rung is to be tried.
func (l *ladder) climb(r *request) bool {
	switch r.rung {
	case rungOffer:
		l.answers.offer(r)
	case rungSearch, rungTake:
		l.take(r)
	case rungAskOwn:
		return l.askOwn(r)
	case rungCollect:
		l.collect(r)
	case rungAskAll:
		r.rung = rungGrow
		l.notePeak(r)
		l.askOthers(r)
	case rungGrow:
		return l.growOrBorrow(r)
	case rungPoll:
		r.rung = rungRecycle
		l.jobs.poll(r)
	case rungRecycle:
		if l.answers.assemble(r) { // the fences that have passed, or what came meanwhile, may have made one
			return r.done
		}
		if l.borrow(r, l.budget.softBytes()) {
			return false // to come back here if that brings nothing
		}
		r.rung = rungWait
		if !l.growBought(r) {
			l.recycle(r)
		}
	case rungWait:
		l.watch(r)
	case rungHold:
		return l.hold(r)
	case rungDeny:
		l.answers.fail(r)
		return true
	}
	return false
}

// askOwn asks the client of the request; for one that waits all clients, as soon as they have reported that they may have something.
func (l *ladder) askOwn(r *request) bool {
	if r.waits() {
		r.rung = rungGrow
		l.raisePeak(r, r.bytes)
		r.askedAll = true
		l.asks.ask(r, func(cl *client) bool { return cl.dirty })
		return false
	}
	if l.settings.Waits == WaitsAlways {
		if l.answers.assemble(r) || l.borrow(r, 0) { // what needs no wait goes first
			return r.done
		}
	}
	r.rung, l.clients.asker = rungCollect, r.client
	l.asks.askOwn(r)
	return false
}

// take asks another client for one run that serves a request, where the soft budget does not allow
// growth: that costs the least of all moves, and no more where much is free elsewhere. The fence of
// the run is polled if the client's stream has work.
func (l *ladder) take(r *request) {
	r.rung = rungAskOwn
	if r.waits() || len(l.clients.ids) < 2 || l.mayGrow(r) {
		return
	}
	if l.asks.look(r) {
		r.rung = rungTake
		return
	}
	if l.notePeak(r); l.mayGrow(r) || l.budget.widen() && l.mayGrow(r) {
		return
	}
	if !r.contended {
		r.contended = true
		l.clients.contend(r.client)
	}
	switch r.taking {
	case notTaken:
		if !l.buys(r, r.pages) && l.asks.takeRun(r, r.pages) {
			r.taking, r.rung = taken, rungTake
		}
	case taken:
		r.taking, r.rung = polled, rungTake
		l.jobs.poll(r)
	case polled:
	}
}

// mayGrow reports whether all that a request wants may be new within the soft budget.
func (l *ladder) mayGrow(r *request) bool {
	return l.memory.ReservedBytes()+l.memory.Bytes(r.pages) <= r.within(l.budget.softBytes())
}

// collect asks other clients for as much as a request lacks, where growing would break the budget
// or what the driver can give.
func (l *ladder) collect(r *request) {
	if !r.noted && l.clients.usedBytes > l.budget.livePeak.bytes() && l.asks.look(r) {
		return
	}
	r.rung = rungGrow
	l.notePeak(r)
	missing := r.pages
	if w, ok := l.room(r, r.pages); ok {
		missing = w.Missing
		if l.reservedWith(w) <= r.within(l.budget.softBytes()) {
			return
		}
	}
	if r.capped {
		l.askOthers(r)
	} else if !l.buys(r, missing) {
		l.asks.collect(r, missing)
	}
}

// buys has the budget allow growth by so many pages if moves have cost what they are worth. It
// reports whether it does.
func (l *ladder) buys(r *request, pages uint32) bool {
	reserved := l.memory.ReservedBytes() + l.memory.Bytes(pages)
	beyond := reserved - l.budget.softBytes()
	switch {
	case r.capped || reserved > l.settings.LimitBytes: // the driver has refused it, or it may not be
		return false
	case beyond <= 0:
		return true
	case !l.budget.affords(beyond, reserved):
		return false
	}
	l.budget.buy(beyond, reserved)
	return true
}

// growBought maps a window for a request beyond the budget, where the live peak does not rise and
// moves have cost as much. It reports whether it does.
func (l *ladder) growBought(r *request) bool {
	w, ok := l.room(r, r.pages)
	if !ok || r.raised || r.capped || l.memory.Plain() || !l.buys(r, w.Missing) {
		return false
	}
	r.rung = rungRecycle
	l.jobs.fill(r, w.Run, nil)
	return true
}

// notePeak raises the live peak once for a request.
func (l *ladder) notePeak(r *request) {
	if !r.noted { // else it is the same request still
		l.raisePeak(r, 0)
		l.budget.note(r.raised)
	}
}

// raisePeak raises the live peak to what the clients last reported and to what one wants that has not reported it.
func (l *ladder) raisePeak(r *request, wantedBytes int64) {
	r.raised, r.noted = l.budget.raise(l.clients.usedBytes+wantedBytes), true
}

// askOthers has the others return what they do not use where growing would break the budget or what the driver can give. After a
// refusal its own client is asked again: memory may have come home to it meanwhile.
func (l *ladder) askOthers(r *request) {
	if w, ok := l.room(r, r.pages); ok && l.reservedWith(w) <= r.within(l.budget.softBytes()) {
		return
	}
	r.askedAll = true
	l.asks.ask(r, func(cl *client) bool {
		return (!r.waits() || cl.dirty) && (r.capped || cl.id != r.client)
	})
}

// room is a window for the client of a request.
func (l *ladder) room(r *request, pages uint32) (memory.Window, bool) {
	return l.memory.Room(memory.User{Client: r.client}, pages)
}

// reservedWith is what is reserved once a window is filled with new handles.
func (l *ladder) reservedWith(w memory.Window) int64 {
	return l.memory.ReservedBytes() + l.memory.Bytes(w.Missing)
}

// watch has the fences of pending memory watched for a request that nothing else can serve. A client whose kernels need not
// end is not waited for.
func (l *ladder) watch(r *request) {
	r.rung = rungHold
	r.progress = l.fences.progress
	ids := slices.DeleteFunc(l.memory.TaggedClients(), func(id Client) bool { // the fences of all were polled just now
		return !l.clients.mayBeAwaited(id) || l.fences.watched(id)
	})
	if len(ids) > 0 {
		l.jobs.watch(r, ids)
	}
}

// hold ends a climb at fences that are watched. It reports whether the request has left the queue.
func (l *ladder) hold(r *request) bool {
	switch {
	case r.progress != l.fences.progress: // something has passed, or came home, meanwhile
		r.rung = rungRecycle
		r.forgive()
		return false
	case !l.fences.watching() || r.patience == Patient: // a patient one waits in the order of those that wait
		r.rung = rungDeny
		return false
	case r.waits(): // it is tried again once a fence has passed
		l.answers.waitOn(r)
		return true
	}
	if len(r.wants) > 0 { // two that had parts could keep each other from the rest
		l.answers.putBack(r)
		r.pages, r.more = r.wants[0], slices.Clone(r.wants[1:])
	}
	r.waited = true
	l.fences.hold(r)
	return true
}

// jobFailed decides how a request goes on after its job failed: with the memory that the process has if the driver has none,
// otherwise not at all. Where only the wait failed it goes on without one.
func (l *ladder) jobFailed(r *request, out memory.Outcome, err error, freeBytes int64) {
	if out.FailedAt == memory.Await && !r.noBorrow { // nothing has changed, and there are other ways
		r.noBorrow = true
		return
	}
	r.err, r.rung = err, rungDeny
	if errors.Is(err, cudadrv.OutOfMemory) && r.refusals < maxRefusals {
		l.cap(r, out.StartBytes, freeBytes)
		r.rung = rungAskAll
	}
}

// cap notes what the driver can give in all, which holds for this request like a limit: what it had given when it refused, and
// what it reports to have left. Where it does not report that, it is what it had given before the job, since all that the job gave back can
// be had again. A cap that the driver does not keep falls with every refusal: the job would have made no more than the last one.
func (l *ladder) cap(r *request, startBytes, freeBytes int64) {
	reserved := l.memory.ReservedBytes()
	capBytes := reserved + max(0, freeBytes)
	if freeBytes <= 0 {
		capBytes = max(reserved, startBytes)
	}
	if r.capped && capBytes >= r.capBytes {
		capBytes = reserved
	}
	r.capped, r.capBytes, r.askedAll = true, capBytes, false
	r.refusals++
}
