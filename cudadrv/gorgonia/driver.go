//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// driverName is Driver.Name, and what Info says.
const driverName = "gorgonia"

// Config says which context to use. The zero Config is right where the program uses primary contexts.
type Config struct {
	// Context is a context of the caller's, which must outlive the devices that are opened; it is neither made
	// current elsewhere nor destroyed. Open then wants the ordinal of its device. The zero value: the primary context.
	Context cu.CUContext
}

// Driver is libcuda through gorgonia.org/cu. It is safe for concurrent use.
type Driver struct {
	config  Config
	dynamic *dynamic.Driver // counts devices; it has no context of its own
}

var _ cudadrv.Driver = (*Driver)(nil)

// New makes a driver that opens nothing yet. CUDA was started when gorgonia.org/cu was imported.
func New(config Config) *Driver {
	return &Driver{config: config, dynamic: dynamic.New(dynamic.Config{})}
}

// Name is "gorgonia".
func (d *Driver) Name() string { return driverName }

// DeviceCount counts the devices that CUDA lets this process see. Errors are those of dynamic.Driver.DeviceCount:
// the driver may be too old for what is taken from there.
func (d *Driver) DeviceCount() (int, error) { return d.dynamic.DeviceCount() }

// Open makes the device usable: its primary context, which it retains, or Config.Context. Errors are those of
// dynamic.Driver.Open. The Device has all optional interfaces of cudadrv; Info.Capabilities says which of
// them work.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) {
	count, err := d.dynamic.DeviceCount()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= count {
		return nil, fmt.Errorf("%w: %w", cudadrv.ErrNoDevice, &cudadrv.CallError{
			Func: "cuDeviceGet", Result: cudadrv.InvalidDevice, Detail: fmt.Sprintf("ordinal %d of %d", ordinal, count),
		})
	}
	number, err := cu.GetDevice(ordinal)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cudadrv.ErrNoDevice, &cudadrv.CallError{
			Func: "cuDeviceGet", Result: resultOf(err), Name: nameOf(err), Detail: fmt.Sprintf("ordinal %d", ordinal),
		})
	}
	if d.config.Context != (cu.CUContext{}) {
		return openIn(d.config.Context, ordinal, nil)
	}
	context, err := number.RetainPrimaryCtx()
	if err != nil {
		return nil, failed(call.PrimaryCtxRetain, err, "")
	}
	release := func() error { return failed(call.PrimaryCtxRelease, number.ReleasePrimaryCtx(), "") }
	dev, err := openIn(context, ordinal, release)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return dev, nil
}

// openIn opens the inner device in the context, which release gives back at Close unless it is nil.
func openIn(context cu.CUContext, ordinal int, release func() error) (cudadrv.Device, error) {
	opened, err := dynamic.New(dynamic.Config{Context: FromContext(context)}).Open(ordinal)
	if err != nil {
		return nil, err
	}
	all, ok := opened.(inner)
	if !ok {
		return nil, errors.Join(errIncomplete, opened.Close())
	}
	d := &device{inner: all, context: context, release: release, info: all.Info(), gate: newGate(), closed: make(chan struct{})}
	d.info.Driver = driverName
	return d, nil
}

// errIncomplete is a mistake of this house: the device of cudadrv/dynamic has all interfaces.
var errIncomplete = errors.New("gorgonia: the inner device lacks an interface of cudadrv")
