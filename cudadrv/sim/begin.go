package sim

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// BeginCapture begins a capture in relaxed mode for tests, whose graph is a value with methods of its own. It is not counted,
// and costs nothing.
func (d *Device) BeginCapture(s cudadrv.Stream) error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.beginCapture(s, cudadrv.CaptureRelaxed)
}

func (g *gpu) beginCapture(s cudadrv.Stream, mode cudadrv.CaptureMode) error {
	const c = call.StreamBeginCapture
	st, err := g.streamNamed(c, s)
	switch {
	case err != nil:
		return err
	case st.capture != nil:
		return fail(c, cudadrv.IllegalState, "the stream is captured already")
	case named(s) == 0:
		return fail(c, cudadrv.CaptureViolation, "the legacy default stream")
	}
	begun := &capture{gpu: g, number: g.driver.captures.Add(1), mode: mode, graph: &Graph{}, origin: st}
	if mode != cudadrv.CaptureRelaxed {
		begun.thread = currentThread()
	}
	begun.join(st, nil)
	return nil
}

// EndCapture ends the capture that began with s, for all streams that have joined it. Errors:
// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED after a call that cannot be captured, CUDA_ERROR_STREAM_CAPTURE_UNJOINED if s does not
// wait for all work of the others, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED for one of the others, which invalidates the capture
// without ending it, and CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD if another thread began the capture: it has ended then.
func (d *Device) EndCapture(s cudadrv.Stream) (*Graph, error) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.endCapture(s)
}

func (g *gpu) endCapture(s cudadrv.Stream) (*Graph, error) {
	const c = call.StreamEndCapture
	st, ok := g.streams[named(s)]
	if !ok || st.capture == nil {
		return nil, fail(c, cudadrv.IllegalState, "no capture")
	}
	k, joined := st.capture, st.before.count()
	switch {
	case k.origin != st:
		k.invalid = true
		return nil, fail(c, cudadrv.CaptureUnmatched, "the capture began with another stream")
	case k.mode != cudadrv.CaptureRelaxed && k.thread != currentThread():
		k.end()
		return nil, fail(c, cudadrv.CaptureWrongThread, "the capture began on another thread")
	}
	k.end()
	switch {
	case k.invalid:
		return nil, fail(c, cudadrv.CaptureBroken, "a call in between cannot be captured")
	case joined < len(k.graph.nodes):
		return nil, fail(c, cudadrv.CaptureUnjoined, "the stream does not wait for all that was captured")
	}
	return k.graph, nil
}

// LaunchGraph queues the work of a graph on a stream, one after the other, for tests, without instantiating it. It is not
// counted, and costs nothing.
func (d *Device) LaunchGraph(graph *Graph, s cudadrv.Stream) error {
	const c = call.GraphLaunch
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	st, ok := g.streams[named(s)]
	if !ok || st.capture != nil || graph == nil {
		return fail(c, cudadrv.InvalidHandle, "no stream that runs, or no graph")
	}
	if err := g.implicit(c.String(), st); err != nil {
		return err
	}
	g.replay(st, graph.nodes)
	return nil
}

// replay queues the work of a graph on a stream, one after the other.
func (g *gpu) replay(st *stream, all []node) {
	for _, n := range all {
		g.enqueue(st, n.duration)
		if fn := n.kernel.function; fn != nil {
			fn.module.drained = max(fn.module.drained, st.drained)
		}
		g.executeLater(st, &n.kernel)
		if g.backing != nil && n.work.bytes > 0 {
			n.work.ends = st.drained
			n.work.on = g
			g.driver.pending.add(n.work)
		}
	}
}
