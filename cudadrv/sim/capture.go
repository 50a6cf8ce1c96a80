package sim

import (
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.CaptureQueries = (*Device)(nil)

// The functions that errors of captures name; they are no calls of cudadrv.
const (
	beginCapture = "cuStreamBeginCapture"
	endCapture   = "cuStreamEndCapture"
	launchGraph  = "cuGraphLaunch"
)

// capture is a stream's, from BeginCapture to EndCapture: what the stream is told goes into the graph. It does what a
// capture in CUDA's relaxed mode does on hardware.
type capture struct {
	graph   *Graph
	invalid bool
}

// Graph is what was captured.
type Graph struct {
	calls []string
	nodes []node
}

// node is work of a graph.
type node struct {
	work     work // without a call if it is a kernel
	duration time.Duration
}

// Calls are the functions whose calls were captured, in order: kernels, memsets and copies, which are work of the graph, and
// records of events, which are not.
func (g *Graph) Calls() []string { return slices.Clone(g.calls) }

// note adds a call.
func (c *capture) note(function string) { c.graph.calls = append(c.graph.calls, function) }

// BeginCapture makes what s is told from now on part of a graph.
func (d *Device) BeginCapture(s cudadrv.Stream) error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	st, ok := g.streams[named(s)]
	switch {
	case !ok:
		return &cudadrv.CallError{Func: beginCapture, Result: cudadrv.InvalidHandle}
	case st.capture != nil:
		return &cudadrv.CallError{Func: beginCapture, Result: cudadrv.IllegalState, Detail: "the stream is captured already"}
	case named(s) == 0:
		return &cudadrv.CallError{Func: beginCapture, Result: cudadrv.CaptureViolation, Detail: "the legacy default stream"}
	}
	st.capture = &capture{graph: &Graph{}}
	return nil
}

// EndCapture ends the capture of s. Its error is CUDA_ERROR_STREAM_CAPTURE_INVALIDATED where a call in between was
// none that can be captured.
func (d *Device) EndCapture(s cudadrv.Stream) (*Graph, error) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	st, ok := g.streams[named(s)]
	if !ok || st.capture == nil {
		return nil, &cudadrv.CallError{Func: endCapture, Result: cudadrv.IllegalState, Detail: "no capture"}
	}
	c := st.capture
	st.capture = nil
	if c.invalid {
		return nil, &cudadrv.CallError{Func: endCapture, Result: cudadrv.CaptureBroken}
	}
	return c.graph, nil
}

// LaunchGraph queues the work of a graph on a stream, one after the other.
func (d *Device) LaunchGraph(graph *Graph, s cudadrv.Stream) error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	st, ok := g.streams[named(s)]
	if !ok || st.capture != nil {
		return &cudadrv.CallError{Func: launchGraph, Result: cudadrv.InvalidHandle, Detail: "no stream that runs"}
	}
	for _, n := range graph.nodes {
		g.enqueue(st, n.duration)
		if g.backing != nil && n.work.bytes > 0 {
			n.work.ends = st.drained
			g.pending.add(n.work)
		}
	}
	return nil
}

// StreamIsCapturing says whether s is captured.
func (d *Device) StreamIsCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	const c = call.StreamIsCapturing
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enter(c); err != nil {
		return 0, err
	}
	st, err := g.streamNamed(c, s)
	if err != nil {
		return 0, err
	}
	g.charge(c, 0)
	switch {
	case st.capture == nil:
		return cudadrv.CaptureNone, nil
	case st.capture.invalid:
		return cudadrv.CaptureInvalidated, nil
	}
	return cudadrv.CaptureActive, nil
}

// unwaitable is the error of a call that waits for a stream, or asks whether it would have to, if the stream is captured:
// it ends the capture.
func (st *stream) unwaitable(c call.Call) error {
	if st.capture == nil {
		return nil
	}
	st.capture.invalid = true
	return fail(c, cudadrv.CaptureViolation, "the stream is captured")
}

// isolated is the error of a wait that would tie a captured stream to one that is not, or the other way round.
func (st *stream) isolated(c call.Call, e *event) error {
	switch {
	case st.capture == e.capture:
		return nil
	case st.capture != nil:
		st.capture.invalid = true
	}
	return fail(c, cudadrv.CaptureIsolation, "one of stream and event is captured")
}

// unasked is the error of a question about an event whose record was captured.
func (e *event) unasked(c call.Call) error {
	if e.capture == nil {
		return nil
	}
	return fail(c, cudadrv.CapturedEvent, "its record is part of a graph")
}
