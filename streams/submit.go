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

// NewStream opens another stream of the device. Errors: as for opening a stream, ErrNotOpen.
func (x Submitter) NewStream() (*Stream, error) {
	if x.s.sibling == nil {
		return nil, ErrNotOpen
	}
	return x.s.sibling()
}

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

// Check returns the error of work on a buffer: ErrNotLive, ErrForeign. plain says that the work need neither wait for work of
// other streams nor be noted, if it is submitted before LeaveQuick: the buffer is the stream's own, and no other was announced
// to use it; or the work reads, the stream has read the buffer since the last write, and the buffer is frozen or has been read several
// times since. It takes constant time, and for buffers of other streams grows with the streams that read them.
func (x Submitter) Check(b Buffer, writes bool) (plain bool, err error) {
	home, ok := b.home()
	switch {
	case !ok || !b.slot.Live(b.word):
		return false, b.notLive("")
	case home == x.s && !b.slot.Shared():
		return true, nil
	case home.peers != x.s.peers:
		return false, ErrForeign
	}
	return !writes && b.quietFor(&x.s.cuda), nil
}

// SameDevice reports whether two streams belong to one device.
func (x Submitter) SameDevice(other Submitter) bool { return x.s.peers == other.s.peers }
