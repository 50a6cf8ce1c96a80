package host

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// Options are the settings of ByName.
type Options struct {
	// Driver opens devices. nil: the GPU's driver, loaded at run time.
	Driver cudadrv.Driver
	// KeepBytes bounds the free memory of a cache of host memory: see PoolConfig.
	KeepBytes int64
	// Device configures a vram.Device that is opened for "cuda:N". The name sets Driver and Ordinal.
	Device vram.Config
}

// Name says where an allocator's memory is. The zero value is "cpu".
type Name struct {
	CUDA    bool
	Ordinal int  // of the device; 0 for the CPU
	Pinned  bool // page-locked memory of the host, for that device
}

// ParseName reads "cpu", "cuda:N" or "cuda:N/pinned". Error: *NameError.
func ParseName(name string) (Name, error) {
	if name == "cpu" {
		return Name{}, nil
	}
	number, ok := strings.CutPrefix(name, "cuda:")
	if !ok {
		return Name{}, &NameError{Name: name, Why: "unknown device"}
	}
	number, suffix, slash := strings.Cut(number, "/")
	if slash && suffix != "pinned" {
		return Name{}, &NameError{Name: name, Why: "unknown kind of memory"}
	}
	ordinal, err := strconv.ParseUint(number, 10, 16)
	if err != nil || strconv.FormatUint(ordinal, 10) != number {
		return Name{}, &NameError{Name: name, Why: "no device number"}
	}
	return Name{CUDA: true, Ordinal: int(ordinal), Pinned: slash}, nil
}

// String returns the name as ParseName reads it.
func (n Name) String() string {
	switch {
	case !n.CUDA:
		return "cpu"
	case n.Pinned:
		return "cuda:" + strconv.Itoa(n.Ordinal) + "/pinned"
	default:
		return "cuda:" + strconv.Itoa(n.Ordinal)
	}
}

// ByName makes an allocator:
//
//	cpu            pageable memory of the Go heap
//	cuda:N         memory of device N, which is opened with a stream of its own
//	cuda:N/pinned  a cache of page-locked memory, which device N is opened for
//
// Close of the allocator closes all that was opened, once no block is live. It makes driver calls
// for a device only. Errors: *NameError, *ConfigError, *CapabilityError, ErrNoDriver and ErrNoDevice
// of package vram, and the driver's.
func ByName(name string, o Options) (Allocator, error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	if o.KeepBytes < 0 {
		return nil, &ConfigError{Field: "KeepBytes", Value: o.KeepBytes, Want: "0 or more"}
	}
	if !n.CUDA {
		return NewAligned(), nil
	}
	if o.Driver == nil {
		if o.Driver, err = vram.DriverNamed("dynamic"); err != nil {
			return nil, err
		}
	}
	if n.Pinned {
		return openPinned(n, o)
	}
	return openDevice(n, o)
}

func openPinned(n Name, o Options) (Allocator, error) {
	device, err := o.Driver.Open(n.Ordinal)
	if err != nil {
		return nil, err
	}
	cache, err := NewPageLocked(device, PoolConfig{KeepBytes: o.KeepBytes})
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return own(&opened{wrapper: wrap(cache), close: device.Close}), nil
}

func openDevice(n Name, o Options) (Allocator, error) {
	cfg := o.Device
	cfg.Driver, cfg.Ordinal = o.Driver, n.Ordinal
	device, err := vram.Open(cfg)
	if err != nil {
		return nil, err
	}
	stream, err := device.NewStream()
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return own(&opened{wrapper: wrap(ofStream(stream)), close: device.Close}), nil
}

// opened is an allocator with the device that was opened for it.
type opened struct {
	wrapper

	close func() error
	over  closeOnce
}

// Alloc passes on.
func (o *opened) Alloc(bytes, align int64) (Block, error) { return o.alloc(bytes, align, false) }

// AllocZeroed passes on.
func (o *opened) AllocZeroed(bytes, align int64) (Block, error) {
	return o.alloc(bytes, align, true)
}

// Free passes on.
func (o *opened) Free(b Block) error { return o.freeIn(b, nil) }

func (o *opened) freeIn(b Block, shared *batch) error { return o.free(b, shared) }

// Close closes the allocator, and then the device, unless blocks are live or the allocator could not
// be closed: then a further Close does.
func (o *opened) Close(ctx context.Context) error {
	if o.over.done() {
		return nil
	}
	if err := o.inner.Close(ctx); err != nil {
		return err
	}
	return o.over.do(o.close)
}
