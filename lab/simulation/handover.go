package simulation

import (
	"context"
	"errors"
	"slices"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// handover passes a value from a goroutine of a stream to a goroutine of another, with state for the scheduler: Send and
// Receive park in a select, and in a world only the scheduler may park a task.
type handover struct {
	*streams.Handover[*parcel]
	w     *world
	room  int
	moved chan struct{} // closed when somebody has sent or received
}

// parcel is a value that is handed over.
type parcel struct {
	number int
	buffer *buffer // nil: the sender was refused
}

// move wakes the side that waits for the other.
func (h *handover) move() {
	close(h.moved)
	h.moved = make(chan struct{})
}

// turnstile is the context of a call of one side: Send and Receive ask it for its end when they have announced their wait and
// are about to park. It holds the caller up until nothing would.
type turnstile struct {
	context.Context //nolint:containedctx // it is one
	h               *handover
	open            func() bool
}

// Done implements context.Context.
func (t turnstile) Done() <-chan struct{} {
	for !t.open() {
		t.h.w.wait([]<-chan struct{}{t.h.moved})
	}
	return nil
}

func (h *handover) send(v *parcel) {
	full := func() bool { return h.Len() < h.room }
	if err := h.Send(turnstile{context.Background(), h, full}, v); err != nil {
		h.w.broken("handover", "a value cannot be sent: %w", err)
	}
	h.w.report.Handovers++
	h.move()
}

func (h *handover) receive() *parcel {
	v, err := h.Receive(turnstile{context.Background(), h, func() bool { return h.Len() > 0 }})
	if err != nil {
		h.w.broken("handover", "a value cannot be received: %w", err)
	}
	h.move()
	return v
}

// pipeline runs two streams' only callers alone: the first allocates memory and sends it, the second allocates some of its own
// for each buffer and frees both. All values arrive, in order. If one of them can always run, because all memory that they can
// hold at once is there or the second needs none, nobody is refused; otherwise a request for memory is refused before both
// wait forever.
func (w *world) pipeline(act action) {
	if !w.emptied(uint64(act.a)&^3, uint64(act.b)&^3) || w.fault != nil || w.lossy || w.unfinished() || w.waits() || w.reserving > 0 {
		return
	}
	var alone, others []*stream
	for _, s := range w.era.streams {
		switch {
		case s.closing || s.closed:
		case s.shares || len(alone) == 2:
			others = append(others, s)
		default:
			alone = append(alone, s)
		}
	}
	if len(alone) < 2 {
		return
	}
	for _, s := range others { // they do nothing, and say so
		defer s.standStill()() //nolint:revive // until the end of the function
	}
	p := w.newPipe(alone[0], alone[1], uint64(act.c))
	begin := func(name string, run func()) *task {
		return w.start(mixed(uint64(act.number), keyOf(name)|1<<62), name, run)
	}
	sender := begin("send", func() {
		p.send()
		p.resume = p.from.standStill() // nobody is left to free on that stream
	})
	receiver := begin("receive", p.receive)
	late := []*task{nil, sender, receiver}[act.b/4%3] // resumes only when nobody else can run
	draw := uint64(act.c)
	for n := uint64(0); len(w.tasks) > 0 && w.fault == nil; n++ {
		ready := w.runnable()
		if len(ready) == 0 || n > settleLimit {
			w.broken("handover", "%d of %d values were received, and then nothing can run: %v", p.received, p.count, w.labels())
			return
		}
		if len(ready) > 1 {
			ready = slices.DeleteFunc(ready, func(t *task) bool { return t == late })
		}
		draw = mixed(draw, n)
		w.resumeAny(ready, draw)
	}
	if w.fault != nil {
		return
	}
	p.resume()
	w.report.Pipelines++
}

// pipe is the state of the two callers of a pipeline.
type pipe struct {
	w               *world
	way             *handover
	from, to        *stream
	first, second   int64 // bytes that each takes; the second perhaps none
	count, received int   // values
	fits            bool  // one of the two can always run
	resume          func()
}

func (w *world) newPipe(from, to *stream, draw uint64) *pipe {
	room := 1 + int(draw%3)
	pages := w.era.limit.Load() / w.shape.pageBytes
	most := int64(room) + 2 // buffers of the sender: those queued, one held by the sender and one by the receiver
	length := 1 + int64(mixed(draw, 1)%uint64(max(1, 2*pages/(most+1))))
	needed, second := most*(length+1)+2, w.shape.pageBytes // a buffer may begin within a page
	if mixed(draw, 3)%2 == 0 {                             // the second frees every buffer: the first can always run, even if only one buffer fits
		length = 1 + int64(mixed(draw, 1)%uint64(max(1, pages-1)))
		needed, second = length+1, 0
	}
	p := &pipe{w: w, from: from, to: to, first: length * w.shape.pageBytes, second: second, count: 3 + int(mixed(draw, 2)%12)}
	p.way = &handover{streams.NewHandover[*parcel](from.Stream, to.Stream, room), w, room, make(chan struct{})}
	// Where handles have one page no other is in the way.
	p.fits = w.shape.plain && !w.shape.segments && p.first > sizeclass.MaxBytes && needed <= pages &&
		!slices.ContainsFunc(w.era.streams, func(s *stream) bool { return s.adopted || s.closing && !s.Gone() })
	return p
}

// take requests a buffer and waits.
func (p *pipe) take(s *stream, bytes int64) *buffer {
	f := s.AllocAsync(context.Background(), streams.Request{Bytes: bytes, Wait: true})
	x := p.w.expect(f.Cancel, nil)
	b, err := f.Await(context.Background())
	p.w.cease(x)
	if errors.Is(err, pool.ErrWouldDeadlock) && p.fits && !p.w.disturbed() {
		p.w.broken("handover", "stream %d is refused %d bytes, though one of the two callers can run: %w", s.id(), bytes, err)
	}
	return p.w.answered(s, x, b, bytes, 0, err)
}

func (p *pipe) send() {
	for n := range p.count {
		p.way.send(&parcel{n, p.take(p.from, p.first)})
	}
}

func (p *pipe) receive() {
	for n := range p.count {
		v := p.way.receive()
		if v.number != n {
			p.w.broken("handover", "value %d arrives instead of %d", v.number, n)
			return
		}
		p.received++
		var own *buffer
		if p.second > 0 {
			own = p.take(p.to, p.second)
		}
		for _, b := range []*buffer{v.buffer, own} {
			if b != nil && b.held {
				p.w.free(b, 0)
			}
		}
	}
}
