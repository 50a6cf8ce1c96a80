package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/memory"
)

// Special is a message of a part of the core that few programs use: Apart, Sleep or Wake makes one. It enters itself, so that
// programs that make none have no code for it.
type Special struct{ part special }

type special interface{ enter(c *Core) (goOn bool) }

func (Special) isMessage() {}

// Step takes one message and returns the effects to perform. The result is valid until the next step.
func (c *Core) Step(m Message) *Effects {
	c.fx.reset()
	if c.take(m) {
		c.scheduler.advance()
	}
	c.finishClose()
	c.memory.NoteFree()
	return &c.fx
}

// take enters a message into the books. It reports whether requests may advance.
func (c *Core) take(m Message) bool {
	switch m := m.(type) {
	case Join:
		c.clients.join(m)
	case Unreserve:
		return c.unreserve(m)
	case Looked:
		c.queue.each(func(r *request) { r.looking = false })
		return true
	case Leave:
		return c.leave(m)
	case Refill:
		c.refill(m)
	case Withdraw:
		return c.withdraw(m)
	case Ready:
		return c.waiters.ready(m)
	case Block:
		return c.waiters.block(m)
	case Suspend:
		return c.scheduler.noProgress.suspend(m)
	case Offered:
		return c.offered(m)
	case Return:
		return c.takeBack(m)
	case Warm:
		lengths := slices.DeleteFunc(slices.Clone(m.Runs), func(n uint32) bool { return n == 0 })
		c.scheduler.enqueue(&request{kind: warm, token: m.Token, warming: warming{lengths: lengths}})
	case Trim:
		c.scheduler.enqueue(&request{kind: trim, token: m.Token, keepBytes: m.KeepBytes})
	case JobDone:
		return c.jobDone(m)
	case WatchOver:
		c.watchOver(m)
		return true
	case Exclude:
		return c.exclude(m)
	case Tick:
		c.tick()
	case Close:
		c.close(m)
	case Special:
		return m.part.enter(c)
	}
	return false
}

// refill grants a Refill, enqueues it, parks it, or denies it.
func (c *Core) refill(m Refill) {
	r := newRefill(m)
	cl := c.clients.all[m.Client]
	if c.phase.closing || cl == nil || cl.gone {
		c.answers.deny(r, ErrClosed)
		return
	}
	r.way = cl.way
	c.clients.report(cl, m.LiveBytes)
	if !cl.reserves { // no caller has reserved pages
		c.clients.setGiven(cl, m.LiveBytes-m.OpenBytes, c.memory.LentBytes())
	}
	if r.wanted() > uint64(c.memory.MaxPages()) { // no client can help
		c.answers.deny(r, nil)
		return
	}
	if from := c.clients.reservation(m.From); from != nil && c.answers.draw(r, from) {
		return
	}
	switch {
	case m.Patience == Waiting:
		c.park(r)
	case !c.waiters.mayPass(r):
		c.answers.deny(r, nil) // it comes back to wait
	default:
		c.scheduler.enqueue(r)
		if r.patience == Patient && !r.done && !c.phase.closing && c.queue.head() != r { // it waits among the waiters, not in the queue
			c.queue.remove(r)
			c.answers.deny(r, nil)
		}
	}
}

// park makes a request wait.
func (c *Core) park(r *request) {
	if c.waiters.count() == 0 { // clients do not report frees while no request waits
		c.waiters.changed()
		for _, cl := range c.clients.all {
			cl.dirty = true
		}
	}
	c.waiters.park(r)
	if int64(r.wanted())*c.memory.PageBytes() > c.settings.LimitBytes { //nolint:gosec // no more than the arena has
		c.answers.deny(r, nil) // no free would help
	}
	c.scheduler.advance()
}

// withdraw drops a request that waits. It reports whether there is such a request.
func (c *Core) withdraw(m Withdraw) bool {
	r := c.waiters.find(m.Client, m.Token)
	if r == nil {
		return false
	}
	r.done = true
	c.answers.unpark(r)
	c.queue.remove(r)
	return true
}

// offered continues a request after its client has tried to serve it. It reports whether there is such a request.
func (c *Core) offered(m Offered) bool {
	r := c.waiters.find(m.Client, m.Token)
	if r == nil || !r.offering {
		return false
	}
	r.offering = false
	c.queue.searchAgain()
	if m.Taken {
		r.done = true
		c.queue.remove(r)
		c.answers.served(r)
	}
	return true
}

// takeBack frees the pages that a client returns, and records its report. It reports whether the client is known.
func (c *Core) takeBack(m Return) bool {
	cl := c.clients.all[m.Client]
	for _, r := range m.Runs {
		if !c.memory.LentTo(r, m.Client) {
			continue // a defect of the stream, since these pages are not lent to it; Check finds the loss
		}
		c.clients.release(cl, uint64(r.Pages))
		c.memory.Free(r, tagOf(cl, m))
		if !m.Final {
			c.memory.SetHome(r, m.Client)
		}
		c.fences.progress++
	}
	if cl == nil {
		return false
	}
	switch {
	case m.Surplus:
		cl.thriftTicks = 2 * c.settings.AgeTicks
	case m.Final && len(m.Runs) > 0:
		cl.wakingTicks = 2 * c.settings.AgeTicks
	}
	switch {
	case cl.gone:
		cl.leftBytes = max(0, m.LiveBytes-m.OpenBytes)
	default:
		c.clients.report(cl, m.LiveBytes)
		c.clients.setGiven(cl, m.LiveBytes-m.OpenBytes, c.memory.LentBytes())
	}
	if m.Answer {
		cl.usage.returned(pagesOf(m.Runs), cl.askedPages)
		c.clients.count(cl)
	}
	answered := cl.note(m)
	if m.Stirred || len(m.Runs) > 0 && !m.Answer {
		c.waiters.changed()
	}
	if m.Answer && cl.moves {
		c.budget.asked(len(m.Runs), m.TookNs)
	}
	if answered && !c.asks.again(cl) {
		c.queue.answered(m.Client)
	}
	c.forget(cl)
	return true
}

func pagesOf(runs []Run) (pages uint32) {
	for _, r := range runs {
		pages += r.Pages
	}
	return pages
}

// tagOf returns the tag of returned runs: none if the fence has passed already.
func tagOf(cl *client, m Return) memory.Tag {
	if m.Fence == 0 || cl.synced || m.Fence <= cl.passed {
		return memory.Tag{}
	}
	return memory.Tag{Client: m.Client, Fence: m.Fence}
}

// passed marks a client's returned memory clean up to a fence that has passed.
func (c *Core) passed(p Passed) {
	cl := c.clients.all[p.Client]
	if cl != nil {
		cl.passed = max(cl.passed, p.Fence)
	}
	c.queue.pass(p)
	c.fences.progress += uint64(c.memory.Pass(p.Client, p.Fence)) //nolint:gosec // a count
	if cl == nil {
		c.memory.Forget(p.Client)
	}
}

// leave denies a client's requests; no more will come. It reports whether the client is known.
func (c *Core) leave(m Leave) bool {
	id := m.Client
	cl := c.clients.all[id]
	if cl == nil {
		return false
	}
	cl.gone, cl.synced, cl.leftBytes = true, m.Synced, cl.givenBytes
	c.clients.report(cl, 0)
	c.clients.setGiven(cl, 0, c.memory.LentBytes())
	if m.Synced {
		c.passed(Passed{Client: id, Fence: ^Fence(0)})
	}
	for _, r := range c.queue.removeOf(id) {
		if !r.waits() {
			c.answers.deny(r, ErrClosed)
		}
	}
	c.answers.denyAll(c.fences.take(id), ErrClosed)
	c.answers.denyAll(c.waiters.of(id), ErrClosed)
	c.waiters.changed() // its fences have passed, or its memory never comes back
	c.forget(cl)
	return true
}

// unreserve ends a reservation: the rest of it is free.
func (c *Core) unreserve(m Unreserve) bool {
	cl := c.clients.all[m.Client]
	if cl == nil || !cl.reserves {
		return false
	}
	for _, run := range cl.reserved {
		c.clients.release(cl, uint64(run.Pages))
		c.memory.Free(run, memory.Tag{}) // no work has used it
		c.fences.progress++
	}
	cl.reserved = nil
	return c.leave(Leave{Client: m.Client, Synced: true})
}

// forget drops a client that is gone and holds nothing, and ends the waits for its answer.
func (c *Core) forget(cl *client) {
	if !cl.gone || cl.heldPages > 0 {
		return
	}
	c.clients.remove(cl.id)
	c.forgetWatches()
	c.waiters.table.Forget(admission.Account(cl.id))
	c.queue.answered(cl.id)
	c.memory.Forget(cl.id)
	effect.Push(&c.fx.Gone, cl.id)
}

// exclude notes whether others may be made to wait for a client's fences. It reports whether the client is known.
func (c *Core) exclude(m Exclude) bool {
	cl := c.clients.all[m.Client]
	if cl == nil {
		return false
	}
	cl.excluded = m.Excluded
	c.fences.progress++ // a request that waits for its fences checks again whether any is left to wait for
	return true
}

// forgetWatches drops the watches over clients that are gone, once no report of them is to come.
func (c *Core) forgetWatches() {
	if j := c.jobs.inFlight; j == nil || len(j.Watch) == 0 {
		c.fences.forget(func(id Client) bool { return c.clients.all[id] == nil })
	}
}

// watchOver notes the end of a watch.
func (c *Core) watchOver(m WatchOver) {
	c.fences.ended(m.Watch)
	c.forgetWatches()
	if m.Err != nil {
		c.answers.denyAll(c.fences.take(0), m.Err) // as if a query had failed
		return
	}
	c.fences.progress++
	c.waiters.changed()
}

// tick performs the periodic work.
func (c *Core) tick() {
	s := &c.scheduler
	s.shrinker.tick(&c.budget)
	c.waiters.retry()
	if r := s.shrinker.overLimit(); r != nil && c.queue.empty() && !c.phase.closing {
		s.enqueue(r)
	}
	s.advance()
	if s.rests() && c.queue.empty() {
		s.shrinker.age(&c.clients)
	}
	if s.rests() {
		c.jobs.poll(nil)
	}
}

// jobDone enters the result of a job and continues its request. It reports whether that job was in flight.
func (c *Core) jobDone(m JobDone) bool {
	j := m.Job
	if j == nil || j != c.jobs.inFlight {
		return false
	}
	c.jobs.inFlight = nil
	for _, p := range m.Passed {
		c.passed(p)
		j.Parts.Pass(p.Client, p.Fence)
	}
	if len(j.Watch) > 0 {
		c.fences.begun(m.Watched)
		c.forgetWatches()
	}
	out := c.memory.Finish(&j.Job, m.Done, m.Err != nil)
	r := j.request
	switch { // the report of a Warm or Trim
	case r == nil:
	case r.kind == trim:
		r.freed -= out.GrownBytes
	case r.kind == warm && m.Err == nil:
		r.freed += out.GrownBytes
	}
	if m.Err != nil {
		c.jobFailed(j, out, m)
		return true
	}
	if j.Purpose == memory.Fill {
		c.budget.learn(j.Created(), j.Moved(), m.TookNs)
	}
	if j.Idle {
		r.idle = m.Idle
	}
	if j.Purpose == memory.Fill {
		c.filled(j)
	}
	return true
}

// filled grants a window that was filled. If its request has been served since, or was a warm-up, the window is free for any
// request; the warm-up then finds it.
func (c *Core) filled(j *Job) {
	r := j.request
	if r.done || r.kind == warm || j.Window.Pages < r.pages { // it may have such a run already, and look for a longer one
		c.memory.FreeParts(j.Parts, j.Window)
		return
	}
	r.mapped = true
	if c.answers.grantWindow(r, j.Parts, j.Window) {
		c.queue.remove(r)
	}
}

// jobFailed continues after a job that failed, and starts the rollback of its remains.
func (c *Core) jobFailed(j *Job, out memory.Outcome, m JobDone) {
	r := j.request
	switch j.Purpose {
	case memory.Nothing:
		if r != nil {
			r.err, r.rung, r.stage = m.Err, rungDeny, stageFailed
			if r.kind == ownWay && errors.Is(m.Err, cudadrv.OutOfMemory) { // a Wake: its refusal says what the driver has
				r.capped, r.capBytes = true, c.memory.ReservedBytes()+max(0, m.FreeBytes)
			}
		}
	case memory.Fill:
		c.scheduler.ladder.jobFailed(r, out, m.Err, m.FreeBytes)
	case memory.Shrink:
		if r != nil {
			r.err = m.Err
		} else {
			c.scheduler.shrinker.failed = true
		}
	case memory.Rollback, memory.CloseAll:
	}
	if len(out.Undo.Ops) == 0 {
		return
	}
	next := &Job{Job: out.Undo}
	if next.Purpose == memory.Rollback && r != nil && r.kind == trim { // its rollback counts
		next.request = r
	}
	c.jobs.start(next)
}

// newRefill returns the request that a Refill makes.
func newRefill(m Refill) *request {
	r := &request{
		kind: refill, client: m.Client, token: m.Token,
		wish: wish{
			pages: max(1, m.Pages), more: m.More, most: m.Most, bytes: m.Bytes,
			requestedBytes: m.RequestedBytes, blockBytes: m.BlockBytes,
		},
		waiting: waiting{patience: m.Patience, place: m.Place},
		ascent:  ascent{rung: rungLook},
	}
	if len(r.more) > 0 {
		r.wants = append([]uint32{r.pages}, r.more...)
	}
	return r
}
