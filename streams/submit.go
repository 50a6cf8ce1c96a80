package streams

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// Submitter is a stream for packages that submit work to its CUDA stream. The zero Submitter has no stream.
// It is safe for concurrent use.
type Submitter struct{ s *Stream }

// NewSubmitter returns the Submitter of an open stream. Errors: ErrNotOpen, ErrClosed.
func NewSubmitter(s *Stream) (Submitter, error) {
	switch {
	case !s.opened():
		return Submitter{}, ErrNotOpen
	case s.cuda.gate != nil: // nothing but its owner's copies may be submitted to it
		return Submitter{}, ErrNotOpen
	case s.cuda.closing.Load():
		return Submitter{}, s.cuda.closed()
	}
	return Submitter{s}, nil
}

// Stream returns the stream.
func (x Submitter) Stream() *Stream { return x.s }

// Device returns the driver's device for calls of the program, which do not count as the allocator's.
func (x Submitter) Device() cudadrv.Device { return cudadrv.ProgramView(x.s.cuda.device) }

// Helpers returns the functions that places leave out; nil: none.
func (x Submitter) Helpers() *site.Helpers { return x.s.sampler.helpers }

// Attached returns a value that package cuda keeps with the stream: the first call creates it.
func (x Submitter) Attached(first func() any) any {
	if x.s.attached.Load() == nil {
		x.s.attached.CompareAndSwap(nil, first())
	}
	return x.s.attached.Load()
}

// Begin announces driver calls on the CUDA stream, which Close waits for; End ends them. After ErrClosed
// nothing is announced. It takes two atomic operations.
func (x Submitter) Begin() error {
	if !x.s.cuda.begin() {
		return x.s.cuda.closed()
	}
	return nil
}

// End ends the calls that Begin announced.
func (x Submitter) End() { x.s.cuda.done() }

// Guarded makes driver calls that clean up, or that have no caller: it turns a panic of the driver into an
// error, and reports it.
func (x Submitter) Guarded(call func() error) error { return x.s.cuda.guard(call) }

// Check returns the error of work on a buffer: ErrNotLive, ErrForeign. plain says that the work need not wait
// for work of other streams, nor be announced: the buffer is the stream's own, and no other was announced to
// use it. It takes constant time.
func (x Submitter) Check(b Buffer) (plain bool, err error) {
	home, ok := b.home()
	switch {
	case !ok || !b.slot.Live(b.word):
		return false, b.notLive("")
	case home == x.s:
		return !b.slot.Shared(), nil
	case home.peers != x.s.peers:
		return false, ErrForeign
	}
	return false, nil
}

// Crossing orders one work of a stream on buffers of others: call Before for each buffer, submit the work,
// call After, and finally Leave, also after an error. It is for one goroutine.
type Crossing struct {
	x      Submitter
	waited [8]seenCount // streams that the work waits for already; with more, it waits again
	count  int
	cross  bool
	gates  gates
}

// Crossing begins a work.
func (x Submitter) Crossing() Crossing { return Crossing{x: x} }

// Before makes the stream wait, on the device, for all work that must precede work on a buffer: the work
// submitted so far to the buffer's own stream, and work of others on buffers of that stream, if some was
// announced. It announces the stream's own use until the buffer's free. It records and waits for one event
// for each stream in a Crossing. Memory that can sleep stays mapped until Leave, and until the work has
// finished. Errors: as for Check, ErrAsleep, *CaptureError, ErrClosed, and the driver's.
func (c *Crossing) Before(b Buffer) error {
	s := c.x.s
	home, err := b.usable("", s)
	if err != nil {
		return err
	}
	if home != s {
		if err := c.gates.enter(home.cuda.gate); err != nil {
			return err
		}
		if err := c.waitHome(home); err != nil {
			return err
		}
		if err := b.RecordStream(s); err != nil {
			return err
		}
		home.cuda.crossings.add(&s.cuda)
		c.cross = true
	}
	if !b.slot.Shared() {
		return nil
	}
	return c.waitForUsers(home)
}

// waitForUsers makes the work wait for work of others on memory of a stream, unless the work's own stream
// waits for that already.
func (c *Crossing) waitForUsers(home *Stream) error {
	users := home.cuda.crossings.users.Load()
	if users == nil {
		return nil
	}
	s := c.x.s
	for _, u := range *users {
		if u == &s.cuda {
			continue
		}
		last := s.cuda.crossings.of(u)
		if u.crossings.count.Load() == last.count.Load() {
			continue
		}
		covered, err := c.wait(u)
		if err != nil {
			return err
		}
		storeMax(&last.count, covered)
	}
	return nil
}

// waitHome makes the work wait for a buffer's own stream, unless that has no work: a Sleeper's has only
// copies, for which its owner waits, and its memory is freed when its uses are known to have ended.
func (c *Crossing) waitHome(home *Stream) error {
	if g := home.cuda.gate; g != nil && !g.copies.Load() {
		return nil
	}
	_, err := c.wait(&home.cuda)
	return err
}

// seenCount is a stream and the count of its works that a wait covers.
type seenCount struct {
	of    *cudaStream
	count uint64
}

// wait makes the work wait for a stream, once. It returns how many works of that stream the wait covers:
// those before it. Later ones, which others may submit before the Crossing ends, are not among them.
func (c *Crossing) wait(other *cudaStream) (covered uint64, err error) {
	for _, w := range c.waited[:c.count] {
		if w.of == other {
			return w.count, nil
		}
	}
	covered = other.crossings.count.Load()
	if err := c.x.s.cuda.waitFor(other); err != nil {
		return 0, err
	}
	if c.count < len(c.waited) {
		c.waited[c.count] = seenCount{other, covered}
		c.count++
	}
	return covered, nil
}

// After records that the work was submitted.
func (c *Crossing) After() {
	if c.cross {
		c.x.s.cuda.crossings.count.Add(1)
	}
}

// Enter begins a work on a buffer of another device. The work waits for the buffer's stream, and later work of that stream
// waits for it: see Submitter.Between. Its error is ErrAsleep.
func (c *Crossing) Enter(home Submitter) error { return c.gates.enter(home.s.cuda.gate) }

// Leave ends the work, submitted or not.
func (c *Crossing) Leave() { c.gates.leave() }

// SameDevice reports whether two streams belong to one device.
func (x Submitter) SameDevice(other Submitter) bool { return x.s.peers == other.s.peers }

// BeforeStream is Before for buffers of a stream that the work touches and that were announced before.
func (c *Crossing) BeforeStream(home *Stream) error {
	if home != c.x.s {
		if err := c.gates.enter(home.cuda.gate); err != nil {
			return err
		}
		if err := c.waitHome(home); err != nil {
			return err
		}
	}
	return c.BeforeHold(home)
}

// BeforeHold is BeforeStream for a stream without work of its own, such as a Hold's: the work waits for works of others on its
// buffers, and their later works wait for it.
func (c *Crossing) BeforeHold(home *Stream) error {
	if s := c.x.s; home != s {
		home.cuda.crossings.add(&s.cuda)
		c.cross = true
	}
	return c.waitForUsers(home)
}
