//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"errors"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// driverName is the result of Driver.Name, and Info.Driver.
const driverName = "gorgonia"

// Config says which context to use. The zero Config is right where the program uses primary contexts.
type Config struct {
	// Context is a context of the caller's, which must outlive the devices that are opened; it is neither made
	// current elsewhere nor destroyed. Open then wants the ordinal of its device. The zero value: the primary context.
	Context cu.CUContext
}

// Driver is cudadrv/dynamic in a context of gorgonia.org/cu. It is safe for concurrent use.
type Driver struct{ dynamic *dynamic.Driver }

var _ cudadrv.Driver = (*Driver)(nil)

// New makes a driver that opens nothing yet. CUDA was started when gorgonia.org/cu was imported.
func New(config Config) *Driver {
	return &Driver{dynamic.New(dynamic.Config{Context: FromContext(config.Context)})}
}

// Name returns "gorgonia".
func (d *Driver) Name() string { return driverName }

// DeviceCount returns the result of dynamic.Driver.DeviceCount.
func (d *Driver) DeviceCount() (int, error) { return d.dynamic.DeviceCount() }

// Open makes the device usable: its primary context, which it retains, or Config.Context. It returns the errors of
// dynamic.Driver.Open. The Device has all optional interfaces of cudadrv; Info.Capabilities says which of them work.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) {
	opened, err := d.dynamic.Open(ordinal)
	if err != nil {
		return nil, err
	}
	all, ok := opened.(everything)
	if !ok {
		return nil, errors.Join(errIncomplete, opened.Close())
	}
	return device{all}, nil
}

// errIncomplete is a mistake of this house: the device of cudadrv/dynamic has all interfaces.
var errIncomplete = errors.New("gorgonia: the device of cudadrv/dynamic lacks an interface of cudadrv")

// everything is a device with all optional interfaces.
type everything interface {
	cudadrv.Device
	cudadrv.HostMemory
	cudadrv.HostFunctions
	cudadrv.ShareableMemory
	cudadrv.CaptureQueries
	cudadrv.BlockingStreams
	cudadrv.Kernels
	cudadrv.Graphs
	cudadrv.TimedEvents
	cudadrv.WideWork
	cudadrv.Peers
	cudadrv.SharedEvents
	cudadrv.TensorMaps
	cudadrv.ForeignCalls
}

// device is one of cudadrv/dynamic by another name.
type device struct{ everything }

// Info returns the properties read by Open.
func (d device) Info() cudadrv.Info {
	info := d.everything.Info()
	info.Driver = driverName
	return info
}
