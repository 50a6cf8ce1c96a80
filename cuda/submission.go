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
	checked cudadrv.CheckedKernels // not nil under a checker, which records the accesses of kernels
	host    cudadrv.HostMemory
	wide    cudadrv.WideWork
	timed   cudadrv.TimedEvents
	graphs  cudadrv.Graphs
	peers   cudadrv.Peers

	special atomic.Int32 // reasons for which launches take the slow way: capture, profile, checker, FaultPlaces
	capture atomic.Pointer[capture]
	profile atomic.Pointer[Profile]
	spare   atomic.Pointer[params] // of the next launch, where none is being submitted: see borrow
}

// submissionOf returns the submission of a stream.
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
		if c.recording() {
			c.special.Add(1)
		}
		return c
	}).(*submission)
}

// open makes driver calls during which the stream stays open.
func (c *submission) open(call func() error) error {
	if err := c.work.Begin(); err != nil {
		return err
	}
	defer c.work.End()
	return c.failure(call())
}

// submit makes driver calls that put work on the stream: for a capture, or for nil outside of any. If the stream has entered or
// left a capture since the caller looked, the error is a *CaptureError.
func (c *submission) submit(held *capture, call func() error) error {
	if err := c.enter(held); err != nil {
		return err
	}
	defer c.work.Leave()
	return c.failure(call())
}

// enter begins work on the stream, which c.work.Leave ends: see submit.
func (c *submission) enter(held *capture) error {
	if err := c.work.Enter(held != nil); err != nil {
		return err
	}
	if held != nil && c.capture.Load() != held {
		c.work.Leave()
		return held.over(c)
	}
	return nil
}

// outside makes driver calls on the stream that may be part of no capture. The error names the function.
func (c *submission) outside(function string, call func() error) error {
	if err := c.work.Outside(function); err != nil {
		return err
	}
	defer c.work.Leave()
	return c.failure(call())
}

// record records an event that is waited for or queried, which may be part of no capture.
func (c *submission) record(e cudadrv.Event) error {
	const function = "cuEventRecord"
	return c.outside(function, func() error {
		if err := c.device.EventRecord(e, c.handle); err != nil {
			return err
		}
		return c.work.Uncaptured(function) // an unannounced capture may have it
	})
}

// captured puts the stream into a capture, which was announced. Launches take the slow way from here on.
func (c *submission) captured(p *capture) {
	c.special.Add(1)
	c.capture.Store(p)
}

// released takes it out: nothing more is submitted for the capture.
func (c *submission) released() {
	c.special.Add(-1)
	c.capture.Store(nil)
}
