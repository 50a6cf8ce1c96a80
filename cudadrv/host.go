package cudadrv

// HostMemory is implemented by devices with page-locked host memory; it works where Info has the
// capability PinnedHost, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
//
// Host memory is a slice of bytes. Page-locked are the bytes of MemHostAlloc and those between
// MemHostRegister and MemHostUnregister, in parts too.
type HostMemory interface {
	// MemHostAlloc is cuMemHostAlloc: page-locked memory outside of Go's heap, which every context of the
	// process can use and the device can address. The caller gives it to MemFreeHost.
	MemHostAlloc(bytes int64) ([]byte, error)
	// MemFreeHost frees memory of MemHostAlloc, identified by its first byte; the slice's length does not matter. It waits for
	// all queued work of the device. Go code that touches the bytes later crashes.
	MemFreeHost(b []byte) error
	// MemHostRegister page-locks memory of the caller's. Memory of Go's heap does not move, but the caller keeps it
	// alive until MemHostUnregister; memory of a goroutine's stack cannot be passed, as the slice escapes.
	MemHostRegister(b []byte) error
	// MemHostUnregister undoes MemHostRegister of the memory that begins with b's first byte.
	MemHostUnregister(b []byte) error
	// MemHostGetDevicePointer is the address by which the device reaches page-locked memory.
	MemHostGetDevicePointer(b []byte) (Ptr, error)

	// MemcpyHtoDAsync and MemcpyDtoHAsync queue a copy of the whole slice on s. If the slice is page-locked they do not wait,
	// and the caller must leave the bytes alone until the stream has passed the copy; else the driver may wait for the copy. A
	// copy of no bytes is no work. A captured copy reads or writes the slice at each launch of the graph, page-locked or not.
	MemcpyHtoDAsync(dst Ptr, src []byte, s Stream) error
	MemcpyDtoHAsync(dst []byte, src Ptr, s Stream) error
}
