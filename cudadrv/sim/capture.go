package sim

import (
	"math/bits"
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.CaptureQueries = (*Device)(nil)

// capture is a capture by BeginCapture or StreamBeginCapture: work of its streams goes into the graph.
type capture struct {
	gpu     *gpu
	number  uint64
	mode    cudadrv.CaptureMode
	thread  int // that began it; nothing in relaxed mode
	graph   *Graph
	origin  *stream
	streams []*stream // the origin, and those that have joined it by waiting for an event of a captured stream
	invalid bool
	ended   bool // events may still name it
}

// place is where a captured stream, or an event that was recorded on one, is in the graph. The zero place is in none.
type place struct {
	capture *capture
	before  nodes // work before it
}

// nodes is a set of nodes of a graph, by number.
type nodes []uint64

func (n *nodes) add(number int) {
	for len(*n) <= number>>6 {
		*n = append(*n, 0)
	}
	(*n)[number>>6] |= 1 << (number & 63)
}

func (n *nodes) addAll(o nodes) {
	for len(*n) < len(o) {
		*n = append(*n, 0)
	}
	for i, w := range o {
		(*n)[i] |= w
	}
}

func (n nodes) count() (count int) {
	for _, w := range n {
		count += bits.OnesCount64(w)
	}
	return count
}

// Graph is captured work.
type Graph struct {
	calls []string
	nodes []node
	names []cudadrv.GraphNode // of the nodes, in their order, once the graph has an id
}

// node is work of a graph. It does not change.
type node struct {
	kind     cudadrv.NodeKind
	work     work   // without a call if it is no memset or copy
	kernel   kernel // without a function if it is none of LaunchKernel
	duration time.Duration
	behind   nodes // those before it
}

// Calls returns the functions whose calls were captured, in order: kernels, memsets and copies, which are work of the graph,
// and records of events and waits for them, which are not.
func (g *Graph) Calls() []string {
	if g == nil {
		return nil
	}
	return slices.Clone(g.calls)
}

// note adds a call.
func (c *capture) note(function string) { c.graph.calls = append(c.graph.calls, function) }

// add adds work to the graph of a captured stream. It fails if the capture is invalid.
func (st *stream) add(function string, n node) error {
	c := st.capture
	if c.invalid {
		return &cudadrv.CallError{Func: function, Result: cudadrv.CaptureBroken}
	}
	c.note(function)
	n.behind = slices.Clone(st.before)
	st.before.add(len(c.graph.nodes))
	c.graph.nodes = append(c.graph.nodes, n)
	return nil
}

// join makes a stream that is not captured part of a capture.
func (c *capture) join(st *stream, before nodes) {
	st.place = place{c, slices.Clone(before)}
	c.streams = append(c.streams, st)
}

// end ends the capture of its streams.
func (c *capture) end() {
	for _, st := range c.streams {
		st.place = place{}
	}
	c.streams, c.ended = nil, true
}

// StreamIsCapturing reports whether s is captured. For the legacy default stream it fails while a blocking stream is captured.
func (d *Device) StreamIsCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	const c = call.StreamIsCapturing
	return value(d, c, cudadrv.CaptureInformation, func(g *gpu) (cudadrv.CaptureStatus, error) {
		status, _, err := g.captureOf(c, s)
		return status, err
	})
}

// captureOf returns the status of a stream's capture, and its number.
func (g *gpu) captureOf(c call.Call, s cudadrv.Stream) (cudadrv.CaptureStatus, uint64, error) {
	st, err := g.streamNamed(c, s)
	if err != nil {
		return 0, 0, err
	}
	if len(g.tied(st)) > 0 {
		return 0, 0, fail(c, cudadrv.CaptureImplicit, "a blocking stream is captured")
	}
	g.charge(c)
	switch {
	case st.capture == nil:
		return cudadrv.CaptureNone, 0, nil
	case st.capture.invalid:
		return cudadrv.CaptureInvalidated, st.capture.number, nil
	}
	return cudadrv.CaptureActive, st.capture.number, nil
}

// tied returns the captures of blocking streams, if st is the legacy default stream.
func (g *gpu) tied(st *stream) (captures []*capture) {
	if st != g.streams[0] {
		return nil
	}
	for _, b := range g.blocking {
		if b.capture != nil {
			captures = append(captures, b.capture)
		}
	}
	return captures
}

// implicit returns an error if the legacy default stream would be ordered with a captured blocking stream, and ends that
// capture.
func (g *gpu) implicit(function string, st *stream) error {
	tied := g.tied(st)
	if len(tied) == 0 {
		return nil
	}
	for _, c := range tied {
		c.invalid = true
	}
	return &cudadrv.CallError{Func: function, Result: cudadrv.CaptureImplicit, Detail: "a blocking stream is captured"}
}

// unwaitable returns the error of a call that waits for a stream, or asks whether it would have to, if the stream is captured:
// it ends the capture.
func (g *gpu) unwaitable(c call.Call, st *stream) error {
	if st.capture == nil {
		return g.implicit(c.String(), st)
	}
	st.capture.invalid = true
	return fail(c, cudadrv.CaptureViolation, "the stream is captured")
}

// unsynchronised returns the error of a call that waits for the whole device while a stream is captured: it ends all captures.
func (g *gpu) unsynchronised(c call.Call) (err error) {
	for _, st := range g.streams {
		if st.capture != nil {
			st.capture.invalid = true
			err = fail(c, cudadrv.CaptureViolation, "a stream is captured")
		}
	}
	return err
}

// record puts an event where the captured stream is.
func (st *stream) record(c call.Call, e *event) error {
	if st.capture.invalid {
		return fail(c, cudadrv.CaptureBroken, "the stream is captured")
	}
	st.capture.note(c.String())
	e.place = place{st.capture, slices.Clone(st.before)}
	return nil
}

// follow makes a stream wait for an event if one of the two is captured. A stream outside a capture joins the capture of the
// event: its later work is part of that graph.
func (st *stream) follow(c call.Call, e *event, legacy bool) error {
	mine, its := st.capture, e.capture
	switch {
	case mine != nil && mine.invalid:
		return fail(c, cudadrv.CaptureBroken, "the stream is captured")
	case its == nil && !e.recorded:
		return nil
	case its == nil:
		mine.invalid = true
		return fail(c, cudadrv.CaptureIsolation, "the stream is captured, and the event was recorded outside")
	case its.ended || its.invalid:
		if mine != nil {
			mine.invalid = true
		}
		return fail(c, cudadrv.InvalidValue, "its record is part of a graph")
	case legacy:
		its.invalid = true
		return fail(c, cudadrv.CaptureImplicit, "the legacy default stream would be captured")
	case mine == nil:
		its.join(st, e.before)
	case mine != its:
		mine.invalid, its.invalid = true, true
		return fail(c, cudadrv.CaptureMerge, "stream and event are of two captures")
	default:
		st.before.addAll(e.before)
	}
	its.note(c.String())
	return nil
}

// unasked returns the error of a query of an event whose record was captured. It invalidates a capture in progress.
func (e *event) unasked(c call.Call) error {
	switch {
	case e.capture == nil:
		return nil
	case e.capture.ended || e.capture.invalid:
		return fail(c, cudadrv.InvalidValue, "its record is part of a graph")
	}
	e.capture.invalid = true
	return fail(c, cudadrv.CapturedEvent, "its record is part of a graph in the making")
}

// uncapture takes a stream that is destroyed out of its capture, which ends if it began there.
func (st *stream) uncapture() {
	c := st.capture
	switch {
	case c == nil:
	case c.origin == st:
		c.end()
	default:
		c.streams = slices.DeleteFunc(c.streams, func(other *stream) bool { return other == st })
	}
}
