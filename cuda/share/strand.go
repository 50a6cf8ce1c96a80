package share

import (
	"errors"
	"time"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// A stream that waits for the event of a peer waits for ever if the peer dies before the event is reached, and the driver does
// not report that. So each wait has a mark on either side: a stream is stranded if, some time after the death of the peer, it
// has reached the first mark of a wait and not the second. Long work of the stream is never between two marks. Calls do not
// wait for a stranded stream, unless it reaches the second mark after all.

// wait is one wait of a stream for the peer's event.
type wait struct {
	before, after cudadrv.Event
	open          bool // the driver failed to record after: it is recorded later, after more of the stream's work
	came          bool // before was reached at the last check
}

// waits are the waits of a stream that may not have passed yet, in order.
type waits struct {
	all   []*wait
	stuck bool // the stream was stranded because of the first
}

// spareWaits is how many waits that have passed are kept for their events. Not fewer: a stream has some on the way where the
// host runs ahead. Not more: a stream makes its own in a few microseconds.
const spareWaits = 8

// wait makes later work of a context wait for the peer's event, between marks.
func (m *Memory) wait(c *cuda.Context, l *link) error {
	m.marking.Lock()
	defer m.marking.Unlock()
	work, err := streams.NewSubmitter(c.Stream())
	if err != nil {
		return err
	}
	tail := work.Tail()
	q := m.marked[tail]
	if q == nil {
		m.forgetPassed()
		q = &waits{}
		m.marked[tail] = q
		tail.MayStrand()
	}
	if err := m.advance(tail, q); err != nil {
		return err
	}
	w, err := m.newWait()
	if err != nil {
		return err
	}
	submitted := false
	err = c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
		if err := device.EventRecord(w.before, on); err != nil {
			return err
		}
		if err := uncaptured(c); err != nil { // the wait for the peer's event would end the capture
			return err
		}
		if err := device.StreamWaitEvent(on, l.theirs); err != nil {
			return err
		}
		submitted = true
		err := device.EventRecord(w.after, on)
		if err == nil {
			err = uncaptured(c)
		}
		w.open = err != nil
		return err
	})
	if !submitted {
		return errors.Join(err, m.drop(w))
	}
	q.all = append(q.all, w)
	return err
}

// newWait returns a wait with its events.
func (m *Memory) newWait() (*wait, error) {
	w := &wait{}
	if n := len(m.spare); n > 0 {
		w = m.spare[n-1]
		m.spare = m.spare[:n-1]
		w.open, w.came = false, false
	}
	for _, e := range []*cudadrv.Event{&w.before, &w.after} {
		if *e != 0 { // else one that drop has destroyed, and not the other
			continue
		}
		made, err := m.device.EventCreate()
		if err != nil {
			return nil, errors.Join(err, m.drop(w))
		}
		*e = made
	}
	return w, nil
}

// drop keeps the events of a passed wait for reuse, or destroys them. Close retries those that the driver did not destroy.
func (m *Memory) drop(w *wait) error {
	if len(m.spare) < spareWaits && w.before != 0 && w.after != 0 {
		m.spare = append(m.spare, w)
		return nil
	}
	err := m.destroy(w)
	if err != nil {
		m.spare = append(m.spare, w)
	}
	return err
}

// destroy destroys the events of a wait. It may be called again.
func (m *Memory) destroy(w *wait) error {
	for _, e := range []*cudadrv.Event{&w.before, &w.after} {
		if *e == 0 {
			continue
		}
		if err := m.device.EventDestroy(*e); err != nil {
			return err
		}
		*e = 0
	}
	return nil
}

// forgetPassed checks two streams, and forgets them if all their waits have passed: this bounds their number, since each call
// marks one more. The next check finds an error again.
func (m *Memory) forgetPassed() {
	looks := 0
	for tail, q := range m.marked {
		if looks++; looks > 2 {
			return
		}
		if m.advance(tail, q) == nil && len(q.all) == 0 {
			delete(m.marked, tail)
		}
	}
}

// advance drops the waits of a stream that have passed.
func (m *Memory) advance(tail *streams.Tail, q *waits) error {
	for len(q.all) > 0 {
		passed, err := m.passed(tail, q)
		if !passed { // also with an error
			return err
		}
		if q.stuck {
			q.stuck = false
			tail.Unstrand()
		}
		w := q.all[0]
		q.all = q.all[1:]
		if err := m.drop(w); err != nil {
			return err
		}
	}
	return nil
}

// passed reports whether the first wait of a stream has passed. One that is open has if a later one has begun; where there is
// none the mark is recorded now.
func (m *Memory) passed(tail *streams.Tail, q *waits) (bool, error) {
	w := q.all[0]
	switch {
	case tail.Finished():
		return true, nil
	case !w.open:
		return m.device.EventQuery(w.after)
	case len(q.all) > 1:
		return m.device.EventQuery(q.all[1].before)
	}
	c, err := cuda.NewContext(tail.Stream())
	if err == nil { // else the stream is being closed, and Finished says when it has finished
		err = c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
			if err := device.EventRecord(w.after, on); err != nil {
				return err
			}
			return uncaptured(c)
		})
	}
	w.open = err != nil
	return false, err
}

// watch ends waits for streams that wait for a dead peer. It looks at them from some time after the death on, and returns when
// the memory is settled or no stream waits.
func (m *Memory) watch(l *link) {
	if errors.Is(l.over(), ErrPeerClosed) || !l.awaitsEvents {
		return
	}
	patience := time.Duration(l.patience.Load())
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.settled:
			return
		}
		if !m.strand() {
			return
		}
		timer.Reset(patience/10 + 1)
	}
}

// strand looks at the streams, and reports whether one waits.
func (m *Memory) strand() (again bool) {
	m.marking.Lock()
	defer m.marking.Unlock()
	for tail, q := range m.marked {
		_ = m.advance(tail, q) // marks without an answer of the driver count as not passed
		if len(q.all) == 0 {
			delete(m.marked, tail)
			continue
		}
		again = true
		switch w := q.all[0]; {
		case q.stuck:
		case w.came: // it was there a while ago
			q.stuck = true
			tail.Strand()
		default:
			w.came, _ = m.device.EventQuery(w.before)
		}
	}
	return again
}

// unmark destroys the marks, of streams that have finished. It may be called again.
func (m *Memory) unmark() error {
	m.marking.Lock()
	defer m.marking.Unlock()
	for tail, q := range m.marked {
		if q.stuck {
			tail.Unstrand()
		}
		m.spare = append(m.spare, q.all...)
		delete(m.marked, tail)
	}
	for len(m.spare) > 0 {
		if err := m.destroy(m.spare[0]); err != nil {
			return err
		}
		m.spare = m.spare[1:]
	}
	return nil
}
