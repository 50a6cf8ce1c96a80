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

// capture is a stream's, and when it was in moments: the world's count of captures that began or ended, and of announcements.
type capture struct {
	announcing   int  // callers who announce one that has not begun
	active       bool // it has begun and not ended
	announced    bool // by the caller who began it; else it was begun past the allocator
	begun, ended uint64
	kernels      int  // that callers put into the graph
	brief        bool // it ends before the allocator asks whether there is one
}

// during reports whether the stream was captured at some moment since that one.
func (c *capture) during(since uint64) bool { return c.active || c.announcing > 0 || c.ended > since }

// throughout reports whether it was captured all the time since that moment.
func (c *capture) throughout(since uint64) bool { return c.active && c.begun <= since }

// capturing is a caller who begins a capture. Most announce it, while others may be in any driver call. A caller that begins
// one without the allocator waits while a call on the handle is in progress that the allocator found to be outside a capture,
// unless that call is about to record: then the allocator asks again. Some captures have ended by then.
func (w *world) capturing(s *stream, act action) func() {
	return func() {
		if act.b%8 == 0 {
			w.brief = true
			return
		}
		for n := 0; act.b%4 == 0 && n < 12; n++ {
			if at := w.recording(); at != nil {
				s = at
				break
			}
			w.reach("before a capture")
		}
		switch {
		case s.capture.active || s.closing || s.era.closing || s.era != w.era:
		case act.b%4 > 0:
			w.announce(s)
		case s.capture.announcing == 0 && !w.asked(s.Handle()):
			w.captureBegun(s, false)
		}
	}
}

// recording returns a stream on which somebody is about to record, nil if there is none.
func (w *world) recording() *stream {
	for _, t := range w.tasks {
		if n := len(t.asked); n > 0 && t.paused == "cuEventRecord" {
			if of := w.era.inner.owner[t.asked[n-1]]; of != nil {
				return of
			}
		}
	}
	return nil
}

// captureBriefly begins a capture right before a record, if a caller wants one and nobody else is about to make a call on the
// stream.
func (w *world) captureBriefly(s *stream) {
	if !w.brief || s == nil || w.current == nil || s.closing || s.era.closing || s.capture.active || s.capture.announcing > 0 || w.asked(s.Handle()) {
		return
	}
	w.brief = false
	w.captureBegun(s, false)
	s.capture.brief = true
}

// announce is a caller who begins a capture as package cuda does.
func (w *world) announce(s *stream) {
	work, err := streams.NewSubmitter(s.Stream)
	if err != nil {
		return // it has been closed
	}
	since := w.moment
	s.capture.announcing++
	err = work.BeginCapture(func() error {
		if s.era.closing {
			return errAbandoned
		}
		w.captureBegun(s, true)
		return nil
	})
	s.capture.announcing--
	if err == nil {
		return
	}
	w.moment++
	if !s.capture.active {
		s.capture.ended = w.moment
	}
	refused, why := w.refusedByCapture(err, since)
	if why != "" || errors.Is(err, streams.ErrBusy) || !refused && !s.closing && !s.era.closing {
		w.broken("answer", "a capture of stream %d does not begin: %w: %s", s.id(), err, why)
	}
}

// captureBegun begins a capture.
func (w *world) captureBegun(s *stream, announced bool) {
	w.must(w.watch.BeginCapture(s.Handle()), "capture")
	w.captureNoted(s, announced)
}

// captureNoted notes a capture that has begun.
func (w *world) captureNoted(s *stream, announced bool) {
	w.moment++
	s.capture.active, s.capture.announced, s.capture.begun, s.capture.kernels, s.capture.brief = true, announced, w.moment, 0, false
	w.report.Captures++
	if announced {
		w.report.AnnouncedCaptures++
	}
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

// endCapture ends a capture and launches the graph, which may hold only callers' work. As far as the allocator knows, the
// graph's buffers were freed before its launch.
func (w *world) endCapture(s *stream) {
	if !s.capture.active {
		return
	}
	g, err := w.watch.EndCapture(s.Handle())
	if s.capture.announced {
		if work, err := streams.NewSubmitter(s.Stream); err == nil { // else the stream has ended
			work.EndCapture()
		}
	}
	w.moment++
	s.capture.active, s.capture.ended = false, w.moment
	w.note("the capture of stream %d ends", s.id())
	if err != nil {
		w.broken("capture", "the capture of stream %d: %w", s.id(), err)
		return
	}
	calls := g.Calls()
	if !s.capture.announced { // a record that was made as it began is given up
		calls = slices.DeleteFunc(calls, func(function string) bool { return function == "cuEventRecord" })
	}
	if len(calls) != s.capture.kernels {
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

// refusedByCapture reports whether an error is a *streams.CaptureError, and why it is wrong: the stream that it names must
// have been captured since that moment.
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
	return true, "that stream was not captured since"
}

// front is the device as the allocator uses it. Asking whether a stream is captured never fails: CUDA documents no error for
// it, and no caller could handle one.
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
	if of := d.owner[s]; of != nil && of.capture.brief {
		d.w.endCapture(of)
	}
	status, err := d.w.watch.StreamIsCapturing(s)
	if d.w.mutation == mutateCapture {
		status = cudadrv.CaptureNone
	}
	switch t := d.w.current; {
	case t == nil:
	case t.recorded == s: // it asks after the call
		t.recorded = 0
	case status == cudadrv.CaptureNone && !slices.Contains(t.asked, s):
		t.asked = append(t.asked, s)
	}
	return status, err
}

// asked reports whether somebody is about to make a call on a handle after he was told that it is not captured, other than a
// record, after which he asks again.
func (w *world) asked(s cudadrv.Stream) bool {
	return slices.ContainsFunc(w.tasks, func(t *task) bool {
		at := slices.Index(t.asked, s)
		return at >= 0 && (t.paused != "cuEventRecord" || at != len(t.asked)-1)
	})
}

// onHandle holds a call of the allocator's against captures: there may be none.
func (d *watched) onHandle(what string, s cudadrv.Stream) {
	hadAsked := false
	if t := d.w.current; t != nil {
		hadAsked = slices.Contains(t.asked, s)
		t.asked = slices.DeleteFunc(t.asked, func(o cudadrv.Stream) bool { return o == s })
	}
	switch of := d.owner[s]; {
	case of == nil || !of.capture.active:
	case what == "record" && hadAsked && !of.capture.announced && d.w.mutation != mutateCapture:
		d.w.report.LostRecords++
	default:
		d.w.broken("capture", "%s on stream %d, which is being captured", what, of.id())
	}
}
