package streams

import (
	"context"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/fence/line"
)

// fencing is what is to be done about the blocks that wait for another stream.
type fencing struct {
	line   *fence.Timeline
	number uint64 // take a fence that covers it; 0: none
	look   bool   // see how far the device is
}

// perform reports whether more has passed than before, or a fence was lost.
func (f fencing) perform() (advanced bool) {
	_ = guard(f.line.Panics, func() (err error) { // what cannot be taken or asked now is due again
		if f.look {
			if advanced, err = f.line.Look(); err != nil {
				return err
			}
		}
		if f.number == 0 || !f.line.Owed(f.number) {
			return nil
		}
		_, err = f.line.Take(f.number)
		return err
	})
	return advanced
}

// fence leaves the fences that are due: those for which enough waits, or, where all is set, any.
func (s *Stream) fence(all bool) {
	s.core.Due(all || s.draining, func(l *line.Line, number uint64) bool {
		e := s.effects()
		e.fences = append(e.fences, fencing{timeline(l), number, true})
		return true
	})
}

// look leaves a look at every fence that something waits for, and takes those that are missing first.
func (s *Stream) look() {
	s.fence(true)
	s.eachLook()
}

// background is look for a tick, which looks at what was taken before it. It takes no fence on a stream of the caller's.
func (s *Stream) background() {
	s.eachLook()
	s.takeOwn()
}

// eachLook leaves a look at every fence that something waits for.
func (s *Stream) eachLook() {
	s.core.EachLine(func(l *line.Line, _ uint64) {
		e := s.effects()
		e.fences = append(e.fences, fencing{timeline(l), 0, true})
	})
}

// takeOwn leaves the fences that are missing, save those on streams of the caller's.
func (s *Stream) takeOwn() {
	s.core.Due(true, func(l *line.Line, number uint64) bool {
		t := timeline(l)
		if !t.Lent() {
			e := s.effects()
			e.fences = append(e.fences, fencing{t, number, false})
		}
		return !t.Lent()
	})
}

// publish tells the peers whether anything is pending and what the stream holds, and sees to the fences that are due. It ends every turn.
func (s *Stream) publish() {
	waits := s.core.Waits()
	if waits != s.waits.Load() {
		s.waits.Store(waits)
	}
	if held := s.core.HeldBytes(); held != s.heldBytes.Load() {
		s.heldBytes.Store(held)
	}
	if waits {
		s.fence(false)
	}
}

// Piled implements magazine.Waker: the goroutine of a free sees to the blocks that other streams used, if nobody is
// in the turn.
func (s *Stream) Piled() {
	if !s.ref.TryEnter() {
		return
	}
	var left actors.Effects
	s.sort(&left)
	if left != nil {
		s.ref.Perform(left)
	}
}

func (s *Stream) sort(left *actors.Effects) {
	defer s.ref.Exit(left, nil)
	s.core.Drain()
	s.giveUp()
}

// Collect takes home what announced uses kept that have finished, and sees to the fences for all others. It does
// nothing if somebody is in the stream's turn, and does not wait.
func (s *Stream) Collect() {
	if !s.opened() || !s.ref.TryEnter() {
		return
	}
	var left actors.Effects
	s.collect(&left)
	s.ref.Perform(left)
}

func (s *Stream) collect(left *actors.Effects) {
	defer s.ref.Exit(left, nil)
	s.core.Drain()
	s.giveUp()
	s.look()
}

// Sweep is Collect that waits for the turn at hand: what has finished when it is called is home when it returns. To those who look at a
// fence at the same time it gives some time to say what they saw; it waits for nothing else. The error is that of a stream that has
// ended, or the context's.
func (s *Stream) Sweep(ctx context.Context) error {
	o := &order{verb: orderFences}
	if _, err := s.order(ctx, o); err != nil {
		return err
	}
	for _, f := range o.fences {
		fencing{f.line, f.number, true}.perform()
		fencing{f.line, 0, true}.perform() // what was taken just now may have passed
		for n := 0; n < mostYields && f.line.Busy() && !f.line.Passed(f.number); n++ {
			actors.Yield(s.host)
			fencing{f.line, 0, true}.perform()
		}
	}
	_, err := s.order(ctx, &order{verb: orderPassed})
	return err
}

// mostYields is how often a sweep lets others go on who are at a fence: some tenths of a millisecond on an idle processor. Not more: one
// that is held up in a driver call would hold the sweep up.
const mostYields = 1000

// searching is what has happened before a search for a request.
type searching uint8

const (
	firstSearch searching = iota // nothing
	afterFences                  // a look that was due in any case
	afterLook                    // a look for the request's sake at the fences that there were
	afterTake                    // a look at fences that were taken for its sake
)

// seek ends a search. Where that found nothing and it may help, it leaves a look at the fences that keep memory: the request
// is then served once more before the pool is asked, and next says so. First the fences that were taken
// are looked at; those that are missing are taken where none is left to wait for.
func (s *Stream) seek(before searching, found bool, bytes int64) (next searching) {
	if !found && s.core.Scarce(bytes) {
		next = s.leaveSeek(before)
	}
	if next == firstSearch && before >= afterLook {
		s.learn(found)
	}
	return next
}

func (s *Stream) leaveSeek(before searching) searching {
	switch {
	case before == afterFences || before == afterTake:
		return firstSearch
	case before == firstSearch && s.restLooks > 0:
		s.restLooks--
		return firstSearch
	}
	next := firstSearch
	s.core.EachMissing(func(l *line.Line, number uint64) {
		e := s.effects()
		switch {
		case number > 0:
			e.fences = append(e.fences, fencing{timeline(l), number, false}, fencing{timeline(l), 0, true})
			next = afterTake
		case before == firstSearch:
			e.fences = append(e.fences, fencing{timeline(l), 0, true})
			next = max(next, afterLook)
		}
	})
	if next != firstSearch {
		s.effects().sought = next
	}
	return next
}

// mostRest is how many misses in a row go to the pool without a look at fences, after several looks were in vain. Not
// more: what has passed meanwhile is memory that the pool need not give. Not fewer: each look asks the driver about
// every stream that is waited for.
const mostRest = 31

// learn notes what a look has brought.
func (s *Stream) learn(served bool) {
	if served {
		s.vainLooks = 0
	} else {
		s.vainLooks = min(s.vainLooks*2+1, mostRest)
	}
	s.restLooks = s.vainLooks
}

// looked says that fences have passed, or that one was lost and is to be taken once more.
type looked struct{ actors.Link }

// Fail has nobody to tell.
func (*looked) Fail(error) {}

// passed takes home what was freed by that.
func (s *Stream) passed() {
	s.core.Drain()
	s.core.Renew()
	s.giveUp()
	if !s.draining {
		s.shed(inBackground)
	}
}
