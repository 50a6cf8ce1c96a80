package cudadrv

// CaptureStatus is whether a stream is being captured into a graph; numbers are CUDA's.
type CaptureStatus uint32

// The states of a stream.
const (
	CaptureNone        CaptureStatus = 0 // work runs
	CaptureActive      CaptureStatus = 1 // work goes into a graph
	CaptureInvalidated CaptureStatus = 2 // a capture that cannot be completed has not been ended yet
)

// CaptureQueries is implemented by devices that can tell whether a stream is being captured; it works where
// Info has the capability CaptureInformation, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type CaptureQueries interface {
	// StreamIsCapturing asks about s. It does not disturb a capture.
	StreamIsCapturing(s Stream) (CaptureStatus, error)
}
