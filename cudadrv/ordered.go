package cudadrv

// StreamOrderedMemory is implemented by devices with the driver's own memory pool; it works where Info has
// the capability StreamOrdered, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
//
// Allocations come from the device's current pool. The pool calls are about its default pool, which is the
// current one unless somebody has set another.
type StreamOrderedMemory interface {
	// MemAllocAsync is cuMemAllocAsync: the memory is there for work on s from now on, and for others once
	// they are ordered after this call. MemFreeAsync takes it back when s gets there.
	MemAllocAsync(bytes int64, s Stream) (Ptr, error)
	MemFreeAsync(p Ptr, s Stream) error

	// MemPoolTrimTo gives free memory of the pool back to the device until at most keepBytes are held.
	MemPoolTrimTo(keepBytes int64) error
	// MemPoolSetThreshold sets how many bytes the pool keeps when a stream, event or context is
	// synchronised: 0, the driver's default, keeps none.
	MemPoolSetThreshold(bytes int64) error
	// MemPoolUsage says what the pool holds of the device's memory, and what of that is allocated.
	MemPoolUsage() (reservedBytes, usedBytes int64, err error)
}
