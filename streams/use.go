package streams

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Use is a use of a buffer on a stream, from Buffer.Use to Done.
type Use struct {
	use  magazine.Use
	line *fence.Timeline // nil for the zero Use
	own  bool            // on the buffer's own stream: nothing waits for it
}

// home returns the stream to which a buffer's memory belongs.
func (b Buffer) home() (*Stream, bool) {
	if b.slot == nil {
		return nil, false
	}
	s, ok := b.slot.Waker().(*waker)
	return (*Stream)(s), ok
}

// usable returns the error of a use of a buffer on a stream, or the buffer's own stream.
func (b Buffer) usable(call string, on *Stream) (home *Stream, err error) {
	home, ok := b.home()
	switch {
	case !ok || !b.slot.Live(b.word):
		return nil, b.notLive(call)
	case on == nil || on.peers == nil:
		return nil, &cudadrv.NotOpenError{Argument: "stream"}
	case on.peers != home.peers:
		return nil, ErrForeign
	case on != home && on.cuda.closing.Load():
		return nil, on.cuda.closed()
	default:
		return home, nil
	}
}

// RecordStream announces work of another stream on the buffer, with PyTorch's meaning: after the
// free, the memory waits for all work that s had by then, or a little later (see the package
// comment). Any number of streams may be named, each any number of times, from any goroutine, all
// before the free. It makes no driver call and takes no turn, and is one atomic operation. It
// allocates nothing for the first 31 streams of a device, and 48 bytes once for a buffer's slot
// where several use it. For the buffer's own stream it does nothing. A use ends with the Close of
// its stream.
//
// Freed buffers share fences, so that some wait a little longer than they must: at most 128 of them
// or 16 MiB for the next fence, and where many long ones are freed more, over all streams of a
// device at most a sixteenth of its limit. Memory that others need does not wait for more buffers.
// Errors: ErrNotLive, ErrForeign, ErrClosed, ErrNotOpen for a nil or zero stream.
func (b Buffer) RecordStream(s *Stream) error {
	const call = "Buffer.RecordStream"
	home, err := b.usable(call, s)
	if err != nil || s == home {
		return err
	}
	if s.peer.number != unnumbered {
		err = b.slot.Record(b.word, s.peer.number)
	} else {
		err = b.slot.RecordLine(b.word, &s.cuda.line.Line)
	}
	return b.useError(call, err)
}

// Use begins a use of the buffer by work of another stream; Done ends it. Without Done it lasts
// until the free, as with RecordStream. Several uses are counted, also on one stream: the memory
// waits for all of them. Use makes no driver call and takes no turn; the first on a stream after
// each allocation allocates 56 bytes of the Go heap. On the buffer's own stream it does nothing.
// Errors: the errors of RecordStream.
func (b Buffer) Use(s *Stream) (Use, error) {
	const call = "Buffer.Use"
	home, err := b.usable(call, s)
	if err != nil {
		return Use{}, err
	}
	if s == home {
		return Use{own: true}, nil
	}
	u, err := b.slot.Begin(b.word, &s.cuda.line.Line)
	if err != nil {
		return Use{}, b.useError(call, err)
	}
	return Use{use: u, line: s.cuda.line}, nil
}

// Done ends a use: its last work has been submitted to its stream. From here on the buffer's memory
// waits for that work and not for later work of the stream. It records an event there, some 200 ns,
// and does not wait; where the driver refuses, the next fence of the stream counts. It may be
// called from any goroutine. Errors: ErrUseOver for a second Done, also by a copy, and for the zero
// Use; ErrNotLive after the buffer was freed, which ended the use.
func (u Use) Done() error {
	if u.own {
		return nil
	}
	if err := u.use.Open(); err != nil {
		return u.refusal(err)
	}
	number := u.line.Next()
	_ = guard(u.line.Panics, func() error { number = u.line.TakeNow(); return nil })
	return u.use.End(number)
}

// refusal turns a magazine's error about the buffer of a use into this package's.
func (u Use) refusal(err error) error {
	if errors.Is(err, magazine.ErrStale) {
		return &NotLiveError{Call: "Use.Done"}
	}
	return err
}

// Transfer hands the buffer over to another stream of the device for good. The result is the same memory; b
// is not live any more: its frees return ErrTransferred. Later work of the receiving stream waits, on the
// device, for all work submitted so far to the stream that had the buffer; the caller need not order the two.
// The memory stays part of the stream that it was allocated on, and returns there once the receiver has
// finished all work submitted before the free. Device.Stats, lists of buffers and errors charge the receiver
// with it until the free, or until the receiver's Close; counts stay with the first stream. Announced uses
// stay announced. It makes two driver calls and does not wait. Errors: ErrNotLive, ErrForeign, ErrClosed,
// ErrTransferLimit, *CaptureError while one of the two is being captured, and the driver's, after which b is
// as it was.
func (b Buffer) Transfer(to *Stream) (Buffer, error) {
	const call = "Buffer.Transfer"
	home, err := b.usable(call, to)
	if err != nil {
		return Buffer{}, err
	}
	from := home.cuda.line
	if held := b.slot.Holder(b.word); held != nil {
		from = timeline(held)
	}
	number := uint64(0)
	if from != to.cuda.line {
		if number, err = to.cuda.follow(from, "handing a buffer over"); err != nil {
			return Buffer{}, err
		}
	}
	if to == home {
		word, err := b.slot.Move(b.word, nil, number, nil)
		if err != nil {
			return Buffer{}, b.useError(call, err)
		}
		return Buffer{b.slot, word, b.bytes}, nil
	}
	has := home.peer.hands.of(to.peer.id)
	word, err := b.slot.Move(b.word, &to.cuda.line.Line, number, has)
	if err != nil {
		return Buffer{}, b.useError(call, err)
	}
	home.peer.hands.keep(has) // with its bytes: nobody drops it from here on
	home.suspensions.addFreer(to.id)
	return Buffer{b.slot, word, b.bytes}, nil
}

// String tells whether the use is on the buffer's own stream.
func (u Use) String() string {
	switch {
	case u.own:
		return "use on the buffer's own stream"
	case u.line == nil:
		return "no use"
	default:
		return "use on another stream"
	}
}

// Home returns the stream to which a buffer's memory belongs. ok is false for the zero Buffer.
func Home(b Buffer) (s *Stream, ok bool) { return b.home() }
