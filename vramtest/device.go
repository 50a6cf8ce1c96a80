package vramtest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/cudadrv/site"
)

// Device is a *vram.Device on a simulated GPU that reports hazards, with methods for a test's own work on it.
// Make one with Open.
type Device struct {
	*vram.Device
	t       T
	gpu     *hazard.Device
	machine *sim.Device
	helpers *site.Helpers // left out of places
	silent  bool          // hazards fail nothing at the end
	closed  atomic.Bool
	ended   atomic.Bool      // the view is closed, too
	kernels *ptxrun.Executor // nil where kernels are not executed
	checks  bool             // faults of kernels fail the test
	printed *lines           // by kernels, for the test's log; nil where it goes elsewhere
}

// Open opens a device for a test. At the end of the test it is closed, if it was not before; hazards, and buffers
// that live then, fail the test. Open fails the test if the options cannot be.
func Open(t T, options ...Option) *Device {
	t.Helper()
	var s settings
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	d := &Device{t: t, silent: s.expected || s.atOnce, checks: !s.expected}
	d.helpers = site.NewHelpers(s.config.Helpers)
	s.execute(d)
	machine := sim.New(s.machine)
	s.config.Driver = machine
	config, checked := Watch(s.config)
	if s.wrap != nil {
		config.Driver = s.wrap(config.Driver)
	}
	d.machine = machine.Device(config.Ordinal)
	if s.atOnce {
		checked.Checker(config.Ordinal).OnReport(func(r hazard.Report) { t.Errorf("%v", r) })
	}
	var err error
	if d.gpu, err = checked.View(config.Ordinal); err != nil {
		t.Fatalf("vramtest: %v", err)
	}
	if d.Device, err = vram.Open(config); err != nil {
		t.Fatalf("vramtest: %v", errors.Join(err, d.closeView()))
	}
	t.Cleanup(d.finish)
	return d
}

// opened reports whether Open has made the device: calls on any other device return nothing, as no test fails by it.
func (d *Device) opened() bool { return d != nil && d.gpu != nil }

// finish closes everything and fails the test for each finding. The close waits for work, which may find further faults.
func (d *Device) finish() {
	d.t.Helper()
	failed := d.closeAll()
	faults := d.Faults()
	for _, err := range faults {
		if d.checks {
			d.t.Errorf("%v", err)
		}
	}
	if len(faults) == 0 { // after a fault every call fails
		d.must(failed)
	}
	d.printed.flush()
	if d.silent {
		return
	}
	for _, r := range d.Hazards() {
		d.t.Errorf("%v", r)
	}
}

// closeAll closes the device, if it is open, and the test's view.
func (d *Device) closeAll() (err error) {
	if !d.closed.Load() {
		err = d.Device.Close()
	}
	return errors.Join(err, d.closeView())
}

// closeView closes the test's view, once. With the last view the simulated device gives its addresses back.
func (d *Device) closeView() error {
	if d.ended.Swap(true) {
		return nil
	}
	return d.gpu.Close()
}

// Close closes the device before the end of the test. After a fault, when every call fails, that ends the view of GPU,
// too: nothing else gives back the addresses. The error is the caller's; see vram.Device.Close.
func (d *Device) Close() error {
	if !d.opened() {
		return vram.ErrNotOpen
	}
	d.closed.Store(true)
	err := d.Device.Close()
	if _, _, broken := d.gpu.MemGetInfo(); broken != nil {
		err = errors.Join(err, d.closeView())
	}
	return err
}

// GPU returns the test's own view of the device, for kernels, events, copies, and memory outside the allocator. Its
// calls are checked. It is closed at the end of the test.
func (d *Device) GPU() *hazard.Device {
	if !d.opened() {
		return nil
	}
	return d.gpu
}

// Hazards returns the hazards found so far: the first of each kind and pair of places.
func (d *Device) Hazards() []hazard.Report {
	if !d.opened() {
		return nil
	}
	reports, _ := d.gpu.Checker().Reports()
	return reports
}

// Stream is NewStream. It fails the test if there is none.
func (d *Device) Stream() *vram.Stream {
	if !d.opened() {
		return nil
	}
	d.t.Helper()
	s, err := d.NewStream()
	if err != nil {
		d.t.Fatalf("vramtest: %v", err)
	}
	return s
}

// Now returns the device's virtual time.
func (d *Device) Now() time.Duration {
	if !d.opened() {
		return 0
	}
	return d.machine.Now()
}

// Advance moves the virtual time forwards: work that ends until then is over. That orders nothing by itself.
func (d *Device) Advance(by time.Duration) {
	if !d.opened() {
		return
	}
	d.machine.Advance(by)
}

// SetCapacity changes the device's physical memory, as when another process takes or returns some.
func (d *Device) SetCapacity(bytes int64) {
	if !d.opened() {
		return
	}
	d.machine.SetCapacity(bytes)
}

// must fails the test for an error.
func (d *Device) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Errorf("vramtest: %v", err)
	}
}
