package core

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
)

// Apart makes all later memory of a client lie in handles without pages of others: only then can it sleep. Such a client gets
// new handles, or whole handles that are moved, and no free pages. It makes requests without Wait, and returns nothing before
// it leaves.
func Apart(id Client) Special { return Special{joinApart{id}} }

// Sleep releases the physical memory of all pages of a client. The pages stay lent. The device must have finished all work on
// them. The End with that token has the bytes that sleep then, also if a call has failed: another Sleep releases the rest.
func Sleep(id Client, token uint64) Special {
	return Special{beginSleep{id, token, func(s *scheduler) way { return sleepWay{s} }}}
}

// Wake gives the pages of a client that sleep physical memory again, at the same addresses. Where free memory of others is in
// the way, of the limit or of the driver, it is released first. The End with that token has an error where that is not enough,
// a *ShortError, or a call has failed: then all pages of the client sleep. Nothing waits for work of the device.
func Wake(id Client, token uint64) Special {
	return Special{beginSleep{id, token, func(s *scheduler) way { return wakeWay{s} }}}
}

// ShortError refuses a Wake for want of memory.
type ShortError struct {
	Shortage
	Err error // of the driver, if that refused
}

// Error formats the figures.
func (e *ShortError) Error() string {
	return fmt.Sprintf("pool: %s are missing to wake memory: %s of a limit of %s are reserved",
		units.Bytes(e.MissingBytes), units.Bytes(e.ReservedBytes), units.Bytes(e.LimitBytes))
}

// Unwrap returns the driver's error.
func (e *ShortError) Unwrap() error { return e.Err }

type joinApart struct{ client Client }

func (m joinApart) enter(c *Core) bool {
	if cl := c.clients.all[m.client]; cl != nil {
		cl.way = apartWay{&c.scheduler.ladder}
	}
	return false
}

type beginSleep struct {
	client Client
	token  uint64
	way    func(*scheduler) way
}

func (m beginSleep) enter(c *Core) bool {
	c.scheduler.enqueue(&request{kind: ownWay, way: m.way(&c.scheduler), client: m.client, token: m.token})
	return false
}

// apartWay finds memory for a Refill of a client whose handles hold no other's pages. It shares the last rungs of the ladder.
type apartWay struct{ *ladder }

func (w apartWay) climb(r *request) bool {
	if r.rung == rungWait || r.rung == rungHold || r.rung == rungDeny {
		return w.ladder.climb(r)
	}
	w.grow(&w.grower, r)
	return false
}

// grow fills a window of holes with new handles, or with whole free ones that are moved there. Before it takes those, all
// clients return their unused memory, and fences are polled.
func (apartWay) grow(g *grower, r *request) {
	window, ok := g.memory.Beyond(r.pages)
	if !ok {
		r.rung = rungDeny
		return
	}
	g.budget.notePeak(r)
	over := g.budget.reservedWith(window.Missing) - g.budget.within(r, g.settings.LimitBytes)
	switch {
	case over <= 0:
		g.jobs.fill(r, window.Run, nil)
	case !r.askedAll:
		r.askedAll, r.rung = true, rungPoll
		g.asks.askEach(r, func(cl *client) bool { return cl.id != r.client })
	case r.rung == rungPoll:
		r.rung = rungRecycle
		g.jobs.poll(r)
	default:
		if r.refusals >= clearingRefusals {
			over = max(over, g.memory.ReservedBytes())
		}
		ids, bytes := g.memory.Victims(over, window.Run)
		if r.rung = rungWait; g.budget.reservedWith(window.Missing)-bytes <= g.budget.within(r, g.settings.LimitBytes) {
			g.budget.recycled(len(ids), bytes)
			g.jobs.fill(r, window.Run, ids)
		}
	}
}

// sleepWay is the climb of a Sleep: one job.
type sleepWay struct{ *scheduler }

func (s sleepWay) climb(r *request) bool {
	switch {
	case s.clients.all[r.client] == nil:
		r.err = ErrClosed
	case r.stage == stageBegin:
		r.stage = stageEnd
		job := &Job{request: r}
		if s.memory.PlanSleep(&job.Job, r.client); len(job.Ops) > 0 {
			s.jobs.start(job)
			return false
		}
	}
	r.freed = s.memory.WakeBytes(r.client)
	s.answers.end(r, r.err)
	return true
}

// wakeTries is how often a Wake asks the driver for memory. Not fewer: the second follows when as much as it wants was released
// where that is free, the third when everything was. Not more: nothing is left to release then.
const wakeTries = 3

// wakeWay is the climb of a Wake.
type wakeWay struct{ *scheduler }

func (s wakeWay) climb(r *request) bool {
	if s.clients.all[r.client] == nil {
		s.answers.end(r, ErrClosed)
		return true
	}
	wantedBytes := s.memory.WakeBytes(r.client)
	over := s.memory.ReservedBytes() + wantedBytes - s.settings.LimitBytes
	switch r.stage {
	case stageBegin:
		if over > 0 {
			r.stage = stageAsk
			return false
		}
		return s.wake(r)
	case stageAsk:
		r.stage = stagePoll
		s.ladder.asks.askEach(r, func(cl *client) bool { return cl.id != r.client })
	case stagePoll:
		r.stage = stageRelease
		s.jobs.poll(r)
	case stageRelease:
		r.stage, r.err = stageEnd, nil
		switch r.refusals {
		case 0:
			s.jobs.shrink(r, over)
		case 1:
			s.jobs.shrink(r, max(over, wantedBytes))
		default:
			s.jobs.shrink(r, s.memory.ReservedBytes())
		}
	case stageEnd:
		if over > 0 {
			return s.refuse(r, wantedBytes, nil)
		}
		return s.wake(r)
	case stageFailed:
		if !errors.Is(r.err, cudadrv.OutOfMemory) {
			s.answers.end(r, r.err)
			return true
		}
		if r.refusals++; r.refusals == wakeTries {
			return s.refuse(r, wantedBytes, r.err)
		}
		r.stage = stageAsk
	}
	return false
}

// wake starts the job. It reports whether nothing is left to do.
func (s wakeWay) wake(r *request) bool {
	job := &Job{request: r}
	if s.memory.PlanWake(&job.Job, r.client); len(job.Ops) == 0 {
		s.answers.end(r, nil)
		return true
	}
	s.jobs.start(job)
	return false
}

func (s wakeWay) refuse(r *request, wantedBytes int64, err error) bool {
	r.pages, r.requestedBytes = uint32(wantedBytes/s.memory.PageBytes()), wantedBytes //nolint:gosec // pages of one arena
	s.answers.end(r, &ShortError{s.answers.shortage(r), err})
	return true
}
