package cudadrv

// WaitCondition is when a stream that waits for a value goes on; numbers are CUDA's.
type WaitCondition uint32

// The conditions, with v the value in memory and w the one that was asked for.
const (
	WaitGreaterOrEqual WaitCondition = 0 // v-w, as a signed number, is not negative: counters may wrap
	WaitEqual          WaitCondition = 1 // v == w
	WaitAnd            WaitCondition = 2 // v&w != 0
)

// StreamValues is implemented by devices whose streams write and await words in memory; it works where
// Info has the capability MemoryOperations (the 64-bit calls: MemoryOperations64), and fails with
// CUDA_ERROR_NOT_SUPPORTED elsewhere.
//
// The address is a device address (HostMemory.MemHostGetDevicePointer for page-locked host memory),
// aligned to the word.
type StreamValues interface {
	// StreamWriteValue32 and StreamWriteValue64 queue the writing of a word on s. What the stream did before is
	// visible to whoever sees the word.
	StreamWriteValue32(s Stream, p Ptr, value uint32) error
	StreamWriteValue64(s Stream, p Ptr, value uint64) error
	// StreamWaitValue32 and StreamWaitValue64 make later work of s wait, on the device, until the word fulfils the
	// condition. A word that never does blocks the stream forever, and with it every call that waits for the device.
	StreamWaitValue32(s Stream, p Ptr, value uint32, until WaitCondition) error
	StreamWaitValue64(s Stream, p Ptr, value uint64, until WaitCondition) error
}
