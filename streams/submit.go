package streams

import "github.com/go-vram/vram/cudadrv"

// Submitter is a stream as packages see it that submit work to its CUDA stream. The zero Submitter is of no stream. Any number of
// goroutines may use it.
type Submitter struct{ s *Stream }

// NewSubmitter is the Submitter of an open stream. Errors: ErrNotOpen, ErrClosed.
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

// Stream is the stream.
func (x Submitter) Stream() *Stream { return x.s }

// Device is the driver's device for calls of the program's: they are not counted as the allocator's.
func (x Submitter) Device() cudadrv.Device { return cudadrv.ProgramView(x.s.cuda.device) }

// Attached is a value that package cuda keeps with the stream: the first call makes it.
func (x Submitter) Attached(first func() any) any {
	if x.s.attached.Load() == nil {
		x.s.attached.CompareAndSwap(nil, first())
	}
	return x.s.attached.Load()
}

// Begin announces driver calls on the CUDA stream, which Close waits for; End ends them. Its error is ErrClosed, and then nothing
// was announced. Two atomic operations.
func (x Submitter) Begin() error {
	if !x.s.cuda.begin() {
		return x.s.cuda.closed()
	}
	return nil
}

// End ends the calls that Begin announced.
func (x Submitter) End() { x.s.cuda.done() }

// Guarded makes driver calls that clean up, or that have no caller: a panic of the driver becomes an error, and is reported.
func (x Submitter) Guarded(call func() error) error { return x.s.cuda.guard(call) }

// Check returns the error of work on a buffer: ErrNotLive, ErrForeign. plain says that the work need not wait for work of other
// streams, nor be announced: the buffer is the stream's own, and no other was announced to use it. It takes constant time.
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

// Crossing orders one work of a stream on buffers of others: Before for each buffer, then the work, then After; and Leave in the end,
// also after an error. It is for one goroutine.
type Crossing struct {
	x      Submitter
	waited [8]seenCount // streams that the work waits for already; with more, it waits again
	count  int
	cross  bool
	gates  gates
}

// Crossing begins a work.
func (x Submitter) Crossing() Crossing { return Crossing{x: x} }

// Before makes the stream wait, on the device, for all work that has to precede work on a buffer: the work submitted so far to
// the buffer's own stream, and works of others on buffers of that stream, if some were announced. It announces the stream's own use until
// the buffer's free. It records one event and waits for it once for each stream in a Crossing. Memory that can sleep does not before
// Leave, and before the work has finished. Errors: the errors of Check, ErrAsleep, *CaptureError, ErrClosed,
// and the driver's.
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
	return c.behindUsers(home)
}

// behindUsers makes the work wait for works of others on memory of a stream, unless the work's own stream waits for them
// already.
func (c *Crossing) behindUsers(home *Stream) error {
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

// waitHome makes the work wait for a buffer's own stream, unless that has no work: a Sleeper's has copies alone, which its owner waits
// for, and its memory is freed when its uses are known to be over.
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

// wait makes the work wait for a stream, once. It returns how many works of that stream the wait covers: those before it. Later ones,
// which others may submit before the Crossing ends, are not among them.
func (c *Crossing) wait(other *cudaStream) (covered uint64, err error) {
	for _, w := range c.waited[:c.count] {
		if w.of == other {
			return w.count, nil
		}
	}
	covered = other.crossings.count.Load()
	if err := c.x.s.cuda.behind(other); err != nil {
		return 0, err
	}
	if c.count < len(c.waited) {
		c.waited[c.count] = seenCount{other, covered}
		c.count++
	}
	return covered, nil
}

// After says that the work was submitted.
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

// Home is the stream that a buffer's memory belongs to. ok is false for the zero Buffer.
func Home(b Buffer) (s *Stream, ok bool) { return b.home() }

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
	return c.behindUsers(home)
}

// Finished reports whether a stream is closed and the device has finished its work: nothing has to wait for it.
func Finished(s *Stream) bool { return s.cuda.line.Finished() }
