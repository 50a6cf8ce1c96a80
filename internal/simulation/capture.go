package simulation

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// forever is when work ends that is part of a graph which was not launched.
const forever = time.Duration(math.MaxInt64)

// capture is a stream's, and when it was in moments: the world's count of captures that began or ended.
type capture struct {
	active       bool
	begun, ended uint64 // of the last one
	kernels      int    // that callers put into the graph
}

// during reports whether the stream was captured at some moment since that one.
func (c *capture) during(since uint64) bool { return c.active || c.ended > since }

// throughout reports whether it was captured all the time since that moment.
func (c *capture) throughout(since uint64) bool { return c.active && c.begun <= since }

// capturing is a caller who begins a capture. He does not while a call on the handle is under way that was found to be no part
// of one: what that asks and what it does are two calls of the driver's.
func (w *world) capturing(s *stream, _ action) func() {
	return func() {
		if s.capture.active || s.closing || s.era.closing || s.era != w.era || w.asked(s.Handle()) {
			return
		}
		w.must(w.watch.BeginCapture(s.Handle()), "capture")
		w.captureBegun(s)
	}
}

// captureBegun notes a capture that has begun.
func (w *world) captureBegun(s *stream) {
	w.moment++
	s.capture = capture{active: true, begun: w.moment, ended: s.capture.ended}
	w.report.Captures++
	if s.adopted {
		w.report.AdoptedCaptures++
	}
	w.note("a capture of stream %d begins", s.id())
}

// captureEnded is a caller who ends one.
func (w *world) captureEnded(_ *stream, act action) func() {
	n := len(w.era.streams)
	for i := range n {
		if s := w.era.streams[(int(act.a%uint32(n))+i)%n]; s.capture.active {
			return func() { w.endCapture(s) }
		}
	}
	return nil
}

// endCapture ends a capture and launches the graph, which may hold nothing but callers' work. What the graph uses was freed before its launch
// for all that the allocator knows.
func (w *world) endCapture(s *stream) {
	if !s.capture.active {
		return
	}
	g, err := w.watch.EndCapture(s.Handle())
	w.moment++
	s.capture.active, s.capture.ended = false, w.moment
	w.note("the capture of stream %d ends", s.id())
	if err != nil {
		w.broken("capture", "the capture of stream %d: %w", s.id(), err)
		return
	}
	if calls := g.Calls(); len(calls) != s.capture.kernels {
		w.broken("capture", "the graph of stream %d has %v, callers put %d kernels into it", s.id(), calls, s.capture.kernels)
	}
	w.must(w.watch.LaunchGraph(g, s.Handle()), "capture")
	until := w.drainedAt(s.Handle())
	for i := range w.uses.pending {
		if u := &w.uses.pending[i]; u.stream == s && u.until == forever {
			u.until = until
		}
	}
}

// endCaptures ends all captures.
func (w *world) endCaptures() {
	for _, s := range w.era.streams {
		w.endCapture(s)
	}
}

func (w *world) capturedAny() bool {
	return slices.ContainsFunc(w.era.streams, func(s *stream) bool { return s.capture.active })
}

// captured is the kernel of a caller's on a buffer while the stream is captured.
func (w *world) captured(b *buffer, s *stream, d time.Duration) {
	w.must(w.watch.Launch(s.Handle(), d), "capture")
	s.capture.kernels++
	w.uses.add(use{span: b.span, stream: s, of: b, until: forever})
}

// drainedAt is when the work ends that a stream has now.
func (w *world) drainedAt(s cudadrv.Stream) time.Duration {
	mark, err := w.watch.EventCreate()
	w.must(err, "mark")
	w.must(w.watch.EventRecord(mark, s), "mark")
	until, _ := w.watch.Passes(mark)
	w.must(w.watch.EventDestroy(mark), "mark")
	return until
}

// refusedByCapture reports whether an error is a *streams.CaptureError, and says what is wrong about it: since that moment the
// stream that it names was captured.
func (w *world) refusedByCapture(err error, since uint64) (refused bool, why string) {
	e, ok := errors.AsType[*streams.CaptureError](err)
	if !ok {
		return false, ""
	}
	w.report.Uncapturable++
	for _, s := range w.era.streams {
		if s.id() == e.Stream && s.capture.during(since) {
			return true, ""
		}
	}
	return true, "that stream was not captured meanwhile"
}

// front is the device as the allocator has it. The question whether a stream is captured never fails: CUDA has no reason of its own for that,
// and nobody could say what to do then.
type front struct {
	cudadrv.Device
	inner *watched
}

var _ cudadrv.CaptureQueries = (*front)(nil)

// StreamIsCapturing lets others run before it answers.
func (f *front) StreamIsCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	f.inner.w.reach("cuStreamIsCapturing")
	return f.inner.isCapturing(s)
}

// isCapturing notes who was told that a stream is not captured, and is about to make a call on it.
func (d *watched) isCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	status, err := d.w.watch.StreamIsCapturing(s)
	if d.w.mutation == mutateCapture {
		status = cudadrv.CaptureNone
	}
	switch t := d.w.current; {
	case t == nil:
	case t.recorded == s: // it asks behind the call
		t.recorded = 0
	case status == cudadrv.CaptureNone && !slices.Contains(t.asked, s):
		t.asked = append(t.asked, s)
	}
	return status, err
}

// asked reports whether somebody is about to make a call on a handle after he was told that it is not captured.
func (w *world) asked(s cudadrv.Stream) bool {
	return slices.ContainsFunc(w.tasks, func(t *task) bool { return slices.Contains(t.asked, s) })
}

// onHandle holds a call of the allocator's against captures: there may be none.
func (d *watched) onHandle(what string, s cudadrv.Stream) {
	if t := d.w.current; t != nil {
		t.asked = slices.DeleteFunc(t.asked, func(o cudadrv.Stream) bool { return o == s })
	}
	if of := d.owner[s]; of != nil && of.capture.active {
		d.w.broken("capture", "%s on stream %d, which is being captured", what, of.id())
	}
}
