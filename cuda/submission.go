package cuda

import (
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// submission is the way to a CUDA stream, which all contexts of the stream share: a capture, and a profile, is of the stream.
type submission struct {
	work   streams.Submitter
	handle cudadrv.Stream

	device  cudadrv.Device
	kernels cudadrv.Kernels        // nil where the device has none, and so on
	checked cudadrv.CheckedKernels // not nil under a checker, which is told what kernels touch
	host    cudadrv.HostMemory
	wide    cudadrv.WideWork
	timed   cudadrv.TimedEvents
	graphs  cudadrv.Graphs
	peers   cudadrv.Peers

	special atomic.Int32 // reasons for which launches take the slow way: capture, profile, checker
	capture atomic.Pointer[capture]
	profile atomic.Pointer[Profile]
}

// submissionOf is that of a stream.
func submissionOf(work streams.Submitter) *submission {
	return work.Attached(func() any { //nolint:forcetypeassert // only this package attaches anything
		c := &submission{work: work, handle: work.Stream().Handle(), device: work.Device()}
		c.kernels, _ = c.device.(cudadrv.Kernels)
		c.host, _ = c.device.(cudadrv.HostMemory)
		c.wide, _ = c.device.(cudadrv.WideWork)
		c.timed, _ = c.device.(cudadrv.TimedEvents)
		c.graphs, _ = c.device.(cudadrv.Graphs)
		c.peers, _ = c.device.(cudadrv.Peers)
		if c.checked, _ = c.device.(cudadrv.CheckedKernels); c.checked != nil {
			c.special.Add(1)
		}
		return c
	}).(*submission)
}

// Capturing reports whether a context's stream is being captured.
func Capturing(c *Context) bool { return c.made() && c.capture.Load() != nil }

// submit makes driver calls on the stream, which stays open meanwhile.
func (c *submission) submit(call func() error) error {
	if err := c.work.Begin(); err != nil {
		return err
	}
	defer c.work.End()
	return call()
}

// captured puts the stream into a capture, unless it is in one. Launches take the slow way from here on: before the driver is told.
func (c *submission) captured(p *capture) bool {
	if !c.capture.CompareAndSwap(nil, p) {
		return false
	}
	c.special.Add(1)
	return true
}

// released takes it out.
func (c *submission) released() {
	c.special.Add(-1)
	c.capture.Store(nil)
}
