package cudadrv

// ShareableMemory is implemented by devices whose handles go to other processes as file descriptors; it
// works where Info has the capability ShareableHandles, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type ShareableMemory interface {
	// MemCreateShareable is MemCreate of a handle that can be exported; others cannot.
	MemCreateShareable(bytes int64) (Handle, error)
	// MemExportToShareableHandle makes a file descriptor of the handle. The caller closes it; the memory lives as long as
	// a descriptor, a handle or a mapping of it does.
	MemExportToShareableHandle(h Handle) (fd int, err error)
	// MemImportFromShareableHandle makes a handle of a descriptor, from this process or another one. The
	// descriptor stays the caller's, the handle is given to MemRelease.
	MemImportFromShareableHandle(fd int) (Handle, error)
}
