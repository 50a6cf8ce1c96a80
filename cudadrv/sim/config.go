package sim

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// DefaultTotalBytes is the physical memory of an H200 as its driver reports it.
const DefaultTotalBytes int64 = 150_109_880_320

// DefaultGranularityBytes is the handle and mapping step of every CUDA device so far.
const DefaultGranularityBytes int64 = 2 << 20

const (
	// Plain addresses are multiples of 512 bytes, as cuMemAlloc's; a granule below that could not keep it.
	leastGranularityBytes = 512
	// Above 1 TiB a granule would leave fewer than a hundred places in the address space.
	mostGranularityBytes = 1 << 40
	// The ordinals of one process; more would only be a mistaken unit.
	mostDevices = 1024
)

// Clock is how a device's virtual time advances.
type Clock uint8

const (
	// Stepped time is moved by Advance, AdvanceTo and by calls that wait.
	Stepped Clock = iota
	// Running time is the wall clock since New; calls that wait sleep.
	Running
)

var clockNames = [...]string{"stepped", "running"} //nolint:gochecknoglobals // constant table, by number

// String returns the name.
func (c Clock) String() string {
	if int(c) < len(clockNames) {
		return clockNames[c]
	}
	return fmt.Sprintf("Clock(%d)", uint8(c))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (c Clock) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the text of String. With an error the value stays.
func (c *Clock) UnmarshalText(text []byte) error {
	for i, name := range clockNames {
		if string(text) == name {
			*c = Clock(i)
			return nil
		}
	}
	return fmt.Errorf("sim: %q is no Clock: want %s", text, strings.Join(clockNames[:], ", "))
}

// Config describes a simulated machine. The zero value is one idle H200 on a stepped clock.
type Config struct {
	// Name is the name of the driver. "": "sim".
	Name string
	// Devices is how many GPUs there are. 0: 1.
	Devices int
	// TotalBytes is the physical memory of each. 0: DefaultTotalBytes.
	TotalBytes int64
	// GranularityBytes is the least handle and mapping step, a power of two from 512 bytes to 1 TiB.
	// 0: DefaultGranularityBytes.
	GranularityBytes int64
	// HostMemory says that the devices use the host's memory, as integrated ones do: cudadrv.Info.HostMemory.
	HostMemory bool
	// Clock moves the virtual time.
	Clock Clock
	// NoVirtualMemory takes the capability away: address space and handle calls are not supported.
	NoVirtualMemory bool
	// NoCosts makes every call free in modelled time. Work on streams keeps its duration.
	NoCosts bool
	// Bytes backs device addresses with host memory: memsets and copies change it when they end in virtual time, and the calls
	// of cudadrv.HostMemory work. Only written pages take memory. GranularityBytes must be a multiple of the host's page, all
	// reservations together fit the host's address space, and the handles that are mapped at a time stay below its limit of
	// mappings (vm.max_map_count, 65,530 by default). It needs Linux on amd64, arm64, loong64, ppc64le or riscv64, and fails
	// with ErrNoBytes elsewhere.
	Bytes bool
	// Without are capabilities that the devices do not have: their calls fail with CUDA_ERROR_NOT_SUPPORTED.
	Without cudadrv.Capability
	// KernelTime is how long a launch of the kernel with that name takes on the device; below 0 counts as 0. It is called
	// under no lock, from many goroutines at once. Nil: DefaultKernelTime each.
	KernelTime func(name string, g cudadrv.Geometry) time.Duration
	// Executor executes kernels on the bytes of the device. It needs Bytes. Nil: with Bytes a launch of a kernel fails with
	// ErrNoExecutor, as its results would be missing; without them it takes time.
	Executor Executor
	// TimedKernels has launches of kernels take time and change nothing although there are Bytes. It excludes an Executor.
	TimedKernels bool
	// ReuseStreamIDs gives the id of the stream destroyed last to the next new stream, as a driver does
	// that reuses its memory. Otherwise an id names one stream for ever.
	ReuseStreamIDs bool
}

// complete fills in the defaults and checks the fields.
func (c Config) complete() (Config, error) {
	if c.Devices == 0 {
		c.Devices = 1
	}
	if c.TotalBytes == 0 {
		c.TotalBytes = DefaultTotalBytes
	}
	if c.GranularityBytes == 0 {
		c.GranularityBytes = DefaultGranularityBytes
	}
	c.NoVirtualMemory = c.NoVirtualMemory || c.Without.Has(cudadrv.VirtualMemory)
	switch g := c.GranularityBytes; {
	case c.Devices < 0 || c.Devices > mostDevices:
		return Config{}, fmt.Errorf("%w: sim: %d devices, want 1 to %d", cudadrv.ErrNoDriver, c.Devices, mostDevices)
	case c.TotalBytes < 0:
		return Config{}, fmt.Errorf("%w: sim: total memory of %d bytes", cudadrv.ErrNoDriver, c.TotalBytes)
	case g < leastGranularityBytes || g > mostGranularityBytes || g&(g-1) != 0:
		return Config{}, fmt.Errorf("%w: sim: granularity of %d bytes, want a power of two from %d to %d",
			cudadrv.ErrNoDriver, g, leastGranularityBytes, int64(mostGranularityBytes))
	case c.Bytes && g%int64(os.Getpagesize()) != 0:
		return Config{}, fmt.Errorf("%w: sim: granularity of %d bytes with real bytes, want a multiple of %d",
			cudadrv.ErrNoDriver, g, os.Getpagesize())
	case c.Executor != nil && !c.Bytes:
		return Config{}, fmt.Errorf("%w: sim: an Executor without Bytes", cudadrv.ErrNoDriver)
	case c.Executor != nil && c.TimedKernels:
		return Config{}, fmt.Errorf("%w: sim: an Executor and TimedKernels", cudadrv.ErrNoDriver)
	case c.Clock > Running:
		return Config{}, fmt.Errorf("%w: sim: unknown clock %d", cudadrv.ErrNoDriver, c.Clock)
	}
	return c, nil
}
