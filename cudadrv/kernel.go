package cudadrv

import "strconv"

// Module names loaded device code (CUmodule as a number). Zero names none.
type Module uint64

// Function names a kernel of a module (CUfunction as a number). Zero names none.
type Function uint64

// Dim3 is the size of a grid in blocks, or of a block in threads. CUDA wants at least 1 in each direction.
type Dim3 struct {
	X uint32 `json:"x"`
	Y uint32 `json:"y"`
	Z uint32 `json:"z"`
}

// String returns the size as CUDA's tools print it.
func (d Dim3) String() string {
	return "(" + strconv.FormatUint(uint64(d.X), 10) + "," + strconv.FormatUint(uint64(d.Y), 10) + "," + strconv.FormatUint(uint64(d.Z), 10) + ")"
}

// Geometry is the shape of a launch.
type Geometry struct {
	Grid        Dim3  `json:"grid"`
	Block       Dim3  `json:"block"`
	SharedBytes int64 `json:"shared_bytes"` // dynamic shared memory of a block
}

// FunctionAttribute is a property of a kernel; numbers are CUDA's (CUfunction_attribute).
type FunctionAttribute int32

// The attributes of a kernel. MaxDynamicSharedBytes and PreferredSharedCarveout can be set.
const (
	MaxThreadsPerBlock      FunctionAttribute = 0
	StaticSharedBytes       FunctionAttribute = 1
	ConstBytes              FunctionAttribute = 2
	LocalBytes              FunctionAttribute = 3 // of a thread
	Registers               FunctionAttribute = 4 // of a thread
	PTXVersion              FunctionAttribute = 5
	BinaryVersion           FunctionAttribute = 6
	MaxDynamicSharedBytes   FunctionAttribute = 8
	PreferredSharedCarveout FunctionAttribute = 9
	ClusterSizeMustBeSet    FunctionAttribute = 10 // 1: the kernel is launched with a cluster's size, which Geometry has not
)

// Kernels is implemented by devices that run code of the program's; it works where Info has the capability
// KernelLaunches, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type Kernels interface {
	// ModuleLoadData loads PTX text, a cubin or a fat binary. The image is read before the call returns. Compiling PTX takes
	// milliseconds; where the compiler refuses it, the Detail of the *CallError is the compiler's log.
	ModuleLoadData(image []byte) (Module, error)
	// ModuleUnload unloads a module. Its functions and globals are gone, queued launches too must have finished.
	ModuleUnload(m Module) error
	// ModuleGetFunction finds a kernel by name. CUDA_ERROR_NOT_FOUND: the module has none of that name.
	// CUDA_ERROR_INVALID_VALUE: the name is empty.
	ModuleGetFunction(m Module, name string) (Function, error)
	// ModuleGetGlobal finds a variable of the module's in device memory. CUDA_ERROR_NOT_FOUND: the module has nothing of that
	// name. CUDA_ERROR_INVALID_VALUE: the name is empty, or a kernel's.
	ModuleGetGlobal(m Module, name string) (Ptr, int64, error)
	// LinkImages links PTX texts and relocatable cubins into one cubin: cuLinkCreate, cuLinkAddData for each, cuLinkComplete
	// and cuLinkDestroy. It is complete and not relocatable: as an input of another link it is CUDA_ERROR_NO_BINARY_FOR_GPU.
	// Other errors are as in ModuleLoadData.
	LinkImages(images ...[]byte) ([]byte, error)

	// FuncGetAttribute and FuncSetAttribute read and set a property of a kernel.
	FuncGetAttribute(f Function, a FunctionAttribute) (int, error)
	FuncSetAttribute(f Function, a FunctionAttribute, value int) error
	// FuncGetParamInfo says where a parameter lies in the buffer of all parameters, and how many bytes it has.
	// CUDA_ERROR_INVALID_VALUE: the kernel has fewer. CUDA_ERROR_NOT_SUPPORTED: the driver cannot tell (before CUDA 12.4).
	FuncGetParamInfo(f Function, index int) (offsetBytes, bytes int64, err error)
	// OccupancyMaxActiveBlocksPerMultiprocessor returns the number of blocks of that size that a multiprocessor runs at once.
	OccupancyMaxActiveBlocksPerMultiprocessor(f Function, blockThreads int, sharedBytes int64) (int, error)
	// OccupancyMaxPotentialBlockSize returns the block size with the most warps running at once, and the least number of such
	// blocks that fill the device. maxBlockThreads 0 is no bound.
	OccupancyMaxPotentialBlockSize(f Function, sharedBytes int64, maxBlockThreads int) (gridBlocks, blockThreads int, err error)

	// LaunchKernel queues a kernel on s. The parameters lie in params as in a C struct: each at a multiple of its own
	// alignment. The bytes are read before the call returns, and must not move until then: params is not memory of a
	// goroutine's stack. Too many bytes are CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES. The driver does not detect missing ones: the
	// kernel runs and reads undefined values. Callers should check the size with FuncGetParamInfo.
	LaunchKernel(f Function, g Geometry, params []byte, s Stream) error
}

// Access is a range of device memory that work reads or writes.
type Access struct {
	Ptr   Ptr
	Bytes int64
	Write bool
}

// CheckedHolds is implemented by devices that check the accesses of graphs (cudadrv/hazard). Callers that keep memory for
// graphs report it here.
type CheckedHolds interface {
	// HoldBegins declares that memory allocated on a stream stays with graphs, freed or not, until HoldEnds.
	HoldBegins(s Stream)
	HoldEnds(s Stream)
	// GraphKeeps declares that memory that a graph touches is not reused until the graph is destroyed, also if its buffers are
	// freed.
	GraphKeeps(x GraphExec)
}

// CheckedSleep is implemented by devices that check unmapped memory (cudadrv/hazard). The owner of sleeping memory reports it
// here.
type CheckedSleep interface {
	// SleepBegins says that memory of the buffers that were allocated on a stream may be unmapped from here on, though they
	// live, and that work on the stream itself saves and restores their contents.
	SleepBegins(s Stream)
	// SleepEnds says that the memory is mapped again, at the same addresses.
	SleepEnds(s Stream)
}

// CheckedKernels is implemented by devices that check the accesses of kernels (cudadrv/hazard). Callers that know a kernel's
// accesses use it instead of LaunchKernel.
type CheckedKernels interface {
	// LaunchKernelTouching is LaunchKernel of a kernel that touches these ranges and nothing else.
	LaunchKernelTouching(f Function, g Geometry, params []byte, s Stream, accesses []Access) error
	// KernelNodeSetParamsTouching is Graphs.GraphExecKernelNodeSetParams of a kernel that touches these ranges from now on.
	KernelNodeSetParamsTouching(x GraphExec, n GraphNode, f Function, g Geometry, params []byte, accesses []Access) error
	// WorkTouching runs submit, by which a library queues work on s that touches the memory of its arguments and nothing else.
	// A simulated device that has a stand-in for the library queues that, and does not run submit.
	WorkTouching(w LibraryWork, s Stream, submit func() error) error
}

// LibraryWork is work that a library queues.
type LibraryWork struct {
	Library   string
	Arguments []LibraryArgument
}

// LibraryArgument is a range of device memory that work of a library reads, writes, or both, or a value.
type LibraryArgument struct {
	Ptr         Ptr
	Bytes       int64
	Read, Write bool   // neither: a value
	Value       []byte // as a kernel's parameter has it
}

// Accesses returns the accesses of the arguments, in their order: a range that is read and written has two.
func (w LibraryWork) Accesses() []Access {
	all := []Access{}
	for _, a := range w.Arguments {
		if a.Read {
			all = append(all, Access{Ptr: a.Ptr, Bytes: a.Bytes})
		}
		if a.Write {
			all = append(all, Access{Ptr: a.Ptr, Bytes: a.Bytes, Write: true})
		}
	}
	return all
}
