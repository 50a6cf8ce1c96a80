//go:build linux && (amd64 || arm64)

package dynamic

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// captures are the captures begun through the devices of a library in modes that forbid calls: a capture in global mode forbids
// them to the whole process, on every device.
type captures struct {
	underWay atomic.Int64 // the sum of the numbers in streams; it may be read without the lock

	mu      sync.Mutex
	streams map[cudadrv.Stream]int // captures by the stream that they began with: all threads' stream 2 has one name
}

// begin counts a capture. It is called ahead of cuStreamBeginCapture, so that no later call finds none.
func (c *captures) begin(s cudadrv.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == nil {
		c.streams = map[cudadrv.Stream]int{}
	}
	c.streams[s]++
	c.underWay.Add(1)
}

// end takes a capture out of the count, where it was counted.
func (c *captures) end(s cudadrv.Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.streams[s]
	if n == 0 {
		return
	}
	c.underWay.Add(-1)
	if n == 1 {
		delete(c.streams, s)
		return
	}
	c.streams[s] = n - 1
}

// forget ends the capture of a stream that was destroyed.
func (c *captures) forget(s cudadrv.Stream) {
	if c.underWay.Load() > 0 {
		c.end(s)
	}
}

// way is how a call reaches the driver: with the device's context current, or not.
type way func(d *device, fn symbol, f *frame, n int) cudadrv.Result

func inContext(d *device, fn symbol, f *frame, n int) cudadrv.Result { return d.callCurrent(fn, f, n) }

func anywhere(d *device, fn symbol, f *frame, n int) cudadrv.Result { return d.lib.call(fn, f, n) }

// on returns the way of callOn.
func on(s cudadrv.Stream) way {
	if s <= lastStandardStream {
		return inContext
	}
	return anywhere
}

// outside makes a call that is no work of a stream, and that a capture may forbid: see "Captures" in the package
// comment. While nothing is captured it costs one atomic load.
func (d *device) outside(by way, fn symbol, f *frame, n int) cudadrv.Result {
	if d.lib.captures.underWay.Load() > 0 {
		return d.relaxed(by, fn, f, n)
	}
	r := by(d, fn, f, n)
	if r != cudadrv.CaptureViolation {
		return r
	}
	f.failing = false
	return d.relaxed(by, fn, f, n)
}

// relaxed makes a call with the thread in relaxed mode, and gives the thread the mode back that it had.
func (d *device) relaxed(by way, fn symbol, f *frame, n int) cudadrv.Result {
	if d.lib.functions[call.ThreadExchangeStreamCaptureMode] == 0 {
		return by(d, fn, f, n)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f.mode = uint64(cudadrv.CaptureRelaxed)
	if d.exchange(f) != cudadrv.Success {
		return by(d, fn, f, n)
	}
	r := by(d, fn, f, n)
	_ = d.exchange(f) // the mode was the thread's, and the first exchange worked
	return r
}
