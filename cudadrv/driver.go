package cudadrv

import (
	"strconv"
	"time"
)

// Ptr is a device address. It is a number and never an unsafe.Pointer: the Go runtime must not take
// it for memory of its own. For cgo it is a CUdeviceptr.
type Ptr uint64

// Handle names a physical allocation (CUmemGenericAllocationHandle). Zero names none.
type Handle uint64

// Stream names a stream (CUstream as a number). Zero is the legacy default stream.
type Stream uint64

// Event names an event without timing (CUevent as a number). Zero names none.
type Event uint64

// Capability is a set of optional abilities of a device.
type Capability uint32

// The capabilities of a Device.
const (
	// VirtualMemory says that the address space and handle calls work (attribute 102).
	VirtualMemory Capability = 1 << iota
	// PinnedHost says that the calls of HostMemory work.
	PinnedHost
	// HostCalls says that the call of HostFunctions works.
	HostCalls
	// ShareableHandles says that the calls of ShareableMemory work (attribute 103).
	ShareableHandles
	// CaptureInformation says that the call of CaptureQueries works.
	CaptureInformation
	// BlockingCreation says that the call of BlockingStreams works.
	BlockingCreation
	// KernelLaunches says that the calls of Kernels work.
	KernelLaunches
	// GraphLaunches says that the calls of Graphs work.
	GraphLaunches
	// EventTiming says that the calls of TimedEvents work.
	EventTiming
	// WideFills says that the calls of WideWork work.
	WideFills
	// PeerAccess says that the calls of Peers work.
	PeerAccess
	// EventSharing says that the calls of SharedEvents work.
	EventSharing
	// BulkTensors says that the call of TensorMaps works, and kernels may copy tensors in bulk (attribute 127).
	BulkTensors
)

// Has reports whether all of want are in c.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Describer is an optional interface of a Driver that describes devices which are not open.
type Describer interface {
	// Describe returns the Info that a Device of that number has. It makes no context, and takes no memory of the device.
	Describe(ordinal int) (Info, error)
}

// Info describes an opened device. It does not change while the device is open.
type Info struct {
	Driver        string `json:"driver"` // the Driver's Name
	Name          string `json:"name"`   // the device's product name
	Ordinal       int    `json:"ordinal"`
	UUID          UUID   `json:"uuid"`           // the same for every Device of one GPU, and for no other GPU's
	PCI           string `json:"pci"`            // the GPU's address, as "0000:3b:00.0"; "": not known
	HostMemory    bool   `json:"host_memory"`    // the GPU is integrated: its memory is the host's
	DriverVersion int    `json:"driver_version"` // CUDA's notation: 13000 is 13.0
	TotalBytes    int64  `json:"total_bytes"`    // physical memory of the device
	// least handle and mapping step; a power of two; 0 without VirtualMemory
	GranularityBytes int64             `json:"granularity_bytes"`
	Capabilities     Capability        `json:"capabilities"`
	Compute          ComputeCapability `json:"compute"`
	Multiprocessors  int               `json:"multiprocessors"`
}

// ComputeCapability is the version of a GPU's instruction set: {9, 0} of an H100. The zero value is not known.
type ComputeCapability struct{ Major, Minor int }

// String returns the version as NVIDIA writes it: "9.0".
func (c ComputeCapability) String() string {
	return strconv.Itoa(c.Major) + "." + strconv.Itoa(c.Minor)
}

// UUID names a GPU for good. The zero value is of no GPU.
type UUID [16]byte

// Driver finds and opens devices.
type Driver interface {
	// Name is a short constant word: "sim", "dynamic".
	Name() string
	// DeviceCount starts the driver if necessary. Its error wraps ErrNoDriver if there is no driver.
	DeviceCount() (int, error)
	// Open makes the device with that ordinal usable. Its error wraps ErrNoDriver or ErrNoDevice.
	// Each Open is paired with one Close of the Device.
	Open(ordinal int) (Device, error)
}

// Device is an opened device: one method for each driver call. Bytes and addresses of the virtual
// memory calls are multiples of Info.GranularityBytes.
//
// Optional features have interfaces of their own: HostMemory, HostFunctions, ShareableMemory, CaptureQueries, BlockingStreams,
// Kernels, Graphs, TimedEvents, WideWork, Peers, SharedEvents, TensorMaps, ForeignCalls. Wrappers have all of them, so a caller asserts the
// type and then looks at Info.Capabilities.
type Device interface {
	// Info returns the properties read when the device was opened. It makes no call.
	Info() Info
	// Close closes the device, and loses its remaining memory, streams and events, as cuDevicePrimaryCtxRelease does.
	Close() error

	// MemGetInfo says how much physical memory is free, and how much there is.
	MemGetInfo() (freeBytes, totalBytes int64, err error)

	// MemAlloc is cuMemAlloc: address space and memory in one. MemFree waits for the whole device.
	MemAlloc(bytes int64) (Ptr, error)
	MemFree(p Ptr) error

	// MemAddressReserve reserves address space only. MemAddressFree takes exactly one reservation, with nothing mapped in it.
	MemAddressReserve(bytes int64) (Ptr, error)
	MemAddressFree(p Ptr, bytes int64) error
	// MemCreate makes physical memory. MemRelease drops the caller's reference: the memory is freed once the handle is mapped
	// nowhere.
	MemCreate(bytes int64) (Handle, error)
	MemRelease(h Handle) error
	// MemMap maps the whole handle, whose size is bytes, at p. It is not accessible before
	// MemSetAccess, which may cover several mappings side by side.
	MemMap(p Ptr, bytes int64, h Handle) error
	MemSetAccess(p Ptr, bytes int64) error
	// MemUnmap unmaps whole handles, one or more side by side, and does not wait for queued work.
	MemUnmap(p Ptr, bytes int64) error

	// StreamCreate makes a non-blocking stream.
	StreamCreate() (Stream, error)
	StreamDestroy(s Stream) error
	// StreamQuery reports whether all work of the stream has finished.
	StreamQuery(s Stream) (bool, error)
	StreamSynchronize(s Stream) error
	// StreamWaitEvent makes later work of s wait, on the device, for the last record of e.
	StreamWaitEvent(s Stream, e Event) error
	CtxSynchronize() error

	// EventCreate makes an event without timing; EventRecord captures the work that s has at the moment. A record on
	// a stream that was destroyed is undefined.
	EventCreate() (Event, error)
	EventDestroy(e Event) error
	EventRecord(e Event, s Stream) error
	// EventQuery reports whether the work before the last record has finished; an event that was
	// never recorded has.
	EventQuery(e Event) (bool, error)
	EventSynchronize(e Event) error

	// MemsetD8Async and MemcpyDtoDAsync queue work on s; they do not wait for it.
	MemsetD8Async(p Ptr, value byte, bytes int64, s Stream) error
	MemcpyDtoDAsync(dst, src Ptr, bytes int64, s Stream) error
}

// Modelled is implemented by devices whose calls cost modelled instead of real time (the simulator
// and wrappers around it).
type Modelled interface {
	// ModelledTime returns the modelled time on real hardware of all calls so far.
	ModelledTime() time.Duration
}
