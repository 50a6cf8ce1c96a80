package streams

import (
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
)

// Lease keeps memory of other streams for launches of a graph, as a Hold does, but only until its own End:
// arguments that can be replaced. Its timeline takes no fence before that, so that a buffer that is freed
// during that time stays pending.
//
//	kept      Keep: frees of these buffers wait
//	ended     End: they wait for the work that End was given, by a fence on the hold's stream
//	finished  that fence has passed, or the hold has ended: nothing waits, and after Finish buffers drop the timeline
type Lease struct {
	hold  *Stream
	line  *fence.Timeline
	ended atomic.Bool
	last  uint64 // the fence that End took, or the next one; Finish reads it, after End
}

// NewLease makes a lease. It makes no driver call.
func (h Hold) NewLease() *Lease {
	c := &h.s.cuda
	l := &Lease{hold: h.s}
	l.line = fence.NewTimeline(c.fences, c.stream, false, (*leaseRecording)(l))
	l.line.Panics = c.panics
	return l
}

// Keep keeps the memory of a buffer that is freed from now on. Errors: as for Buffer.RecordStream.
func (l *Lease) Keep(b Buffer) error {
	const call = "Buffer.RecordStream"
	home, err := b.usable(call, l.hold)
	if err != nil || home == l.hold {
		return err
	}
	return b.useError(call, b.slot.RecordLine(b.word, &l.line.Line))
}

// End releases the memory after all work that was submitted so far to streams. It makes two driver calls for
// each of them, and records an event. It does not wait. After an error the lease is unchanged, and End may be
// called again.
func (l *Lease) End(after ...*Stream) error {
	c := &l.hold.cuda
	for _, s := range after {
		if _, err := c.follow(s.cuda.line, "ending a lease"); err != nil {
			return err
		}
	}
	l.last = l.line.Next()
	l.ended.Store(true)
	_ = guard(c.panics, func() error { l.last = l.line.TakeNow(); return nil }) // else a stream that waits takes it
	return nil
}

// Ended reports whether End has succeeded.
func (l *Lease) Ended() bool { return l.ended.Load() }

// Finish finishes the lease if the work given to End has finished, or the hold has ended, and reports whether
// it did. It does not wait for the device. Call it from one goroutine at a time.
func (l *Lease) Finish() bool {
	c := &l.hold.cuda
	if !c.line.Finished() {
		if !l.Ended() {
			return false
		}
		fencing{l.line, l.last, true}.perform()
		if !l.line.Passed(l.last) {
			return false
		}
	}
	l.line.Shut()
	for !l.line.Idle() {
		actors.Yield(l.hold.host)
	}
	l.line.Finish()
	return true
}

// leaseRecording is a lease for its timeline.
type leaseRecording Lease

// Enter implements fence.Recording.
func (r *leaseRecording) Enter() error {
	c := &r.hold.cuda
	switch {
	case c.line.Finished(): // also where nobody has ended the lease
		r.line.Line.Finish()
		return c.closed()
	case !r.ended.Load():
		return errHeld
	case !c.begin():
		return c.closed()
	}
	err := c.enter("cuEventRecord")
	if err != nil {
		c.done()
	}
	return err
}

// Check implements fence.Recording.
func (r *leaseRecording) Check() error { return r.hold.cuda.uncaptured("cuEventRecord") }

// Leave implements fence.Recording.
func (r *leaseRecording) Leave() {
	r.hold.cuda.announcement.leave()
	r.hold.cuda.done()
}
