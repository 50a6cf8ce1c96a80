package fence

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/recovered"
)

// CellCount bounds the fences of a timeline that were recorded and have not been seen to pass. Not smaller: a
// stream that many others use is far ahead of the device, and a fence without a cell is recorded later than
// necessary. Not larger: a Look reads all of them.
const CellCount = 16

// Timeline records and queries the numbered fences of one stream (see package line) for callers that use
// memory of other streams on it.
//
//	cell     from    to      who
//	empty    empty   busy    Take: CAS
//	         busy    ready   Take: the mark is recorded
//	         busy    empty   Take: the driver refused
//	ready    ready   busy    Look, Wait: CAS
//	         busy    ready   Look: not passed
//	         busy    empty   Look, Wait: passed, or lost, and the mark is released
//
// A mark is lost if it is part of a graph, since a capture of the stream began before it was recorded: it
// never passes. The blocks that it covered are owed a fence again.
//
// A timeline is safe for concurrent use. A goroutine that is stopped in a driver call blocks one cell, and no
// other goroutine.
type Timeline struct {
	line.Line
	// Panics receives panics of the driver in calls for the timeline. Set before use; may be nil.
	Panics *recovered.Log
	// Excluded says that nobody may wait for the stream's work.
	Excluded atomic.Bool

	source *Events
	stream cudadrv.Stream
	lent   bool
	access atomic.Pointer[Recording] // nil: records are always allowed; it refers to the stream, so that Finish drops it

	shut    atomic.Bool
	lost    atomic.Uint64
	calls   atomic.Int64 // that may touch the stream
	patient atomic.Pointer[patience]
	settled atomic.Pointer[patience] // ends once a busy cell has another state; nil: nobody waits for that
	reach   func()                   // tests only: called between two steps, where others may run
	cells   [CellCount]cell
}

// cell is a mark and its number.
type cell struct {
	state atomic.Uint64 // the number; 0: empty, busy: in use
	mark  Mark          // of the goroutine that made the cell busy
}

// busy is the state of a cell that a goroutine works on. No number reaches it.
const busy = math.MaxUint64

// patience is one wait for the device, shared by all waiters.
type patience struct{ over chan struct{} }

// Recording keeps the records on a stream out of captures. Errors of Enter and Check are returned to the
// caller.
type Recording interface {
	// Enter begins a record. After an error nothing is recorded.
	Enter() error
	// Check is called after the record. After an error the record is lost: it may be part of a graph, and a
	// query of it would invalidate the capture.
	Check() error
	// Leave ends the record that Enter began.
	Leave()
}

// NewTimeline returns the timeline of a stream. lent says that the stream is its caller's, on which only
// callers record fences. access may be nil. It makes no driver call.
func NewTimeline(source *Events, s cudadrv.Stream, lent bool, access Recording) *Timeline {
	t := &Timeline{source: source, stream: s, lent: lent}
	if access != nil {
		t.access.Store(&access)
	}
	t.Init(t)
	return t
}

// Recording returns the guard that keeps records out of captures.
func (t *Timeline) Recording() Recording {
	if access := t.access.Load(); access != nil {
		return *access
	}
	return unrestricted{}
}

// Lent reports whether only callers may record fences, and nothing in the background.
func (t *Timeline) Lent() bool { return t.lent }

// Take records a fence unless a recorded one covers the number. It makes at most one driver call, and calls
// Look first if there is no free cell. It returns false without an error if there is still none, or if the
// stream is closed: a later fence, or Finish, covers the waiting blocks.
func (t *Timeline) Take(number uint64) (taken bool, err error) {
	if !t.Owed(number) {
		return true, nil
	}
	_, taken, err = t.take(nil)
	return taken, err
}

// TakeNow records a fence of its own and returns its number. If it cannot, it returns the number of the next
// one, which covers the same and perhaps more.
func (t *Timeline) TakeNow() (number uint64) {
	number, taken, _ := t.take(nil)
	if !taken {
		return t.Next()
	}
	return number
}

// Order makes later work of a stream wait, on the device, for all present work of this one, and returns the
// number of a fence that covers that. If the driver refuses, nothing waits. A finished stream needs no
// waiting; one that is being closed returns ErrShut.
func (t *Timeline) Order(later cudadrv.Stream) (number uint64, err error) {
	number, taken, err := t.take(func(m Mark) error { return t.source.Precede(m, later) })
	if taken || err != nil {
		return number, err
	}
	t.calls.Add(1)
	defer t.calls.Add(-1)
	switch {
	case t.Finished():
		return 0, nil
	case t.shut.Load():
		return 0, ErrShut
	}
	access, err := t.enter()
	if err != nil {
		return 0, err
	}
	defer access.Leave()
	m, err := t.mark(access) // no free cell: the mark is not queried
	if err != nil {
		return 0, err
	}
	defer func() { _ = t.source.Release(m) }() // an event that the driver keeps does no harm to memory
	err = t.source.Precede(m, later)
	return t.Next(), err
}

// take records a fence into an empty cell. use, if not nil, gets its mark before any other goroutine.
func (t *Timeline) take(use func(Mark) error) (number uint64, taken bool, err error) {
	t.calls.Add(1)
	defer t.calls.Add(-1)
	if t.shut.Load() {
		return 0, false, nil
	}
	c := t.claim(0)
	if c == nil {
		if _, err := t.Look(); err != nil {
			return 0, false, err
		}
		if c = t.claim(0); c == nil {
			return 0, false, nil
		}
	}
	state := uint64(0) // unless all succeeds: also after a panic of the driver
	defer func() {
		if state == 0 {
			_ = t.source.Release(c.mark) // the zero Mark if there is none
		}
		t.put(c, state)
	}()
	c.mark = Mark{}
	access, err := t.enter()
	if err != nil {
		return 0, false, err
	}
	defer access.Leave()
	number = t.Begin() // first: higher numbers are not covered from now on
	if c.mark, err = t.mark(access); err != nil {
		return 0, false, err
	}
	if use != nil {
		if err = use(c.mark); errors.Is(err, ErrCaptured) {
			t.lost.Add(1)
			return 0, false, err
		}
	}
	t.Took(number)
	state = number
	return number, true, err
}

// mark marks the end of the stream, unless a capture may have the mark.
func (t *Timeline) mark(access Recording) (Mark, error) {
	m, err := t.source.Record(t.stream)
	if err != nil {
		return Mark{}, err
	}
	if err := access.Check(); err != nil {
		t.lose(m)
		return Mark{}, err
	}
	return m, nil
}

// enter begins a record, which the result's Leave ends.
func (t *Timeline) enter() (Recording, error) {
	access := t.Recording()
	return access, access.Enter()
}

// unrestricted allows every record.
type unrestricted struct{}

func (unrestricted) Enter() error { return nil }
func (unrestricted) Check() error { return nil }
func (unrestricted) Leave() {
}

// lose releases a mark that is part of a graph, or may be.
func (t *Timeline) lose(m Mark) {
	t.lost.Add(1)
	_ = t.source.Release(m) // an event that the driver keeps does no harm to memory
}

// Lost returns how many marks were released since they are part of a graph, or may be.
func (t *Timeline) Lost() uint64 { return t.lost.Load() }

// claim makes a cell with that state busy. It returns nil if there is none.
func (t *Timeline) claim(state uint64) *cell {
	for i := range t.cells {
		if c := &t.cells[i]; c.state.Load() == state && c.state.CompareAndSwap(state, busy) {
			return c
		}
	}
	return nil
}

// oldest makes the ready cell of the lowest number busy. It returns nil if none is ready.
func (t *Timeline) oldest() (c *cell, number uint64) {
	for {
		c, number = nil, busy
		for i := range t.cells {
			if n := t.cells[i].state.Load(); n != 0 && n < number {
				c, number = &t.cells[i], n
			}
		}
		if c == nil {
			return nil, 0
		}
		if c.state.CompareAndSwap(number, busy) {
			return c, number
		}
	}
}

// Look queries the progress of the device: the oldest fence first, and no later one if that has not passed.
// It reports whether more has passed than before, or a fence was lost whose number is owed again. It does not
// wait.
func (t *Timeline) Look() (advanced bool, err error) {
	for {
		c, number := t.oldest()
		if c == nil {
			return advanced, nil
		}
		passed := t.Passed(number)
		if !passed {
			passed, err = t.ask(c, number)
			advanced = advanced || passed
		}
		switch {
		case passed:
			t.empty(c)
		case errors.Is(err, ErrCaptured):
			advanced = true
		case !t.Passed(number): // else it was finished concurrently
			return advanced, err
		}
	}
}

// Busy reports whether a goroutine is working on a fence at this moment, so that a Look may have skipped it.
func (t *Timeline) Busy() bool {
	for i := range t.cells {
		if t.cells[i].state.Load() == busy {
			return true
		}
	}
	return false
}

// ask restores a cell that has not passed, and empties it if the mark is lost.
func (t *Timeline) ask(c *cell, number uint64) (passed bool, err error) {
	defer func() { t.settle(c, number, passed, err) }()
	return t.source.Passed(c.mark)
}

// settle ends a query of the fence of a busy cell, or a wait for it. A passed one stays busy.
func (t *Timeline) settle(c *cell, number uint64, passed bool, err error) {
	switch {
	case passed:
		t.Pass(number)
	case errors.Is(err, ErrCaptured):
		t.Lose(number)
		t.lose(c.mark)
		t.put(c, 0)
	default:
		t.put(c, number)
	}
}

// put gives a busy cell another state.
func (t *Timeline) put(c *cell, state uint64) {
	c.state.Store(state)
	if t.settled.Load() == nil {
		return
	}
	if p := t.settled.Swap(nil); p != nil {
		close(p.over)
	}
}

// whenSettled returns a channel that is closed once a busy cell has another state; nil: none is busy.
func (t *Timeline) whenSettled() <-chan struct{} {
	p := &patience{make(chan struct{})}
	if t.reach != nil {
		t.reach()
	}
	for !t.settled.CompareAndSwap(nil, p) {
		if at := t.settled.Load(); at != nil {
			p = at
			break
		}
	}
	if !t.Busy() { // else its end sees p
		return nil
	}
	return p.over
}

// empty releases the mark of a busy cell.
func (t *Timeline) empty(c *cell) {
	defer t.put(c, 0)
	_ = t.source.Release(c.mark) // an event that the driver keeps does no harm to memory
}

// Wait waits for the oldest fence that has not passed. If another goroutine already waits for one, it returns
// the end of that wait; if others are querying all fences, the end of a query. It does not wait without a
// fence, nor for one that turns out to be lost: its number is owed again.
func (t *Timeline) Wait() (others <-chan struct{}, err error) {
	p := &patience{make(chan struct{})}
	for !t.patient.CompareAndSwap(nil, p) {
		if at := t.patient.Load(); at != nil {
			return at.over, nil
		}
	}
	defer close(p.over)
	defer t.patient.Store(nil)
	c, number := t.oldest()
	if c == nil {
		return t.whenSettled(), nil
	}
	switch err := t.outlast(c, number); {
	case errors.Is(err, ErrCaptured):
		return nil, nil //nolint:nilnil // as below
	case err != nil:
		return nil, err
	}
	t.empty(c)
	return nil, nil //nolint:nilnil // nobody else waits, and that is no error
}

// outlast restores a cell whose wait failed, and empties it if the mark is lost.
func (t *Timeline) outlast(c *cell, number uint64) (err error) {
	passed := false
	defer func() { t.settle(c, number, passed, err) }()
	err = t.source.Wait(c.mark)
	passed = err == nil
	return err
}

// Shut stops further use of the stream. Calls in progress end by themselves: see Idle.
func (t *Timeline) Shut() { t.shut.Store(true) }

// Idle reports whether no call that may touch the stream is in progress.
func (t *Timeline) Idle() bool { return t.calls.Load() == 0 }

// Finish records that the device has finished all work of the stream, and that no more will come. Buffers
// that the stream used keep its timeline, and from now on nothing else of it. Precondition: no call touches
// the stream (Idle), and none will (Shut).
func (t *Timeline) Finish() {
	t.Line.Finish()
	t.Drop()
	t.access.Store(nil)
}

// Drop releases the remaining marks. Their waiters keep waiting.
func (t *Timeline) Drop() {
	for c, _ := t.oldest(); c != nil; c, _ = t.oldest() {
		t.empty(c)
	}
}
