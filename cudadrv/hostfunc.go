package cudadrv

// HostFunctions is implemented by devices whose streams call back; it works where Info has the capability
// HostCalls, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type HostFunctions interface {
	// LaunchHostFunc queues a call of f on s. f runs once, on a thread of the driver, after earlier and before later work of s,
	// so it should be short. It must not make driver calls, nor wait for a goroutine that makes one: the driver may hold its
	// locks. A panic in f ends the program. f is not called where the work before it failed, or the context went away.
	LaunchHostFunc(s Stream, f func()) error
}
