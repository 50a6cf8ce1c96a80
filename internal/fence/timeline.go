package fence

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/recovered"
)

// CellCount bounds the fences of a timeline that were taken and have not been seen to pass. Not smaller: a stream
// that is used by many others is far ahead of the device, and a fence that has no cell is taken later than it might
// be. Not larger: a look reads all of them.
const CellCount = 16

// Timeline takes and watches the numbered fences of one stream (see the package line) for those who use memory of other
// streams on it.
//
//	cell     from    to      who
//	empty    empty   busy    Take: CAS
//	         busy    ready   Take: the mark is taken
//	         busy    empty   Take: the driver refused
//	ready    ready   busy    Look, Wait: CAS
//	         busy    ready   Look: not passed
//	         busy    empty   Look, Wait: passed, or lost, and the mark is given up
//
// A mark is lost that is part of a graph, since a capture of the stream began before it was recorded: it never passes. What it
// covered is owed again.
//
// Any number of goroutines may use a timeline. One that is stopped in a driver call holds one cell up, and nobody.
type Timeline struct {
	line.Line
	// Panics is told of panics of the driver in calls that were made for the timeline. Set before use; may be nil.
	Panics *recovered.Log
	// Excluded says that nobody is to wait for the stream's work.
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
	cells   [CellCount]cell
}

// cell is a mark and its number.
type cell struct {
	state atomic.Uint64 // the number; 0: empty, busy: somebody's
	mark  Mark          // of whoever made the cell busy
}

// busy is the state of a cell that somebody works on. No number gets there.
const busy = math.MaxUint64

// patience is a wait for the device that somebody is at.
type patience struct{ over chan struct{} }

// Recording keeps the records on a stream out of captures. An error of Enter or Check is that of the call.
type Recording interface {
	// Enter begins a record. With an error none is made.
	Enter() error
	// Check is called after the record, which is lost with an error: it may be part of a graph, and a query of it would invalidate the
	// capture.
	Check() error
	// Leave ends what Enter began.
	Leave()
}

// NewTimeline makes the timeline of a stream. lent says that the stream is its caller's, on which only callers
// take fences. access may be nil. It makes no driver call.
func NewTimeline(source *Events, s cudadrv.Stream, lent bool, access Recording) *Timeline {
	t := &Timeline{source: source, stream: s, lent: lent}
	if access != nil {
		t.access.Store(&access)
	}
	t.Init(t)
	return t
}

// Recording keeps its records out of captures.
func (t *Timeline) Recording() Recording {
	if access := t.access.Load(); access != nil {
		return *access
	}
	return unrestricted{}
}

// Lent reports whether only callers may take fences: nothing may do so in the background.
func (t *Timeline) Lent() bool { return t.lent }

// Take takes a fence unless one was taken that covers the number. It makes at most one driver call, and looks
// for room first where there is none. False without an error says that there is no room, or that the
// stream is closed: what waits is covered by a later fence, or by Finish.
func (t *Timeline) Take(number uint64) (taken bool, err error) {
	if !t.Owed(number) {
		return true, nil
	}
	_, taken, err = t.take(nil)
	return taken, err
}

// TakeNow takes a fence of its own and returns its number. If none can be taken the number is that of the next
// one, which covers the same and perhaps more.
func (t *Timeline) TakeNow() (number uint64) {
	number, taken, _ := t.take(nil)
	if !taken {
		return t.Next()
	}
	return number
}

// Order makes later work of a stream wait, on the device, for all that this one has now, and returns the number
// of a fence that covers that. If the driver refuses, nothing waits. A stream that is finished needs no
// waiting; one that is being closed refuses with ErrShut.
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
	m, err := t.mark(access) // there is no room: nobody watches it
	if err != nil {
		return 0, err
	}
	defer func() { _ = t.source.Release(m) }() // an event that the driver keeps harms nobody's memory
	err = t.source.Precede(m, later)
	return t.Next(), err
}

// take takes a fence into an empty cell; use, where there is one, gets its mark before anybody else.
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
	state := uint64(0) // unless all goes well: also after a panic of the driver
	defer func() {
		if state == 0 {
			_ = t.source.Release(c.mark) // the zero Mark where there is none
			c.mark = Mark{}
		}
		t.put(c, state)
	}()
	c.mark = Mark{}
	access, err := t.enter()
	if err != nil {
		return 0, false, err
	}
	defer access.Leave()
	number = t.Begin() // first: who reads a higher number from here on is not covered
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

// lose gives a mark up that is part of a graph, or may be.
func (t *Timeline) lose(m Mark) {
	t.lost.Add(1)
	_ = t.source.Release(m) // an event that the driver keeps harms nobody's memory
}

// Lost is how many marks were given up since they are part of a graph, or may be.
func (t *Timeline) Lost() uint64 { return t.lost.Load() }

// claim makes a cell busy that has that state, nil if there is none.
func (t *Timeline) claim(state uint64) *cell {
	for i := range t.cells {
		if c := &t.cells[i]; c.state.Load() == state && c.state.CompareAndSwap(state, busy) {
			return c
		}
	}
	return nil
}

// oldest makes the ready cell of the lowest number busy, nil if none is ready.
func (t *Timeline) oldest() (c *cell, number uint64) {
	for {
		number = busy
		for i := range t.cells {
			if n := t.cells[i].state.Load(); n != 0 && n < number {
				c, number = &t.cells[i], n
			}
		}
		if number == busy || c.state.CompareAndSwap(number, busy) {
			break
		}
	}
	if number == busy {
		return nil, 0
	}
	return c, number
}

// Look asks the driver how far the device has come: for the oldest fence first, and for no other after one that
// has not passed. It reports whether more has passed than before, or a fence was lost whose number is owed again. It does not wait.
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
		case !t.Passed(number): // else it was finished meanwhile
			return advanced, err
		}
	}
}

// Busy reports whether somebody works on a fence at this moment, so that a look may have passed it over.
func (t *Timeline) Busy() bool {
	for i := range t.cells {
		if t.cells[i].state.Load() == busy {
			return true
		}
	}
	return false
}

// ask puts a cell back that has not passed, and empties it if the mark is lost.
func (t *Timeline) ask(c *cell, number uint64) (passed bool, err error) {
	defer func() { t.settle(c, number, passed, err) }()
	return t.source.Passed(c.mark)
}

// settle ends a look at the fence of a busy cell, or a wait for it. One that has passed stays busy.
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

// whenSettled is closed once a busy cell has another state; nil: none is busy.
func (t *Timeline) whenSettled() <-chan struct{} {
	p := &patience{make(chan struct{})}
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

// empty gives the mark of a busy cell up.
func (t *Timeline) empty(c *cell) {
	defer t.put(c, 0)
	_ = t.source.Release(c.mark) // an event that the driver keeps harms nobody's memory
}

// Wait waits for the oldest fence that has not passed, if nobody else waits for one: then it returns the end of
// that wait. Where others look at all the fences that there are, it returns the end of such a look. Without a fence it does not
// wait, nor for one that turns out to be lost: its number is owed again.
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

// outlast puts a cell back that could not be waited for, and empties it if the mark is lost.
func (t *Timeline) outlast(c *cell, number uint64) (err error) {
	passed := false
	defer func() { t.settle(c, number, passed, err) }()
	if err = t.source.Wait(c.mark); err == nil {
		passed = true
	}
	return err
}

// Shut lets nobody touch the stream any more. Calls that are under way end by themselves: see Idle.
func (t *Timeline) Shut() { t.shut.Store(true) }

// Idle reports whether no call that may touch the stream is under way.
func (t *Timeline) Idle() bool { return t.calls.Load() == 0 }

// Finish says that the device has finished all that the stream was given, and that nothing more will come. Buffers that the
// stream used keep its timeline, and from now on nothing else of it. Precondition: no call touches the stream (Idle), and none
// will (Shut).
func (t *Timeline) Finish() {
	t.Shut()
	t.Line.Finish()
	t.Drop()
	t.access.Store(nil)
}

// Drop gives up the marks that are left. What waits for them waits on.
func (t *Timeline) Drop() {
	for c, _ := t.oldest(); c != nil; c, _ = t.oldest() {
		t.empty(c)
	}
}
