package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pool/memory"
)

// ladder finds memory for a Refill that free memory does not serve. It tries the rungs of one table, from top to bottom. The
// free memory is searched before each rung (scheduler.serveFree), so that a request never misses memory that has become free.
//
// A row has a name, the precondition (when), the action (try), and the rungs that may follow (then, or). A row without a
// precondition always applies; one whose precondition fails is skipped. A row without a then is followed by the row below it.
// The order of the rows is the order of the ladder, and no other code knows it: to exchange two rungs, exchange their rows. A
// then or an or names its rung, and so does the list of events below: these do not move with the rows. docs/architecture.md has
// the table in words, and TestTheLadderIsAsDocumented compares both; docs/waiting.md has a summary for users, which no test
// compares.
//
// An action begins at most one thing: a job, or requests to clients. It returns a verdict:
//
//	onward  the rung has nothing more to do: the one in then follows, once the job has ended and the clients have answered
//	again   the same rung follows, unless the job or the answers serve the request
//	branch  the rung in or follows
//	leave   the request leaves the queue: it is refused, held, or still waits
//
// Five events set the rung of a request without the table:
//
//	a Refill comes, or gets one of its runs         look; join once others were asked for all (answers.grant)
//	a Refill that waits is tried                    offer (request.restart)
//	the driver has no more memory                   ask all (ladder.jobFailed)
//	a fence passes that a held request waits for    ask all (fences.takeDue)
//	another driver call fails                       deny (ladder.jobFailed)
type ladder struct {
	memory  *memory.Memory
	clients *clients
	fences  *fences
	answers *answers
	asks    *asks
	jobs    *jobs
	grower  grower

	rows []row
}

// row is a rung of the ladder.
type row struct {
	name rung
	when func(*request) bool
	try  func(*request) verdict
	then rung
	or   rung
}

// table returns the ladder.
func (l *ladder) table() []row {
	a, g := l.asks, &l.grower
	return []row{
		{name: rungOffer, try: l.answers.offer},
		{name: rungLook, when: a.needsOthers, try: a.look},
		{name: rungTake, when: a.needsOthers, try: a.take},
		{name: rungJoinEarly, when: g.joinsEarly, try: g.join},
		{name: rungAskOwn, when: (*request).atOnce, try: a.askOwn},
		{name: rungLookAgain, when: a.wouldRaisePeak, try: a.look},
		{name: rungCollect, when: (*request).atOnce, try: a.collect},
		{name: rungAskDirty, when: (*request).waits, try: a.askDirty},
		{name: rungJoin, try: g.join},
		{name: rungGrow, try: g.grow},
		{name: rungPoll, try: l.jobs.poll},
		{name: rungBorrow, try: g.borrow},
		{name: rungBuy, when: g.mayBuy, try: g.buy},
		{name: rungRecycle, try: g.recycle, then: rungWait, or: rungAskAll},
		{name: rungAskAll, try: a.askAll, then: rungJoin},
		{name: rungWait, try: l.wait},
		{name: rungHold, try: l.hold, or: rungBorrow},
		{name: rungDeny, try: l.answers.fail},
	}
}

// climb tries the next rung for a request whose search failed. It reports whether the request leaves the queue. If not, a job
// is in flight, or clients are to answer, or the next rung is to be tried.
func (l *ladder) climb(r *request) (leaves bool) {
	at := slices.IndexFunc(l.rows, func(s row) bool { return s.name == r.rung })
	for l.rows[at].when != nil && !l.rows[at].when(r) {
		at++
	}
	s := &l.rows[at]
	r.rung = s.name
	switch s.try(r) {
	case onward:
		if r.rung = s.then; s.then == "" {
			r.rung = l.rows[at+1].name
		}
	case again: // a grant of one of several runs has set the rung
	case branch:
		r.rung = s.or
	case leave:
		return true
	}
	return r.done
}

// wait starts watches over the fences of pending memory, except for clients whose kernels need not end.
func (l *ladder) wait(r *request) verdict {
	r.progress = l.fences.progress
	ids := slices.DeleteFunc(l.memory.TaggedClients(), func(id Client) bool { // the fences of all were polled just now
		return !l.clients.mayBeAwaited(id) || l.fences.watched(id)
	})
	if len(ids) > 0 {
		l.jobs.start(&Job{Watch: ids, request: r})
	}
	return onward
}

// hold takes a request for which fences are watched out of the queue until one passes. It returns onward where no fence can
// serve the request, and branch where memory has become free since wait.
func (l *ladder) hold(r *request) verdict {
	switch {
	case r.progress != l.fences.progress:
		r.forgive()
		return branch
	case !l.fences.watching(l.clients.mayBeAwaited) || r.patience == Patient: // a patient one waits in the order of those that wait
		return onward
	case r.waits(): // it is tried again once a fence has passed
		l.answers.waitOn(r)
		return leave
	}
	if len(r.wants) > 0 { // two that had parts could keep each other from the rest
		l.answers.putBack(r)
		r.pages, r.more = r.wants[0], slices.Clone(r.wants[1:])
	}
	l.fences.held = append(l.fences.held, r)
	return leave
}

// jobFailed sets the rung of a request whose job has failed. A request whose stream could not be made to wait repeats the rung
// without that. After an out-of-memory error the request goes back to ask all; any other error refuses it.
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

// cap records all that the driver can give, which bounds this request like a limit: the reserved bytes after the refusal and
// the bytes that the driver reports free. If it reports none, cap records the bytes reserved before the job, since all that the
// job released can be had again. Each refusal of a capped request lowers the cap by which its job was planned: that job would
// have made no more than the last one.
func (l *ladder) cap(r *request, startBytes, freeBytes int64) {
	reserved := l.memory.ReservedBytes()
	capBytes := reserved + max(0, freeBytes)
	if freeBytes <= 0 {
		capBytes = max(reserved, startBytes)
	}
	if r.capped && capBytes >= max(r.capBytes, startBytes) {
		capBytes = reserved
	}
	r.capped, r.capBytes, r.askedAll = true, capBytes, false
	r.refusals++
}

// atOnce reports whether the request does not wait for frees of others: the opposite of waits.
func (r *request) atOnce() bool { return r.id == 0 }
