//go:build linux && (amd64 || arm64)

package dynamic

import (
	"fmt"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// longestName is how much of a device's name is asked for; CUDA's own examples take as much.
const longestName = 256

// Numbers of attributes (CUdevice_attribute).
const (
	multiprocessors = 16
	integrated      = 18
	pciBus          = 33
	pciDevice       = 34
	pciDomain       = 50
	computeMajor    = 75
	computeMinor    = 76
)

// open makes a device with a context, which is retained unless the caller gives one.
func (l *library) open(ordinal int, adopted uintptr) (cudadrv.Device, error) {
	f := &frame{}
	d, err := l.device(ordinal, adopted, f)
	if err != nil {
		return nil, err
	}
	if d.adopted {
		err = d.checkContext(f)
	} else {
		err = d.retain(f)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// device finds and describes a device, which has no context yet.
func (l *library) device(ordinal int, adopted uintptr, f *frame) (*device, error) {
	d := &device{
		lib: l, context: adopted, adopted: adopted != 0, closed: make(chan struct{}),
		info: cudadrv.Info{Driver: "dynamic", Ordinal: ordinal, DriverVersion: l.version},
	}
	d.gate.init()
	f.args[0], f.args[1] = f.pointer(0), uintptr(ordinal)
	if r := l.call(cuDeviceGet, f, 2); r != cudadrv.Success {
		return nil, fmt.Errorf("%w: %w", cudadrv.ErrNoDevice, l.describe(f, "cuDeviceGet", r, fmt.Sprintf("ordinal %d", ordinal)))
	}
	d.number = f.int32()
	if err := d.describe(f); err != nil {
		return nil, err
	}
	return d, nil
}

// info describes a device without a context.
func (l *library) info(ordinal int) (cudadrv.Info, error) {
	d, err := l.device(ordinal, 0, &frame{})
	if err != nil {
		return cudadrv.Info{}, err
	}
	return d.info, nil
}

// retain takes the primary context. The first one of a process takes a while.
func (d *device) retain(f *frame) error {
	f.args[0], f.args[1] = f.pointer(0), uintptr(d.number)
	if r := d.lib.call(call.PrimaryCtxRetain, f, 2); r != cudadrv.Success {
		return d.lib.describe(f, "cuDevicePrimaryCtxRetain", r, "")
	}
	d.context = uintptr(f.out[0])
	return nil
}

// release releases the primary context.
func (l *library) release(number int32) error {
	f := &frame{}
	f.args[0] = uintptr(number)
	if r := l.call(call.PrimaryCtxRelease, f, 1); r != cudadrv.Success {
		return l.describe(f, "cuDevicePrimaryCtxRelease", r, "")
	}
	return nil
}

// checkContext asks a context of the caller's for its device.
func (d *device) checkContext(f *frame) error {
	f.args[0] = f.pointer(0)
	r := d.callCurrent(cuCtxGetDevice, f, 1)
	if r != cudadrv.Success {
		return &ContextError{Context: d.context, Want: "a CUcontext that is alive", Err: d.lib.describe(f, "cuCtxGetDevice", r, "")}
	}
	if number := f.int32(); number != d.number {
		return &ContextError{
			Context: d.context, Want: fmt.Sprintf("a CUcontext of device %d, this is one of device %d", d.number, number),
		}
	}
	return nil
}

// describe asks for the name, the memory and the abilities of the device. It needs no context.
func (d *device) describe(f *frame) error {
	name := make([]byte, longestName)
	f.args[0], f.args[1], f.args[2] = f.hold(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(d.number)
	if r := d.lib.call(cuDeviceGetName, f, 3); r != cudadrv.Success {
		return d.lib.describe(f, "cuDeviceGetName", r, "")
	}
	d.info.Name = cString(unsafe.Pointer(&name[0]))
	f.args[0], f.args[1] = f.pointer(0), uintptr(d.number)
	if r := d.lib.call(cuDeviceTotalMem, f, 2); r != cudadrv.Success {
		return d.lib.describe(f, "cuDeviceTotalMem", r, "")
	}
	d.info.TotalBytes = int64(f.out[0])
	f.args[0], f.args[1] = f.pointer(0), uintptr(d.number)
	if r := d.lib.call(cuDeviceGetUUID, f, 2); r != cudadrv.Success {
		return d.lib.describe(f, "cuDeviceGetUuid", r, "")
	}
	d.info.UUID = *(*cudadrv.UUID)(unsafe.Pointer(&f.out))
	d.plain = allocationProp{kind: pinnedAllocation, location: memLocation{deviceLocation, d.number}}
	d.shareable = d.plain
	d.shareable.handleKinds = posixHandle
	d.access = accessDesc{location: d.plain.location, flags: readWriteAccess}
	d.info.Compute = cudadrv.ComputeCapability{Major: d.attribute(f, computeMajor), Minor: d.attribute(f, computeMinor)}
	d.info.Multiprocessors = d.attribute(f, multiprocessors)
	d.info.HostMemory = d.has(f, integrated)
	if domain, bus, slot := d.attribute(f, pciDomain), d.attribute(f, pciBus), d.attribute(f, pciDevice); domain|bus|slot != 0 {
		d.info.PCI = fmt.Sprintf("%04x:%02x:%02x.0", domain, bus, slot)
	}
	d.info.Capabilities = cudadrv.BlockingCreation // every driver's
	for _, ability := range features {
		if (d.lib.lacking|alone)&ability.capability == 0 && d.has(f, ability.attribute) {
			d.info.Capabilities |= ability.capability
		}
	}
	return d.findGranularity(f)
}

// has reports whether the attribute is set, or none is asked for. A number that the driver does not know is not set.
func (d *device) has(f *frame, attribute uintptr) bool {
	return attribute == 0 || d.attribute(f, attribute) != 0
}

// attribute returns an attribute of the device, 0 where the driver does not know the number.
func (d *device) attribute(f *frame, attribute uintptr) int {
	f.args[0], f.args[1], f.args[2] = f.pointer(0), attribute, uintptr(d.number)
	if d.lib.call(cuDeviceGetAttribute, f, 3) != cudadrv.Success {
		return 0
	}
	return int(f.int32())
}

// findGranularity asks for the least step of handles and mappings.
func (d *device) findGranularity(f *frame) error {
	if !d.info.Capabilities.Has(cudadrv.VirtualMemory) {
		return nil
	}
	const minimum = 0 // CU_MEM_ALLOC_GRANULARITY_MINIMUM
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(unsafe.Pointer(&d.plain)), minimum
	if r := d.lib.call(cuMemGetAllocationGranularity, f, 3); r != cudadrv.Success {
		return d.lib.describe(f, "cuMemGetAllocationGranularity", r, "")
	}
	d.info.GranularityBytes = int64(f.out[0])
	return nil
}
