package core

import "github.com/go-vram/vram/internal/pool/memory"

// scheduler decides which request is served next.
type scheduler struct {
	settings *Settings
	memory   *memory.Memory
	clients  *clients
	queue    *queue
	waiters  *waiters
	fences   *fences
	answers  *answers
	jobs     *jobs
	phase    *phase

	ladder     ladder
	warmer     warmer
	shrinker   shrinker
	noProgress noProgress
}

// enqueue adds a request to the queue and advances. It refuses the request once the pool closes.
func (s *scheduler) enqueue(r *request) {
	if s.phase.closing {
		s.answers.end(r, ErrClosed)
		return
	}
	s.queue.push(r)
	s.advance()
}

// advance serves the queue, first in first out, and then tries the waiters. Every request may use free memory; only the first
// may ask, grow or recycle, so that two requests never take from each other.
func (s *scheduler) advance() {
	if !s.phase.closing {
		if due := s.fences.takeDue(); len(due) > 0 {
			s.queue.pushFront(due)
		}
	}
	s.serveFree()
	if s.yield() {
		s.serveFree()
	}
	for s.rests() {
		if s.queue.empty() && !s.admit() {
			break
		}
		r := s.queue.head()
		if r.awaiting() {
			return
		}
		if s.climb(r) {
			s.queue.remove(r)
		} else if s.jobs.inFlight != nil || r.awaiting() {
			return
		}
		s.serveFree()
	}
	if s.rests() {
		if s.clients.unclaimed && s.waiters.count() == 0 && len(s.fences.held) == 0 { // else it is collected for those
			s.lendHome()
		}
		s.shrinker.bound()
	}
}

// lendHome lends collected memory back: to the client that was asked for its own sake, and to the others once clients do not
// miss in turns, but to no adopted one. That may be unable to return the memory again before its callers' next request, and
// requests of others might wait for it until then.
func (s *scheduler) lendHome() {
	asker, inTurns := s.clients.asker, s.clients.climbs > 0
	s.clients.asker = 0
	s.clients.unclaimed = inTurns // it was true
	if inTurns && asker == 0 {
		return
	}
	s.answers.lendHome(func(cl *client) bool { return cl.id == asker || !inTurns && !cl.adopted })
}

// rests reports whether a job may be started.
func (s *scheduler) rests() bool { return s.jobs.inFlight == nil && !s.phase.closing }

// serveFree grants free memory, in the order of the queue.
func (s *scheduler) serveFree() { s.queue.serve(s.memory.Inserts, s.answers.grantFree) }

// yield restarts warm-ups that hold memory when a refill waits: a refill is never denied or kept waiting for their memory. It
// reports whether there was any.
func (s *scheduler) yield() (yielded bool) {
	if len(s.queue.refills) == 0 || s.phase.closing {
		return false
	}
	for _, r := range s.queue.others {
		if s.warmer.letGo(r) {
			yielded = true
		}
	}
	return yielded
}

// climb takes the next step of a request whose search failed. It reports whether the request leaves the queue; if not, either a
// job is in flight, or answers are awaited, or the next step is to be tried.
func (s *scheduler) climb(r *request) bool {
	if r.way != nil {
		return r.way.climb(r)
	}
	switch r.kind {
	case warm:
		return s.warmer.climb(r)
	case trim:
		return s.shrinker.climb(r)
	case gather:
		return s.noProgress.climb(r)
	case refill, ownWay:
	}
	return s.ladder.climb(r)
}

// admit enqueues the next waiter, or the next step if none of them makes progress. It reports whether there is anything.
func (s *scheduler) admit() bool {
	for {
		if r := s.waiters.next(); r != nil {
			s.queue.push(r)
			return true
		}
		if !s.noProgress.resolve() {
			return false
		}
		if !s.queue.empty() {
			return true
		}
	}
}
