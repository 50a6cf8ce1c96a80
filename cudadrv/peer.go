package cudadrv

// Context names a device's context (CUcontext as a number), for copies between devices.
type Context uint64

// Peers is implemented by devices that reach the memory of others; it works where Info has the capability
// PeerAccess, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere. Others are named by their ordinals and contexts.
type Peers interface {
	// Context is the context of the device. It makes no call.
	Context() Context
	// DeviceCanAccessPeer reports whether kernels of this device can reach memory of the other one.
	DeviceCanAccessPeer(ordinal int) (bool, error)
	// MemSetPeerAccess is MemSetAccess for several devices in one call: their kernels can read and write the mapped memory.
	// Include the ordinal of the device itself to keep its access.
	MemSetPeerAccess(p Ptr, bytes int64, ordinals ...int) error
	// MemcpyPeerAsync queues a copy between the memories of two devices on s, a stream of either. It needs no peer
	// access; without it the copy goes through the host.
	MemcpyPeerAsync(dst Ptr, dstContext Context, src Ptr, srcContext Context, bytes int64, s Stream) error
}

// EventDescriptor names an event in other processes of the same machine (CUipcEventHandle).
type EventDescriptor [64]byte

// SharedEvents is implemented by devices whose events other processes can wait for; it works where Info has the capability
// EventSharing, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type SharedEvents interface {
	// EventCreateShared makes an event without timing that IpcGetEventHandle takes.
	EventCreateShared() (Event, error)
	// IpcGetEventHandle is the event's name for other processes. CUDA_ERROR_INVALID_HANDLE: the event is none of
	// EventCreateShared.
	IpcGetEventHandle(e Event) (EventDescriptor, error)
	// IpcOpenEventHandle makes an event of another process's name; the caller destroys it. The process that made the
	// event cannot open it.
	IpcOpenEventHandle(d EventDescriptor) (Event, error)
}
