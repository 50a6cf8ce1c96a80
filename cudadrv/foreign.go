package cudadrv

// ForeignCalls is implemented by devices whose context other libraries can use, such as CUDA's own, which call the driver
// themselves.
type ForeignCalls interface {
	// WithContext runs f on its goroutine's thread with the device's context current, and then restores the thread's contexts
	// and capture mode. f's calls are allowed while a stream is captured. The device stays open during f.
	// CUDA_ERROR_NOT_SUPPORTED: the device has no context. Other errors are f's and the driver's.
	WithContext(f func() error) error
}
