package streams

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
)

// message is anything that a stream's actor receives. The set is closed.
type message interface {
	actors.Message
	isMessage()
}

// claim is a request that may have to wait for the pool.
type claim interface {
	message
	missingBytes() int64                    // that the pool was asked for; the same for as long as it waits
	partBytes() int64                       // blocks that a batch has got; the same for as long as it waits
	blockBytes() int64                      // of all its blocks
	requestedBytes() int64                  // all that the caller asked for
	serve(s *Stream)                        // in the turn: answers the claim, or sends it to the pool
	refuse(s *Stream, err error, last bool) // last: no waiting for fences helps
	state() *patience
	patient() *patience             // nil: it never waits for other people's frees
	missingRuns(s *Stream) []uint32 // in the turn: the pages that all of it wants of the pool
	wantedBytes() int64
	forbidden() uint64        // calls that captures had forbidden when it began
	pending() bool            // nobody has answered or cancelled it
	serveHere(s *Stream) bool // in the turn: answers the claim from what the stream keeps, or keeps nothing for it
	drop(s *Stream)           // in the turn: puts back what it has got, as if it had never been asked for
}

// request is an allocation that did not end on the fast path.
type request struct {
	actors.Link
	Request
	patience
	begun
	hint    int
	refill  uint64 // the token of its Refill; 0 before
	wide    bool   // what the pool granted for its alignment did not help
	before  searching
	promise futures.Promise[Buffer]
	unwatch func() // ends the watch over the caller's context; nil without one
	from    site.Stack
}

func (r *request) missingBytes() int64   { return r.Bytes }
func (*request) partBytes() int64        { return 0 }
func (r *request) blockBytes() int64     { return blockBytes(r.Bytes) }
func (r *request) requestedBytes() int64 { return r.Bytes }

// answer completes the request, unless it was cancelled.
func (r *request) answer(b Buffer, err error) bool {
	delivered := r.promise.Complete(b, err)
	if delivered && r.unwatch != nil {
		r.unwatch()
	}
	return delivered
}

// Fail answers the request in the stream's place.
func (r *request) Fail(err error) {
	r.refund()
	r.answer(Buffer{}, err)
}

// granted brings runs from the pool.
type granted struct {
	actors.Link
	stream *Stream
	token  uint64
	runs   []poolcore.Run // those that are not in the stream's books yet
	kept   bool           // they come from the stream itself: no fence could be recorded for them
}

// Fail gives the runs back if the stream was closed properly. Those of a stream that ended otherwise stay
// with it, since no fence covers what its work may still touch.
func (g *granted) Fail(error) {
	s := g.stream
	if len(g.runs) == 0 || !s.synced.Load() {
		return
	}
	actors.Go(s.host, "", func() { s.pool.Return(poolcore.Return{Client: s.id, Runs: g.runs}, fence.Mark{}) })
}

// denied brings the pool's refusal.
type denied struct {
	actors.Link
	token uint64
	err   error
}

// Fail has nobody to tell: the waiting requests were failed when the actor ended.
func (*denied) Fail(error) {}

// asked wants back what the stream does not use, once it has got as many runs as the pool has granted.
type asked struct {
	actors.Link
	stream      *Stream
	runsGranted uint64
	looked      bool // at the fences that keep memory
}

// Fail answers for a stream that ended: it has nothing to give.
func (a *asked) Fail(error) {
	s := a.stream
	actors.Go(s.host, "", func() { s.pool.Return(poolcore.Return{Client: s.id, Answer: true}, fence.Mark{}) })
}

// order is a request of the device's: close, end, a look at the books, new settings.
type order struct {
	actors.Link
	verb     verb
	settings core.Settings
	list     []LiveBuffer // the answer to orderList
	fences   []fencing    // the answer to orderFences
	address  cudadrv.Ptr
	found    Buffer // the answer to orderLookup
	promise  futures.Promise[Stats]
}

type verb uint8

const (
	orderStats verb = iota
	orderClose
	orderEnd
	orderSettings
	orderTrim
	orderResetPeak
	orderList
	orderCheck
	orderReturn
	orderCoalesce
	orderFences
	orderPassed
	orderLookup
)

// gives reports whether an order has the stream give memory back: it is answered when the pool has that.
func (v verb) gives() bool { return v == orderReturn || v == orderTrim || v == orderSettings }

// Fail answers the order in the stream's place.
func (o *order) Fail(err error) { o.promise.Complete(Stats{}, err) }

// woken says that a buffer came home to a draining stream.
type woken struct{ actors.Link }

// Fail has nobody to tell.
func (*woken) Fail(error) {}

func (*request) isMessage()   {}
func (*batching) isMessage()  {}
func (*granted) isMessage()   {}
func (*denied) isMessage()    {}
func (*asked) isMessage()     {}
func (*marked) isMessage()    {}
func (*order) isMessage()     {}
func (*woken) isMessage()     {}
func (*looked) isMessage()    {}
func (*outlasted) isMessage() {}
func (*visit) isMessage()     {}
func (*awaited) isMessage()   {}
func (*withdrawn) isMessage() {}
func (*demanded) isMessage()  {}
func (*offered) isMessage()   {}
func (*consulted) isMessage() {}
