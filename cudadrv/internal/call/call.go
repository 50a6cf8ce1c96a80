// Package call numbers the driver calls of cudadrv's methods, so that a driver or a wrapper can keep a figure for each in an
// array, without a map and without allocating.
package call

// Call is one driver call. Its String is CUDA's name of the function, as in cudadrv.CallError.
type Call uint8

// The calls: first cudadrv.Driver's, then cudadrv.Device's in the interface's order, then the optional interfaces'.
const (
	DeviceGetCount Call = iota
	PrimaryCtxRetain
	PrimaryCtxRelease
	MemGetInfo
	MemAlloc
	MemFree
	MemAddressReserve
	MemAddressFree
	MemCreate
	MemRelease
	MemMap
	MemSetAccess
	MemUnmap
	StreamCreate
	StreamDestroy
	StreamQuery
	StreamSynchronize
	StreamWaitEvent
	CtxSynchronize
	EventCreate
	EventDestroy
	EventRecord
	EventQuery
	EventSynchronize
	MemsetD8Async
	MemcpyDtoDAsync

	MemHostAlloc
	MemFreeHost
	MemHostRegister
	MemHostUnregister
	MemHostGetDevicePointer
	MemcpyHtoDAsync
	MemcpyDtoHAsync
	LaunchHostFunc
	MemExportToShareableHandle
	MemImportFromShareableHandle
	StreamIsCapturing
	ModuleLoadData
	ModuleUnload
	ModuleGetFunction
	ModuleGetGlobal
	LinkComplete
	FuncGetAttribute
	FuncSetAttribute
	FuncGetParamInfo
	OccupancyMaxActiveBlocksPerMultiprocessor
	OccupancyMaxPotentialBlockSize
	LaunchKernel
	StreamBeginCapture
	StreamEndCapture
	ThreadExchangeStreamCaptureMode
	StreamGetCaptureInfo
	GraphGetNodes
	GraphNodeGetType
	GraphDestroy
	GraphInstantiate
	GraphExecUpdate
	GraphExecKernelNodeSetParams
	GraphUpload
	GraphLaunch
	GraphExecDestroy
	EventElapsedTime
	MemsetD16Async
	MemsetD32Async
	Memcpy2DAsync
	DeviceCanAccessPeer
	MemcpyPeerAsync
	IpcGetEventHandle
	IpcOpenEventHandle
	TensorMapEncodeTiled

	// Count is how many calls there are: the length of an array with one entry for each.
	Count

	// Optional is the first call that a device need not have.
	Optional = MemHostAlloc
)

var names = [Count]string{ //nolint:gochecknoglobals // a constant table
	DeviceGetCount:    "cuDeviceGetCount",
	PrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
	PrimaryCtxRelease: "cuDevicePrimaryCtxRelease",
	MemGetInfo:        "cuMemGetInfo",
	MemAlloc:          "cuMemAlloc",
	MemFree:           "cuMemFree",
	MemAddressReserve: "cuMemAddressReserve",
	MemAddressFree:    "cuMemAddressFree",
	MemCreate:         "cuMemCreate",
	MemRelease:        "cuMemRelease",
	MemMap:            "cuMemMap",
	MemSetAccess:      "cuMemSetAccess",
	MemUnmap:          "cuMemUnmap",
	StreamCreate:      "cuStreamCreate",
	StreamDestroy:     "cuStreamDestroy",
	StreamQuery:       "cuStreamQuery",
	StreamSynchronize: "cuStreamSynchronize",
	StreamWaitEvent:   "cuStreamWaitEvent",
	CtxSynchronize:    "cuCtxSynchronize",
	EventCreate:       "cuEventCreate",
	EventDestroy:      "cuEventDestroy",
	EventRecord:       "cuEventRecord",
	EventQuery:        "cuEventQuery",
	EventSynchronize:  "cuEventSynchronize",
	MemsetD8Async:     "cuMemsetD8Async",
	MemcpyDtoDAsync:   "cuMemcpyDtoDAsync",

	MemHostAlloc:                 "cuMemHostAlloc",
	MemFreeHost:                  "cuMemFreeHost",
	MemHostRegister:              "cuMemHostRegister",
	MemHostUnregister:            "cuMemHostUnregister",
	MemHostGetDevicePointer:      "cuMemHostGetDevicePointer",
	MemcpyHtoDAsync:              "cuMemcpyHtoDAsync",
	MemcpyDtoHAsync:              "cuMemcpyDtoHAsync",
	LaunchHostFunc:               "cuLaunchHostFunc",
	MemExportToShareableHandle:   "cuMemExportToShareableHandle",
	MemImportFromShareableHandle: "cuMemImportFromShareableHandle",
	StreamIsCapturing:            "cuStreamIsCapturing",
	ModuleLoadData:               "cuModuleLoadData",
	ModuleUnload:                 "cuModuleUnload",
	ModuleGetFunction:            "cuModuleGetFunction",
	ModuleGetGlobal:              "cuModuleGetGlobal",
	LinkComplete:                 "cuLinkComplete",
	FuncGetAttribute:             "cuFuncGetAttribute",
	FuncSetAttribute:             "cuFuncSetAttribute",
	FuncGetParamInfo:             "cuFuncGetParamInfo",
	OccupancyMaxActiveBlocksPerMultiprocessor: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
	OccupancyMaxPotentialBlockSize:            "cuOccupancyMaxPotentialBlockSize",
	LaunchKernel:                              "cuLaunchKernel",
	StreamBeginCapture:                        "cuStreamBeginCapture",
	StreamEndCapture:                          "cuStreamEndCapture",
	ThreadExchangeStreamCaptureMode:           "cuThreadExchangeStreamCaptureMode",
	StreamGetCaptureInfo:                      "cuStreamGetCaptureInfo",
	GraphGetNodes:                             "cuGraphGetNodes",
	GraphNodeGetType:                          "cuGraphNodeGetType",
	GraphDestroy:                              "cuGraphDestroy",
	GraphInstantiate:                          "cuGraphInstantiate",
	GraphExecUpdate:                           "cuGraphExecUpdate",
	GraphExecKernelNodeSetParams:              "cuGraphExecKernelNodeSetParams",
	GraphUpload:                               "cuGraphUpload",
	GraphLaunch:                               "cuGraphLaunch",
	GraphExecDestroy:                          "cuGraphExecDestroy",
	EventElapsedTime:                          "cuEventElapsedTime",
	MemsetD16Async:                            "cuMemsetD16Async",
	MemsetD32Async:                            "cuMemsetD32Async",
	Memcpy2DAsync:                             "cuMemcpy2DAsync",
	DeviceCanAccessPeer:                       "cuDeviceCanAccessPeer",
	MemcpyPeerAsync:                           "cuMemcpyPeerAsync",
	IpcGetEventHandle:                         "cuIpcGetEventHandle",
	IpcOpenEventHandle:                        "cuIpcOpenEventHandle",
	TensorMapEncodeTiled:                      "cuTensorMapEncodeTiled",
}

// String returns CUDA's name of the function.
func (c Call) String() string {
	if c < Count {
		return names[c]
	}
	return "unknown call"
}

// Named finds a call by CUDA's name of the function; Count for another name.
func Named(name string) (Call, bool) {
	for i, n := range names {
		if n == name {
			return Call(i), true
		}
	}
	return Count, false
}
