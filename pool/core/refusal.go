package core

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

const (
	// mostRefusals is how often the driver may refuse memory to one request before that is denied. Not fewer: a driver that says it has
	// more than it gives, and others that take memory meanwhile, cost a refusal each, and then the last two resorts follow. Not more:
	// every refusal gives free handles back, after the last none is left.
	mostRefusals = 5
	// clearingRefusals is after how many of them a recycling gives back all that is free, and holesRefusals after how many none of it
	// is kept where it lies: then all that the driver has is there for the request.
	clearingRefusals = mostRefusals - 2
	holesRefusals    = mostRefusals - 1
)

// failRequest decides how a request goes on after its job failed at an operation: with the memory that the process has if the driver
// has none, otherwise not at all. Where only the wait failed it goes on without one.
func (c *Core) failRequest(j *Job, at Verb, m JobDone) {
	r := j.request
	if at == Await && !r.unborrowed { // nothing has changed, and there are other ways
		r.unborrowed = true
		return
	}
	r.err, r.rung = m.Err, rungDeny
	if errors.Is(m.Err, cudadrv.OutOfMemory) && r.refusals < mostRefusals {
		c.learnCap(r, j, m.FreeBytes)
		r.rung = rungAskAll
	}
}

// learnCap notes what the driver can give in all, which holds for this request like a limit: what it had given when it refused, and
// what it says that it has left. Where it does not say, that is what it had given before the job, since all that the job gave back can
// be had again. A cap that the driver does not keep falls with every refusal: the job would have made no more than the last one.
func (c *Core) learnCap(r *request, j *Job, freeBytes int64) {
	capBytes := c.reservedBytes + max(0, freeBytes)
	if freeBytes <= 0 {
		capBytes = max(c.reservedBytes, j.startBytes)
	}
	if r.capped && capBytes >= r.capBytes {
		capBytes = c.reservedBytes
	}
	r.capped, r.capBytes, r.askedAll = true, capBytes, false
	r.refusals++
}

// forgiveRefusals lets the last resorts be tried once more after a wait for a fence: while memory was pending it could not go back to the
// driver. What the driver can give stays as it was learned, so that every further refusal lowers it and the request ends.
func (r *request) forgiveRefusals() { r.refusals = min(r.refusals, clearingRefusals) }

// within is a bound on what may be reserved, for a request to which the driver may have refused memory.
func (r *request) within(bytes int64) int64 {
	if r.capped {
		return min(bytes, r.capBytes)
	}
	return bytes
}

// askOthers has the others return what they do not use where growing would break the budget or what the driver can give. After a
// refusal its own client is asked again: memory may have come home to it meanwhile.
func (c *Core) askOthers(r *request) {
	if w, ok := c.room(r.client, r.pages); ok && c.reservedBytes+c.bytes(w.missing) <= r.within(c.softBudget()) {
		return
	}
	r.askedAll = true
	c.ask(r, func(cl *client) bool {
		return cl.heldPages > 0 && (r.id == 0 || cl.dirty) && (r.capped || cl.id != r.client)
	})
}
