package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// launch is the function that errors of simulated kernels name.
const launch = "cuLaunchKernel"

// Launch queues a kernel of that duration on the stream. It neither counts as a call nor costs modelled time.
func (d *Device) Launch(s cudadrv.Stream, duration time.Duration) error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	st, err := d.launchable(s, duration)
	if err != nil {
		return err
	}
	if st.capture != nil {
		return st.add(launch, node{kind: cudadrv.KernelNode, duration: duration})
	}
	g.enqueue(st, duration)
	return nil
}

// Occupy keeps the stream busy until at least d from now. Unlike Launch it does not add up: it does not change a stream that is
// busy longer.
func (d *Device) Occupy(s cudadrv.Stream, duration time.Duration) error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	st, err := d.launchable(s, duration)
	if err != nil {
		return err
	}
	if st.capture != nil {
		return &cudadrv.CallError{Func: launch, Result: cudadrv.CaptureViolation, Detail: "the stream is captured"}
	}
	g.synchronise(st)
	st.drained = max(st.drained, later(g.time(), duration))
	g.drained = max(g.drained, st.drained)
	return nil
}

// launchable finds the stream of a simulated kernel.
func (d *Device) launchable(s cudadrv.Stream, duration time.Duration) (*stream, error) {
	g := d.gpu
	if d.closed || g.opens == 0 {
		return nil, &cudadrv.CallError{Func: launch, Result: cudadrv.InvalidContext, Detail: "the device is not open"}
	}
	if duration < 0 {
		return nil, &cudadrv.CallError{Func: launch, Result: cudadrv.InvalidValue, Detail: "work of negative duration"}
	}
	st, ok := g.streams[named(s)]
	if !ok {
		return nil, &cudadrv.CallError{Func: launch, Result: cudadrv.InvalidHandle, Detail: "no such stream"}
	}
	return st, g.implicit(launch, st)
}

// MemsetD8Async queues the time that filling takes. The range is checked now, not when the work would
// run.
func (d *Device) MemsetD8Async(p cudadrv.Ptr, value byte, bytes int64, s cudadrv.Stream) error {
	return d.transfer(s, memsetTime, work{call: call.MemsetD8Async, dst: p, bytes: bytes, value: uint32(value), unit: 1}, p)
}

// MemcpyDtoDAsync queues the time that copying takes. Both ranges are checked now, not when the work
// would run.
func (d *Device) MemcpyDtoDAsync(dst, src cudadrv.Ptr, bytes int64, s cudadrv.Stream) error {
	return d.transfer(s, memcpyTime, work{call: call.MemcpyDtoDAsync, dst: dst, src: src, bytes: bytes}, dst, src)
}

// transfer queues work over ranges of memory that begin at starts. No bytes are no work.
func (d *Device) transfer(s cudadrv.Stream, duration func(int64) time.Duration, w work, starts ...cudadrv.Ptr) error {
	c, bytes := w.call, w.bytes
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	enter := d.enter
	if c == call.MemcpyHtoDAsync || c == call.MemcpyDtoHAsync {
		enter = d.enterHost
	}
	if err := enter(c); err != nil {
		return err
	}
	st, err := g.streamNamed(c, s)
	if err != nil {
		return err
	}
	if bytes < 0 {
		return fail(c, cudadrv.InvalidValue, "%d bytes", bytes)
	}
	if bytes == 0 {
		return nil
	}
	for _, p := range starts {
		if !g.reaches(p, bytes) {
			return fail(c, cudadrv.IllegalAddress, "%d bytes at %#x are not all mapped and accessible", bytes, p)
		}
	}
	return g.submit(st, duration(bytes), w)
}

// reaches reports whether work can touch all of [p, p+bytes).
func (g *gpu) reaches(p cudadrv.Ptr, bytes int64) bool {
	return g.accessible(p, bytes) || g.pinned.around(p, bytes) != nil
}

// kind returns the kind of the node that the work is in a graph.
func (w work) kind() cudadrv.NodeKind {
	if w.unit > 0 {
		return cudadrv.MemsetNode
	}
	return cudadrv.MemcpyNode
}

// submit queues work that was checked, on a stream of the GPU's.
func (g *gpu) submit(st *stream, duration time.Duration, w work) error {
	c := w.call
	w.performed = g.followed(w)
	w.pageable = w.host != nil && g.pinned.aroundHost(w.host) == nil
	if st.capture != nil {
		return st.add(c.String(), node{kind: w.kind(), work: w, duration: duration})
	}
	if err := g.implicit(c.String(), st); err != nil {
		return err
	}
	g.enqueue(st, duration)
	g.chargeBytes(c, w.bytes)
	if g.backing == nil {
		return nil
	}
	w.ends = st.drained
	w.on = g
	g.driver.pending.add(w)
	if w.pageable {
		return g.wait(c, w.ends)
	}
	return nil
}
