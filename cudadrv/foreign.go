package cudadrv

// ForeignCalls is implemented by devices in whose context other libraries can work: those of CUDA's that call the driver themselves.
type ForeignCalls interface {
	// WithContext runs f on its goroutine's thread with the device's context current, and leaves the thread with the contexts, and
	// the mode of captures, that it had. f's calls are allowed while a stream is captured. The device stays open meanwhile.
	// CUDA_ERROR_NOT_SUPPORTED: the device has no context. Other errors are f's and the driver's.
	WithContext(f func() error) error
}
