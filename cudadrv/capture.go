package cudadrv

import "fmt"

// CaptureStatus is whether a stream is being captured into a graph; numbers are CUDA's.
type CaptureStatus uint32

// The states of a stream.
const (
	CaptureNone        CaptureStatus = 0 // work runs
	CaptureActive      CaptureStatus = 1 // work goes into a graph
	CaptureInvalidated CaptureStatus = 2 // a capture that cannot be completed has not been ended yet
)

var captureStatusNames = [...]string{"none", "active", "invalidated"} //nolint:gochecknoglobals // constant table, by number

// String returns the name.
func (s CaptureStatus) String() string {
	if int(s) < len(captureStatusNames) {
		return captureStatusNames[s]
	}
	return fmt.Sprintf("CaptureStatus(%d)", uint32(s))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s CaptureStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// CaptureQueries is implemented by devices that can tell whether a stream is being captured; it works where
// Info has the capability CaptureInformation, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type CaptureQueries interface {
	// StreamIsCapturing asks about s. It does not disturb a capture.
	StreamIsCapturing(s Stream) (CaptureStatus, error)
}
