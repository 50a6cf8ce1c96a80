package cudadrv

// Copy2D is a copy of rows. A pitch is the distance in bytes between the begins of two rows, at least WidthBytes; 0 is valid
// for one row. CUDA accepts 0 for several rows too, but does not document their addresses.
type Copy2D struct {
	Dst, Src           Ptr
	DstPitch, SrcPitch int64
	WidthBytes, Rows   int64
}

// WideWork is implemented by devices that fill with more than bytes and copy rows; it works where Info has the
// capability WideFills, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere. All calls queue work on s and do not wait for it.
type WideWork interface {
	// MemsetD16Async and MemsetD32Async write a value count times; p is a multiple of the value's size.
	MemsetD16Async(p Ptr, value uint16, count int64, s Stream) error
	MemsetD32Async(p Ptr, value uint32, count int64, s Stream) error
	// Memcpy2DAsync copies rows within device memory.
	Memcpy2DAsync(c Copy2D, s Stream) error
}
