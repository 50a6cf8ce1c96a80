package cudadrv

// MemoryKind is where memory is; numbers are CUDA's.
type MemoryKind uint32

// The kinds of memory.
const (
	HostKind   MemoryKind = 1
	DeviceKind MemoryKind = 2
)

// PointerInfo is what the driver knows about an address.
type PointerInfo struct {
	Kind       MemoryKind
	Ordinal    int // of the device that the memory belongs to
	Start      Ptr // of the allocation or mapping that the address is in
	RangeBytes int64
}

// PointerQueries is implemented by devices that can tell what an address is; it works where Info has the
// capability PointerInformation, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type PointerQueries interface {
	// PointerGetAttributes describes an address of the driver's. An address that it does not know, such as Go
	// memory that was not registered, is CUDA_ERROR_INVALID_VALUE.
	PointerGetAttributes(p Ptr) (PointerInfo, error)
}
