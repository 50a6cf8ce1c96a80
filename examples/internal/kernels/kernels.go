// Package kernels gives the examples work that occupies a stream for a given time. A simulated device supports
// that; on a GPU it is a number of memsets over a scratch buffer.
package kernels

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
)

const (
	// scratchBytes is the size of a memset: tens of microseconds on a large GPU, so that submitting it (3 us) is
	// quicker than running it, and little of the device's memory.
	scratchBytes = 256 << 20
	// rehearsals is the number of timed runs, each of rehearsalCount memsets. The fastest counts: the first ones
	// wake the device up.
	rehearsals     = 5
	rehearsalCount = 32
)

// Launcher is a device with work of a given duration and a clock.
type Launcher interface {
	// Launch queues work on the stream of the given duration. Streams share a real device, so several at once
	// take longer.
	Launch(s cudadrv.Stream, duration time.Duration) error
	// Now returns the device's time.
	Now() time.Duration
}

// Kernels launches work on a device. It holds a scratch buffer on a real one.
type Kernels struct {
	Launcher
	undo func() error
}

// Open returns Kernels for a device that stays open until Close. It waits for the device.
func Open(device cudadrv.Device) (*Kernels, error) {
	if l, ok := device.(Launcher); ok {
		return &Kernels{l, func() error { return nil }}, nil
	}
	m := &memsets{device: device, began: time.Now()}
	var err error
	if m.scratch, err = device.MemAlloc(scratchBytes); err != nil {
		return nil, fmt.Errorf("a buffer for kernels: %w", err)
	}
	if err := m.rehearse(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return &Kernels{m, m.close}, nil
}

// checking is a device that checks the memory accesses of kernels.
type checking interface {
	Kernel(s cudadrv.Stream, duration time.Duration, accesses ...hazard.Access) error
}

// Write launches work that writes buffers, and declares them to a checking device.
func (k *Kernels) Write(s cudadrv.Stream, duration time.Duration, buffers ...vram.Buffer) error {
	c, ok := k.Launcher.(checking)
	if !ok {
		return k.Launch(s, duration)
	}
	accesses := make([]hazard.Access, len(buffers))
	for i, b := range buffers {
		accesses[i] = hazard.Access{Ptr: b.Ptr(), Bytes: b.Bytes(), Write: true}
	}
	return c.Kernel(s, duration, accesses...)
}

// Close frees the scratch buffer. It waits for the device.
func (k *Kernels) Close() error { return k.undo() }

// memsets implements Launcher on a real device.
type memsets struct {
	device  cudadrv.Device
	scratch cudadrv.Ptr
	each    time.Duration // of one memset over the scratch buffer
	began   time.Time
}

// rehearse times the memsets.
func (m *memsets) rehearse() error {
	stream, err := m.device.StreamCreate()
	if err != nil {
		return err
	}
	for range rehearsals {
		start := time.Now()
		for range rehearsalCount {
			err = errors.Join(err, m.device.MemsetD8Async(m.scratch, 1, scratchBytes, stream))
		}
		if err = errors.Join(err, m.device.StreamSynchronize(stream)); err != nil {
			break
		}
		took := max(time.Since(start)/rehearsalCount, 1)
		if m.each == 0 || took < m.each {
			m.each = took
		}
	}
	return errors.Join(err, m.device.StreamDestroy(stream))
}

// Launch queues whole memsets and one for the rest.
func (m *memsets) Launch(s cudadrv.Stream, duration time.Duration) error {
	for ; duration > 0; duration -= m.each {
		bytes := int64(scratchBytes)
		if duration < m.each {
			bytes = max(1, int64(float64(scratchBytes)*float64(duration)/float64(m.each)))
		}
		if err := m.device.MemsetD8Async(m.scratch, 1, bytes, s); err != nil {
			return err
		}
	}
	return nil
}

// Now returns the time since the beginning.
func (m *memsets) Now() time.Duration { return time.Since(m.began) }

func (m *memsets) close() error { return m.device.MemFree(m.scratch) }
