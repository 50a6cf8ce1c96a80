package sim

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// Ids of different kinds never meet, so that one passed for another is caught.
const (
	firstHandle   uint64 = 1 << 40
	firstStream   uint64 = 2 << 40
	firstEvent    uint64 = 3 << 40
	firstContext  uint64 = 4 << 40
	firstModule   uint64 = 5 << 40
	firstFunction uint64 = 6 << 40
	firstGraph    uint64 = 7 << 40
	firstNode     uint64 = 8 << 40
	firstExec     uint64 = 9 << 40
)

// Ids of different drivers differ, so that a driver refuses ids of another: after the kind an id has the number of its driver,
// from 0. The ids of the first driver of a process are small, and all fit 53 bits, which numbers in JSON have. After
// driverCount drivers the numbers repeat.
const (
	driverBits         = 9
	driverCount        = 1 << driverBits
	firstDriver uint64 = 1 << (53 - driverBits)
)

var drivers atomic.Uint64 //nolint:gochecknoglobals // made on first use: a process has one sequence of drivers' numbers

// Driver is a simulated driver and its devices. It is safe for concurrent use.
type Driver struct {
	name   string
	config Config
	err    error  // error of the Config
	number uint64 // of the driver, times firstDriver: ids are from here on
	gpus   []*gpu
	views  []*Device // returned by Device

	space   space
	threads threads

	mu      sync.Mutex    // guards the GPUs and the fields below: copies between GPUs touch two of them
	epoch   time.Time     // the running clock's zero
	now     time.Duration // the stepped clock
	pending pending

	handles   atomic.Uint64 // ids given out so far, by kind
	streams   atomic.Uint64
	events    atomic.Uint64
	modules   atomic.Uint64
	functions atomic.Uint64
	graphs    atomic.Uint64
	nodes     atomic.Uint64
	execs     atomic.Uint64
	captures  atomic.Uint64
}

// New makes a simulated machine and touches nothing else. A Config that cannot be makes DeviceCount and
// Open fail with an error that wraps cudadrv.ErrNoDriver and says why.
func New(config Config) *Driver {
	d := &Driver{name: cmp.Or(config.Name, "sim"), epoch: time.Now()}
	d.config, d.err = config.complete()
	if d.err != nil {
		return d
	}
	d.number = (drivers.Add(1) - 1) % driverCount * firstDriver
	d.space.init(max(d.config.GranularityBytes, plainAlignBytes))
	for ordinal := range d.config.Devices {
		g := newGPU(d, ordinal, &d.mu)
		d.gpus = append(d.gpus, g)
		d.views = append(d.views, &Device{gpu: g})
	}
	return d
}

// id returns a new id of a kind and counts it.
func (d *Driver) id(kind uint64, count *atomic.Uint64) uint64 { return d.number + kind + count.Add(1) }

// Name returns Config.Name.
func (d *Driver) Name() string { return d.name }

// DeviceCount returns Config.Devices.
func (d *Driver) DeviceCount() (int, error) { return len(d.gpus), d.err }

// Open returns a view of the device that counts as opened until its Close. The result is a *Device.
func (d *Driver) Open(ordinal int) (cudadrv.Device, error) {
	if d.err != nil {
		return nil, d.err
	}
	if ordinal < 0 || ordinal >= len(d.gpus) {
		return nil, fmt.Errorf("%w: %w", cudadrv.ErrNoDevice, &cudadrv.CallError{
			Func: "cuDeviceGet", Result: cudadrv.InvalidDevice,
			Detail: fmt.Sprintf("ordinal %d of %d", ordinal, len(d.gpus)),
		})
	}
	dev, err := d.gpus[ordinal].open()
	if err != nil {
		return nil, err
	}
	return dev, nil
}

// Device returns a view of the simulated GPU to observe and control it, also before Open and after the last Close. It does not
// count as opened, so its driver calls work only while another view is open. It returns nil if there is no device with that
// ordinal.
func (d *Driver) Device(ordinal int) *Device {
	if ordinal < 0 || ordinal >= len(d.views) {
		return nil
	}
	return d.views[ordinal]
}
