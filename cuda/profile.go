package cuda

import (
	"errors"
	"sync"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// KernelTime is one launch of a profile.
type KernelTime struct {
	Kernel   string
	Geometry Geometry
	// Duration is the device's time between the event before the launch and the event after it. Kernels of other streams that
	// run at the same time make it longer.
	Duration time.Duration
}

// Profile notes the kernels of a stream while it is on: see Context.StartProfile.
type Profile struct {
	on *submission
	mu sync.Mutex // launches that are profiled meet here
	// The launches, in order.
	launches []profiled
	failed   error
	stopped  bool // a launch that has found the profile before is not profiled any more
}

type profiled struct {
	kernel     string
	geometry   Geometry
	start, end cudadrv.Event
}

// StartProfile notes name, geometry and duration of each kernel that is launched on the stream from now on, except in captures,
// with two events a launch. Without a profile launches cost no more. Errors: ErrNotOpen, cudadrv.NotSupported where events have
// no time, and ErrProfiling.
func (c *Context) StartProfile() (*Profile, error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	if c.timed == nil || !c.Info().Capabilities.Has(cudadrv.EventTiming) {
		return nil, unsupported("cuEventCreate")
	}
	p := &Profile{on: c.submission}
	if !c.profile.CompareAndSwap(nil, p) {
		return nil, ErrProfiling
	}
	c.special.Add(1)
	return p, nil
}

// ErrProfiling refuses a second profile of a stream.
var ErrProfiling = errors.New("cuda: a profile of the stream is on")

// launch submits a kernel between two events. Stop reports a missing measurement; the launch is not refused for it.
func (p *Profile) launch(name string, g Geometry, submit func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return submit()
	}
	one := &profiled{kernel: name, geometry: g}
	launched := false
	defer func() { // also after a panic of the driver
		if launched {
			p.launches = append(p.launches, *one)
		} else {
			p.destroy(*one)
		}
	}()
	p.record(&one.start)
	if err := submit(); err != nil {
		return err
	}
	launched = true
	p.record(&one.end)
	return nil
}

// record makes an event, 0 where the driver refuses.
func (p *Profile) record(e *cudadrv.Event) {
	var err error
	if *e, err = p.on.timed.EventCreateTimed(); err == nil {
		if err = p.on.record(*e); err != nil {
			refused := *e
			*e = 0
			err = errors.Join(err, p.on.device.EventDestroy(refused))
		}
	}
	p.failed = errors.Join(p.failed, err)
}

func (p *Profile) destroy(one profiled) {
	for _, e := range []cudadrv.Event{one.start, one.end} {
		if e != 0 {
			p.failed = errors.Join(p.failed, p.on.work.Guarded(func() error { return p.on.device.EventDestroy(e) }))
		}
	}
}

// Stop ends the profile, waits for its launches, and returns them in order. Of a launch whose time could not be taken the
// Duration is below 0, and the error says why. The second call returns nothing.
func (p *Profile) Stop() ([]KernelTime, error) {
	if p == nil || p.on == nil {
		return nil, ErrNotOpen
	}
	if p.on.profile.CompareAndSwap(p, nil) {
		p.on.special.Add(-1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	var all []KernelTime
	for _, one := range p.launches {
		k := KernelTime{one.kernel, one.geometry, -1}
		if one.start != 0 && one.end != 0 {
			err := p.on.device.EventSynchronize(one.end)
			if err == nil {
				k.Duration, err = p.on.timed.EventElapsedTime(one.start, one.end)
			}
			if err != nil {
				k.Duration = -1
				p.failed = errors.Join(p.failed, err)
			}
		}
		all = append(all, k)
		p.destroy(one)
	}
	err := p.failed
	p.launches, p.failed = nil, nil
	return all, err
}
