package streams

import (
	"context"
	"errors"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/stream/magazine/lane"
)

// Lane is an exclusive lease of a stream's memory for one goroutine at a time. A request that its
// own blocks serve costs no atomic write, no lock and no heap allocation. Its calls must not
// overlap; the buffers are ordinary ones, which any goroutine may use and free.
//
// A lane keeps blocks that are freed through it, up to its budget; its blocks that other goroutines
// free come home to it. At a reclaim request it releases its free blocks in its next call, and at
// Close all blocks. A lane that is not called keeps its blocks: the *pool.OutOfMemoryError of other
// requests names it.
type Lane struct {
	lane   lane.Lane // first: every call begins here
	stream *Stream
	over   bool // closed, or the stream is: calls go to the stream
	closed bool // by Close
}

// Lane opens a lane that may keep that many bytes of free memory. Against the budget count free
// blocks of more than 64 KiB, spans without a live block, and, for each size class in use, the span
// that serves it (31 to 256 KiB). The free part of other spans does not count: it cannot be
// released. A request whose block or span is larger than the budget goes to the stream, so that a
// lane of 0 bytes keeps nothing. A lane takes 5 KiB of the Go heap. Lane does not wait for the
// device. Errors: *BudgetError for a negative budget, ErrClosed, ErrQuarantined.
func (s *Stream) Lane(budgetBytes int64) (*Lane, error) {
	if budgetBytes < 0 {
		return nil, &BudgetError{budgetBytes}
	}
	if !s.opened() {
		return nil, ErrNotOpen
	}
	if s.cuda.closing.Load() {
		return nil, s.cuda.closed()
	}
	l := &Lane{stream: s}
	l.lane.Init(uint64(budgetBytes)>>sizeclass.UnitShift, beyondLane{l})
	if _, err := l.visit(openLane, 0); err != nil {
		return nil, err
	}
	return l, nil
}

// Alloc is Stream.Alloc from the lane's memory. Where the lane has none it leases some of the
// stream's; otherwise the request goes to the stream, whose errors it returns. Once the stream or
// the lane was closed it returns ErrClosed.
func (l *Lane) Alloc(bytes int64) (b Buffer, err error) { // as Stream.Alloc
	if l == nil { // as Stream.Alloc
		return b, ErrNotOpen
	}
	b.slot, b.word, b.bytes, err = l.lane.Alloc(bytes)
	return b, err
}

// beyondLane serves the calls that the lane's own memory cannot.
type beyondLane struct{ lane *Lane }

// AllocBeyond serves a request that the lane has no block for.
func (c beyondLane) AllocBeyond(bytes int64) (*magazine.Slot, uint64, int64, error) {
	b, err := c.lane.allocSlow(bytes)
	return b.slot, b.word, b.bytes, err
}

// AllocSampled tells a sampled allocation of the lane.
func (c beyondLane) AllocSampled(slot *magazine.Slot, word uint64, bytes int64) (*magazine.Slot, uint64, int64, error) {
	c.lane.stream.sampler.sampled(Buffer{slot, word, bytes}, "", nil)
	return slot, word, bytes, nil
}

// FreeBeyond frees a buffer that the lane has refused, or returns the error.
func (c beyondLane) FreeBeyond(slot *magazine.Slot, word uint64, outcome lane.Outcome) error {
	return c.lane.freeSlow(Buffer{slot: slot, word: word}, outcome)
}

func (l *Lane) allocSlow(bytes int64) (Buffer, error) {
	if l.closed {
		return Buffer{}, &ClosedError{Stream: l.stream.ID(), Lane: true}
	}
	if err := l.stream.check(bytes); err != nil {
		l.settle()
		return Buffer{}, err
	}
	if !l.over && (l.lane.Raised() != 0 || l.lane.Fits(max(bytes, 1))) {
		if b, _ := l.visit(allocLane, bytes); b.slot != nil {
			l.stream.sampler.sampled(b, "", nil)
			return b, nil
		}
	}
	return l.stream.Alloc(bytes)
}

// Free is Buffer.Free on plain memory for buffers of the lane's; any other it frees the ordinary
// way. If another goroutine frees the same buffer at the same time both may succeed; the memory is
// freed once. An announcement of a use that another goroutine makes at the same time may be lost. A
// later free is refused as always.
func (l *Lane) Free(b Buffer) error {
	if l == nil {
		return ErrNotOpen
	}
	return l.lane.Free(b.slot, b.word)
}

// freeSlow frees a buffer that the lane did not free itself, and releases the lane's surplus.
func (l *Lane) freeSlow(b Buffer, outcome lane.Outcome) error {
	why := l.lane.Raised()
	if outcome == lane.Refused && b.slot != nil && why != 0 && why&lane.Ended == 0 {
		outcome = l.lane.FreeRaised(b.slot, b.word)
	}
	var err error
	if outcome == lane.Refused {
		err = b.Free()
	}
	if outcome == lane.Surplus {
		_, _ = l.visit(settleLane, 0) // after a failed turn the next one does it
	} else {
		l.settle()
	}
	return err
}

// settle enters the stream's turn if the lane has a reason to.
func (l *Lane) settle() {
	if l.lane.Raised() != 0 && !l.over {
		_, _ = l.visit(settleLane, 0) // the reason stays if the turn failed
	}
}

// Close releases all blocks of the lane. Its live buffers stay valid and are freed the ordinary
// way. It does not wait for the device. Idempotent. Errors: ErrQuarantined.
func (l *Lane) Close() error {
	if l == nil || l.stream == nil {
		return ErrNotOpen
	}
	if l.closed {
		return nil
	}
	l.closed = true
	if l.over {
		return nil
	}
	_, err := l.visit(closeLane, 0)
	l.over = true
	if errors.Is(err, ErrClosed) {
		return nil // the device was closed: there is nothing to release
	}
	return err
}

// visit runs a request of the lane in the stream's turn: on this goroutine, or, if another one is
// in the turn, by a message whose answer it awaits. The goroutine that runs the turn may use the
// lane meanwhile.
func (l *Lane) visit(what laneRequest, bytes int64) (b Buffer, err error) {
	t := &l.stream.turn
	var refused error
	entered, err := l.stream.tryTurn(func() { b, refused = t.serveLane(&l.lane, what, bytes) })
	if !entered {
		b, err = l.visitByMessage(what, bytes)
	} else if err == nil {
		err = refused
	} else {
		b = Buffer{}
	}
	var panicked *actors.PanicError
	if err != nil && !errors.As(err, &panicked) { // the stream has taken all blocks home, or has ended
		l.over = true
	}
	return b, err
}

// visitByMessage is visit while another goroutine is in the turn.
func (l *Lane) visitByMessage(what laneRequest, bytes int64) (b Buffer, err error) {
	t := &l.stream.turn
	var refused error
	if err = l.stream.inTurn(context.Background(), func() { b, refused = t.serveLane(&l.lane, what, bytes) }); err != nil {
		return Buffer{}, err
	}
	return b, refused
}

// String names the lane's stream. Unlike other calls it may overlap with those of the lane's
// goroutine.
func (l *Lane) String() string {
	if l == nil || l.stream == nil {
		return "no lane"
	}
	return "lane of " + l.stream.String()
}
