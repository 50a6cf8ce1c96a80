package cuda

import (
	"github.com/go-vram/vram/streams"
)

// failure returns the error of a call after a fault of the device: a *vram.FaultError once, and then a *vram.DeviceFailedError.
// Other errors stay.
func (c *submission) failure(err error) error {
	if err == nil {
		return nil
	}
	return c.work.Failure(err)
}

// recording returns a reason for which launches take the slow way: they are recorded.
func (c *submission) recording() bool { return c.work.RecordsLaunches() }

// recorded makes a launch that is recorded with its place and buffers, and waits for it if the device is set so. Launches of a
// capture, held, are not recorded, but the launches of its graph are.
func (c *submission) recorded(kernel string, args []Arg, held *capture, launch func() error) error {
	if held != nil || !c.recording() {
		return launch()
	}
	var buffers []streams.LaunchBuffer
	for i := range args {
		if args[i].mode != byValue {
			buffers = append(buffers, streams.LaunchBuffer{Index: i, Buffer: args[i].buffer})
		}
	}
	dropped := c.work.Launching(kernel, buffers)
	if err := launch(); err != nil {
		if !submitted(err) {
			dropped()
		}
		return err
	}
	if !c.work.AwaitsLaunches() || c.capture.Load() != nil {
		return nil
	}
	return c.synchronize()
}

// synchronize waits for the stream: the launches that were recorded before have finished.
func (c *submission) synchronize() error {
	count := c.work.LaunchCount()
	if err := c.work.Synchronize(); err != nil {
		return c.failure(err)
	}
	c.work.Finished(count)
	return nil
}
