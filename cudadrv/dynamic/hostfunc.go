//go:build linux && (amd64 || arm64)

package dynamic

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// hostCall is a function that a stream will call. C holds its address until then.
type hostCall struct {
	f    func()
	home *hostCalls
	bit  uint64
}

// hostCallCount is how many calls of a block can be queued. One bit of a word each: no more fit.
const hostCallCount = 64

// hostCalls is a block of calls and, when all of them are queued, the next block. Bit i of free says that call i
// is queued nowhere. Blocks are never given up: C has addresses in them.
type hostCalls struct {
	free  atomic.Uint64
	calls [hostCallCount]hostCall
	next  atomic.Pointer[hostCalls]
}

// callbacks are the process's function that C calls, and its first block. purego has room for 2000
// such functions and frees none, and C's addresses outlive any device: hence one for all.
type callbacks struct {
	function uintptr
	first    *hostCalls
}

var theCallbacks = sync.OnceValue(func() callbacks { //nolint:gochecknoglobals // made on first use, never written
	return callbacks{function: purego.NewCallback(runHostCall), first: newHostCalls()}
})

func newHostCalls() *hostCalls {
	h := &hostCalls{}
	for i := range h.calls {
		h.calls[i].home, h.calls[i].bit = h, 1<<i
	}
	h.free.Store(1<<hostCallCount - 1)
	return h
}

// take finds a free call, in this block or a later one.
func (h *hostCalls) take(f func()) *hostCall {
	for {
		free := h.free.Load()
		if free == 0 {
			next := h.next.Load()
			if next == nil {
				h.next.CompareAndSwap(nil, newHostCalls())
				next = h.next.Load()
			}
			h = next
			continue
		}
		if bit := free & -free; h.free.CompareAndSwap(free, free&^bit) {
			c := &h.calls[bits.TrailingZeros64(bit)]
			c.f = f
			return c
		}
	}
}

// give takes the function out of the call and frees it.
func (c *hostCall) give() func() {
	f := c.f
	c.f = nil
	c.home.free.Or(c.bit)
	return f
}

// runHostCall is called by C, on a thread of the driver.
func runHostCall(c *hostCall) { c.give()() }

// LaunchHostFunc calls cuLaunchHostFunc. The call allocates nothing while at most 64 functions are queued in the
// process; purego allocates where C calls back.
func (d *device) LaunchHostFunc(s cudadrv.Stream, f func()) error {
	fr, err := d.enterFeature(call.LaunchHostFunc, cudadrv.HostCalls)
	if err != nil {
		return err
	}
	defer d.gate.leave(fr)
	if f == nil {
		return refuse(call.LaunchHostFunc, cudadrv.InvalidValue, "no function")
	}
	back := theCallbacks()
	c := back.first.take(f)
	fr.args[0], fr.args[1], fr.args[2] = uintptr(s), back.function, uintptr(unsafe.Pointer(c))
	r := d.callOn(s, call.LaunchHostFunc, fr, 3)
	if r != cudadrv.Success {
		c.give()
	}
	return d.done(fr, call.LaunchHostFunc, r)
}
