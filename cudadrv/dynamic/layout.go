//go:build linux && (amd64 || arm64)

package dynamic

import "unsafe"

// Values of CUDA's enumerations and flags.
const (
	pinnedAllocation int32 = 1 // CU_MEM_ALLOCATION_TYPE_PINNED
	deviceLocation   int32 = 1 // CU_MEM_LOCATION_TYPE_DEVICE
	posixHandle      int32 = 1 // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	readWriteAccess  int32 = 3 // CU_MEM_ACCESS_FLAGS_PROT_READWRITE

	nonBlocking   = 1 // CU_STREAM_NON_BLOCKING
	disableTiming = 2 // CU_EVENT_DISABLE_TIMING
	blockingSync  = 1 // CU_EVENT_BLOCKING_SYNC: who waits for the event sleeps. Record and query cost the same on an H200.
	portableHost  = 1 // CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTREGISTER_PORTABLE
	mappedHost    = 2 // CU_MEMHOSTALLOC_DEVICEMAP and CU_MEMHOSTREGISTER_DEVICEMAP

	// lastStandardStream is CU_STREAM_PER_THREAD. It, CU_STREAM_LEGACY (1) and 0 mean a stream of the current context.
	lastStandardStream = 2
)

// memLocation is CUmemLocation.
type memLocation struct{ kind, number int32 }

// allocationProp is CUmemAllocationProp.
type allocationProp struct {
	kind        int32
	handleKinds int32
	location    memLocation
	_           uintptr  // win32HandleMetaData
	_           [8]uint8 // allocFlags
}

// accessDesc is CUmemAccessDesc.
type accessDesc struct {
	location memLocation
	flags    int32
}

// The sizes are those of CUDA 11.8 to 13.
var (
	_ [32]byte = [unsafe.Sizeof(allocationProp{})]byte{}
	_ [12]byte = [unsafe.Sizeof(accessDesc{})]byte{}
)
