package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/go-vram/vram/streams"
)

// crossed is a caller who submits work of a stream on a buffer of any stream, as package cuda does.
func (w *world) crossed(s *stream, act action) func() {
	return w.sharing(s, act, func(b *buffer, s *stream) { w.cross(b, s, act.c|1) })
}

// crossed is what is known of the works of streams on a buffer that several use: until when the device does the last one that
// wrote, and those that have read since.
type crossed struct {
	known        bool // several use it
	wrote, reads time.Duration
}

// after returns until when a work has to wait.
func (x *crossed) after(write bool) time.Duration {
	if write {
		return max(x.wrote, x.reads)
	}
	return x.wrote
}

// submitted notes a work.
func (x *crossed) submitted(write bool, until time.Duration) {
	if write {
		x.wrote, x.reads = max(x.wrote, until), 0
	} else {
		x.reads = max(x.reads, until)
	}
}

// cross submits work that reads or writes a buffer, after the works that it must follow: at first all of the buffer's stream.
// Other tasks run between any two steps, and a capture of one of the streams begins before the work or after it.
func (w *world) cross(b *buffer, s *stream, kernel uint32) {
	work, err := streams.NewSubmitter(s.Stream)
	if err != nil || b.stream.era != s.era {
		return
	}
	w.unhold(b) // nobody frees it during the call
	defer w.hold(b)
	owner, since, write := b.stream, w.moment, kernel&2 != 0
	plain, err := work.Check(b.Buffer, true)
	x := &b.crossed
	if err == nil && !plain && !x.known {
		x.known = true
		if !owner.closing && !owner.capture.active {
			x.wrote = w.drainedAt(owner.Handle())
		}
	}
	crossing := work.Crossing()
	defer crossing.Leave()
	t := w.current
	t.transfers = true
	if err = crossing.Touch(b.Buffer, write, 0); err == nil {
		_, err = crossing.Begin()
	}
	t.transfers = false
	if err != nil {
		w.uncrossed(owner, s, since, err)
		return
	}
	if owner != s {
		b.shares = append(b.shares, share{on: s})
	}
	if err := work.Enter(false); err != nil {
		w.uncrossed(owner, s, since, err)
		return
	}
	defer work.Leave()
	w.reach("a launch")
	switch {
	case s.capture.active && s.capture.announced:
		w.broken("capture", "a capture of stream %d begins while work is being submitted", s.id())
	case s.capture.active || s.closing || s.era.closing:
		return
	case x.known && w.mutation != mutateWait && max(w.watch.Now(), w.drainedAt(s.Handle())) < x.after(write):
		w.broken("order", "work of stream %d on %v of stream %d does not wait for the works before it", s.id(), b.span, owner.id())
	}
	w.submit(b, s, kernel)
	if x.known {
		x.submitted(write, w.drainedAt(s.Handle()))
	}
	crossing.After()
	w.report.Crossings++
}

// uncrossed checks that the error of work that was not submitted has a possible reason.
func (w *world) uncrossed(owner, s *stream, since uint64, err error) {
	refused, why := w.refusedByCapture(err, since)
	closing := s.era.closing || slices.ContainsFunc(s.era.streams, func(o *stream) bool { return o.closing }) // also one that used the memory
	if why != "" || !refused && !w.disturbed() && (!closing || !errors.Is(err, streams.ErrClosed)) {
		w.broken("answer", "work of stream %d on a buffer of stream %d is refused: %w: %s", s.id(), owner.id(), err, why)
	}
}
