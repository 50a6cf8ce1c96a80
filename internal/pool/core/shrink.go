package core

import "github.com/go-vram/vram/internal/pool/memory"

// shrinker gives memory back to the driver.
type shrinker struct {
	settings *Settings
	memory   *memory.Memory
	answers  *answers
	asks     *asks
	jobs     *jobs

	failed bool   // the driver took nothing back: it is not asked before a Tick again
	window uint32 // ticks since peaks were forgotten last
}

// climb takes the next step of a trim: clients return unused pages, fences are polled, clean handles go back to the driver. It
// reports whether the request is done.
func (s *shrinker) climb(r *request) bool {
	switch r.stage {
	case stageBegin, stageAsk:
		r.stage = stagePoll
		if s.memory.ReservedBytes() > r.keepBytes {
			s.asks.askEach(r, everyone)
		}
	case stagePoll:
		r.stage = stageRelease
		s.jobs.poll(r)
	case stageRelease:
		r.stage = stageEnd
		if r.err == nil {
			s.jobs.shrink(r, s.memory.ReservedBytes()-r.keepBytes)
		}
	case stageEnd, stageFailed:
		s.answers.end(r, r.err)
		return true
	}
	return false
}

// bound releases free memory beyond the bounds of the cache, in bytes and in runs, and beyond a lowered limit, whenever no
// request needs the driver. Of the runs the shortest go whole: a handle out of a longer one would leave two. After a failure it rests until the next Tick, so that a driver that refuses is not asked without end.
func (s *shrinker) bound() {
	if s.failed {
		return
	}
	m := s.memory
	over := m.ReservedBytes() - s.settings.LimitBytes
	if s.settings.CacheBytes > 0 {
		over = max(over, m.FreeBytes()-s.settings.CacheBytes)
	}
	if over > 0 && s.jobs.shrink(nil, over) {
		return
	}
	if s.settings.CacheRuns > 0 && m.CleanRuns() > s.settings.CacheRuns {
		s.jobs.release(nil, m.ShortestRun())
	}
}

// overLimit returns a trim of the pool's own if a limit was lowered below the reserved bytes: clients are asked for unused
// pages, tick by tick. Otherwise it returns nil.
func (s *shrinker) overLimit() *request {
	if s.memory.ReservedBytes() <= s.settings.LimitBytes {
		return nil
	}
	return &request{kind: trim, keepBytes: s.settings.LimitBytes}
}

// oldHandles is how many handles go back to the driver for their age at a tick. Not more: that
// takes an H200's driver five milliseconds, in which no request is served that needs it. Not fewer:
// so 24 GiB of handles of one page take five seconds.
const oldHandles = 256

// tick counts the age of free memory, and forgets old peaks.
func (s *shrinker) tick(b *budget) {
	s.failed = false
	after := s.settings.AgeTicks
	if s.memory.Tick(); after == 0 {
		return
	}
	if s.window++; s.window >= after {
		s.window = 0
		b.roll()
	}
}

// age releases old memory. Plain segments stay: freeing one waits for all work of the device. Clients that have returned a
// surplus are lent little as long as any memory is old.
func (s *shrinker) age(cs *clients) {
	after := s.settings.AgeTicks
	if s.failed {
		return
	}
	if after == 0 || s.memory.Plain() || !s.jobs.release(nil, s.memory.Old(after, oldHandles)) {
		cs.tick()
	}
}
