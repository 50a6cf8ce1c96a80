package dynamic

import (
	"fmt"
	"sync"

	"github.com/go-vram/vram/cudadrv"
)

// leastVersion is the oldest driver known to have the functions and layouts of this package: they are equal in CUDA 11.8 to 13,
// and older headers were not checked.
const leastVersion = 11080

// Config says which library to open and which context to use. The zero Config is right for most programs.
type Config struct {
	// Library is the path or name of the driver library. "": libcuda.so.1, then libcuda.so, wherever the
	// system's loader finds them.
	Library string
	// Context is a CUcontext of the caller's, as a number, which must outlive the devices that are opened; it is
	// neither made current elsewhere nor destroyed. Open then wants the ordinal of its device. 0: the primary context.
	Context uintptr
}

// Driver is libcuda. It is safe for concurrent use.
type Driver struct {
	config Config

	mu  sync.Mutex // guards lib: loading happens once
	lib *library
}

var (
	_ cudadrv.Driver    = (*Driver)(nil)
	_ cudadrv.Describer = (*Driver)(nil)
)

// New makes a driver that opens nothing yet.
func New(config Config) *Driver { return &Driver{config: config} }

// Name returns "dynamic".
func (d *Driver) Name() string { return "dynamic" }

// DeviceCount loads and starts the library if need be, which can take a second, and counts the devices that
// CUDA lets this process see. Errors: *LibraryError, *VersionError, *SymbolError and *InitError, which are a
// cudadrv.ErrNoDriver or ErrNoDevice. A later call tries again.
func (d *Driver) DeviceCount() (int, error) {
	lib, err := d.load()
	if err != nil {
		return 0, err
	}
	return lib.deviceCount()
}

// Open makes the device usable: its primary context, which it retains, or Config.Context. Errors: the errors of DeviceCount,
// cudadrv.ErrNoDevice for a number without a device, and *ContextError. The Device has all optional interfaces of cudadrv;
// Info.Capabilities says which of them work.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) {
	lib, err := d.find(ordinal)
	if err != nil {
		return nil, err
	}
	return lib.open(ordinal, d.config.Context)
}

// Describe returns the Info that a Device of this ordinal has. It makes no context, so it takes no memory of the GPU, and also works on
// a GPU that is full. Errors: of DeviceCount, and cudadrv.ErrNoDevice for a number without a device.
func (d *Driver) Describe(ordinal int) (cudadrv.Info, error) {
	lib, err := d.find(ordinal)
	if err != nil {
		return cudadrv.Info{}, err
	}
	return lib.info(ordinal)
}

// find loads the library and checks that it has a device of that number.
func (d *Driver) find(ordinal int) (*library, error) {
	lib, err := d.load()
	if err != nil {
		return nil, err
	}
	count, err := lib.deviceCount()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= count {
		return nil, noOrdinal(ordinal, count)
	}
	return lib, nil
}

// load opens and starts the library, once.
func (d *Driver) load() (*library, error) {
	if d == nil {
		return nil, fmt.Errorf("dynamic: the driver is nil: %w", cudadrv.ErrNoDriver)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lib != nil {
		return d.lib, nil
	}
	lib, err := loadLibrary(d.config.Library)
	if err != nil {
		return nil, err
	}
	d.lib = lib
	return lib, nil
}
