//go:build linux && (amd64 || arm64)

package dynamic

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

// Values of CUDA's enumerations and flags.
const (
	pinnedAllocation int32 = 1 // CU_MEM_ALLOCATION_TYPE_PINNED
	deviceLocation   int32 = 1 // CU_MEM_LOCATION_TYPE_DEVICE
	posixHandle      int32 = 1 // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	readWriteAccess  int32 = 3 // CU_MEM_ACCESS_FLAGS_PROT_READWRITE

	nonBlocking   = 1 // CU_STREAM_NON_BLOCKING
	disableTiming = 2 // CU_EVENT_DISABLE_TIMING
	blockingSync  = 1 // CU_EVENT_BLOCKING_SYNC: a thread that waits for the event sleeps. Record and query cost the same on an H200.
	interprocess  = 4 // CU_EVENT_INTERPROCESS
	portableHost  = 1 // CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTREGISTER_PORTABLE
	mappedHost    = 2 // CU_MEMHOSTALLOC_DEVICEMAP and CU_MEMHOSTREGISTER_DEVICEMAP

	errorLogBuffer      = 5 // CU_JIT_ERROR_LOG_BUFFER
	errorLogBufferBytes = 6 // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
	cubinInput          = 0 // CU_JIT_INPUT_CUBIN
	ptxInput            = 1 // CU_JIT_INPUT_PTX
	fatBinaryInput      = 2 // CU_JIT_INPUT_FATBINARY
	deviceMemory        = 2 // CU_MEMORYTYPE_DEVICE
	parameterBuffer     = 1 // CU_LAUNCH_PARAM_BUFFER_POINTER
	parameterBytes      = 2 // CU_LAUNCH_PARAM_BUFFER_SIZE
	parametersEnd       = 0 // CU_LAUNCH_PARAM_END

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

// copyRows is CUDA_MEMCPY2D between places in device memory.
type copyRows struct {
	srcX, srcY uint64
	srcKind    uint32
	_          uint64 // srcHost
	src        cudadrv.Ptr
	_          uint64 // srcArray
	srcPitch   int64
	dstX, dstY uint64
	dstKind    uint32
	_          uint64 // dstHost
	dst        cudadrv.Ptr
	_          uint64 // dstArray
	dstPitch   int64
	width      int64
	rows       int64
}

// kernelNode is CUDA_KERNEL_NODE_PARAMS of its second version.
type kernelNode struct {
	function    cudadrv.Function
	grid, block cudadrv.Dim3
	sharedBytes uint32
	_           uint64 // kernelParams
	extra       uint64
	_           [2]uint64 // kern, ctx
}

// updateInfo is CUgraphExecUpdateResultInfo.
type updateInfo struct {
	reason int32
	_      [2]uint64 // the nodes
}

// The sizes are equal in CUDA 11.8 to 13.
var (
	_ [32]byte = [unsafe.Sizeof(allocationProp{})]byte{}
	_ [12]byte = [unsafe.Sizeof(accessDesc{})]byte{}

	_ [blockBytes]byte = [unsafe.Sizeof(copyRows{})]byte{}
	_ [72]byte         = [unsafe.Sizeof(kernelNode{})]byte{}
	_ [24]byte         = [unsafe.Sizeof(updateInfo{})]byte{}
	_ [64]byte         = [unsafe.Sizeof(cudadrv.EventDescriptor{})]byte{}
)
