package cpu

import (
	"io"
	"time"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// Name is the driver's name, by which an import registers it.
const Name = "cpu"

func init() { cudadrv.Register(Name, func() cudadrv.Driver { return New(Config{}) }) } //nolint:gochecknoinits // a name in a table; it starts nothing

// Config configures the device. The zero value is one device with the memory of an H200.
type Config struct {
	// Devices is the number of devices. 0: 1.
	Devices int
	// TotalBytes is the memory of each device. 0: sim.DefaultTotalBytes.
	TotalBytes int64
	// ArgumentsOnly lets a launch touch only buffers whose addresses are among its parameters. Then an access past the end of a
	// buffer is also found if another live buffer follows, and kernels that read addresses of buffers from memory fail.
	ArgumentsOnly bool
	// Ignore has the kinds of mistakes that are not looked for: see interp.Launch.
	Ignore []interp.Kind
	// MaxInstructions bounds the instructions that one warp executes. 0: interp.DefaultMaxInstructions.
	MaxInstructions int64
	// Cooperative lets the blocks of a launch wait for each other, as after cuLaunchCooperativeKernel.
	Cooperative bool
	// Output receives the output of printf in kernels, under the lock of the driver: it calls no device. Nil: it is dropped.
	Output io.Writer
}

// Driver is the driver. Make it with New. It is safe for concurrent use.
type Driver struct {
	machine  *sim.Driver
	buffers  *ptxrun.Buffers
	executor *ptxrun.Executor
}

var (
	_ cudadrv.Driver         = (*Driver)(nil)
	_ cudadrv.BufferObserver = (*Driver)(nil)
)

// New makes a driver and touches nothing else. A Config that cannot be makes DeviceCount and
// Open fail with an error that wraps cudadrv.ErrNoDriver; on a system without real bytes Open fails with sim.ErrNoBytes.
func New(config Config) *Driver {
	buffers := ptxrun.NewBuffers(!config.ArgumentsOnly)
	executor := ptxrun.New(ptxrun.Config{
		Ignore: config.Ignore, MaxInstructions: config.MaxInstructions, Cooperative: config.Cooperative, Owners: buffers, Output: config.Output,
	})
	machine := sim.New(sim.Config{
		Name: Name, Devices: config.Devices, TotalBytes: config.TotalBytes, Clock: sim.Running, NoCosts: true, Bytes: true, Executor: executor,
		KernelTime: func(string, cudadrv.Geometry) time.Duration { return 0 },
	})
	return &Driver{machine, buffers, executor}
}

// made reports whether New made the driver.
func (d *Driver) made() bool { return d != nil && d.machine != nil }

// Name returns Name, "cpu".
func (d *Driver) Name() string { return Name }

// DeviceCount returns Config.Devices.
func (d *Driver) DeviceCount() (int, error) {
	if !d.made() {
		return 0, cudadrv.ErrNotOpen
	}
	return d.machine.DeviceCount()
}

// Open returns a view of the device that counts as opened until its Close.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) {
	if !d.made() {
		return nil, cudadrv.ErrNotOpen
	}
	return d.machine.Open(ordinal)
}

// Device returns the simulated device itself, to observe it: see sim.Driver.Device. It returns nil if there is none with that
// ordinal.
func (d *Driver) Device(ordinal int) *sim.Device {
	if !d.made() {
		return nil
	}
	return d.machine.Device(ordinal)
}

// Faults returns the mistakes of kernels so far, in their order. Each wraps an *interp.Fault.
func (d *Driver) Faults() []error {
	if !d.made() {
		return nil
	}
	return d.executor.Faults()
}

// BufferAllocated implements cudadrv.BufferObserver: faults name the buffer.
func (d *Driver) BufferAllocated(e cudadrv.BufferEvent) {
	if d.made() {
		d.buffers.BufferAllocated(e)
	}
}

// BufferFreed implements cudadrv.BufferObserver.
func (d *Driver) BufferFreed(e cudadrv.BufferEvent) {
	if d.made() {
		d.buffers.BufferFreed(e)
	}
}
