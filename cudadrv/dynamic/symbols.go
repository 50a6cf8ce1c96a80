//go:build linux && (amd64 || arm64)

package dynamic

import "github.com/go-vram/vram/cudadrv"

// symbol numbers the functions of the library.
type symbol int

// The functions, grouped by feature.
const (
	cuInit symbol = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceTotalMem
	cuDeviceGetUUID
	cuDeviceGetAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxGetDevice
	cuCtxSynchronize
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemsetD8Async
	cuMemcpyDtoDAsync
	cuStreamCreate
	cuStreamDestroy
	cuStreamQuery
	cuStreamSynchronize
	cuStreamWaitEvent
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventSynchronize

	cuMemGetAllocationGranularity
	cuMemAddressReserve
	cuMemAddressFree
	cuMemCreate
	cuMemRelease
	cuMemMap
	cuMemSetAccess
	cuMemUnmap

	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemHostGetDevicePointer
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync

	cuLaunchHostFunc
	cuMemExportToShareableHandle
	cuMemImportFromShareableHandle
	cuStreamIsCapturing

	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuModuleGetGlobal
	cuLinkCreate
	cuLinkAddData
	cuLinkComplete
	cuLinkDestroy
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuOccupancyMaxPotentialBlockSize
	cuLaunchKernel
	cuFuncGetParamInfo

	cuStreamBeginCapture
	cuStreamEndCapture
	cuThreadExchangeStreamCaptureMode
	cuStreamGetCaptureInfo
	cuGraphGetNodes
	cuGraphNodeGetType
	cuGraphDestroy
	cuGraphInstantiateWithFlags
	cuGraphExecUpdate
	cuGraphExecKernelNodeSetParams
	cuGraphUpload
	cuGraphLaunch
	cuGraphExecDestroy

	cuEventElapsedTime

	cuMemsetD16Async
	cuMemsetD32Async
	cuMemcpy2DAsync

	cuDeviceCanAccessPeer
	cuMemcpyPeerAsync

	cuIpcGetEventHandle
	cuIpcOpenEventHandle

	symbolCount
)

// required is the feature of functions that every device needs.
const required cudadrv.Capability = 0

// alone is the feature of functions that their own call needs and nothing else.
const alone cudadrv.Capability = 1 << 31

// symbols are the names in the library, with the version that has the signature that is called here, and the
// feature that each belongs to.
var symbols = [symbolCount]struct { //nolint:gochecknoglobals // a constant table
	name    string
	feature cudadrv.Capability
}{
	cuInit:                    {"cuInit", required},
	cuDriverGetVersion:        {"cuDriverGetVersion", required},
	cuGetErrorName:            {"cuGetErrorName", required},
	cuGetErrorString:          {"cuGetErrorString", required},
	cuDeviceGetCount:          {"cuDeviceGetCount", required},
	cuDeviceGet:               {"cuDeviceGet", required},
	cuDeviceGetName:           {"cuDeviceGetName", required},
	cuDeviceTotalMem:          {"cuDeviceTotalMem_v2", required},
	cuDeviceGetUUID:           {"cuDeviceGetUuid_v2", required},
	cuDeviceGetAttribute:      {"cuDeviceGetAttribute", required},
	cuDevicePrimaryCtxRetain:  {"cuDevicePrimaryCtxRetain", required},
	cuDevicePrimaryCtxRelease: {"cuDevicePrimaryCtxRelease_v2", required},
	cuCtxPushCurrent:          {"cuCtxPushCurrent_v2", required},
	cuCtxPopCurrent:           {"cuCtxPopCurrent_v2", required},
	cuCtxGetDevice:            {"cuCtxGetDevice", required},
	cuCtxSynchronize:          {"cuCtxSynchronize", required},
	cuMemGetInfo:              {"cuMemGetInfo_v2", required},
	cuMemAlloc:                {"cuMemAlloc_v2", required},
	cuMemFree:                 {"cuMemFree_v2", required},
	cuMemsetD8Async:           {"cuMemsetD8Async", required},
	cuMemcpyDtoDAsync:         {"cuMemcpyDtoDAsync_v2", required},
	cuStreamCreate:            {"cuStreamCreate", required},
	cuStreamDestroy:           {"cuStreamDestroy_v2", required},
	cuStreamQuery:             {"cuStreamQuery", required},
	cuStreamSynchronize:       {"cuStreamSynchronize", required},
	cuStreamWaitEvent:         {"cuStreamWaitEvent", required},
	cuEventCreate:             {"cuEventCreate", required},
	cuEventDestroy:            {"cuEventDestroy_v2", required},
	cuEventRecord:             {"cuEventRecord", required},
	cuEventQuery:              {"cuEventQuery", required},
	cuEventSynchronize:        {"cuEventSynchronize", required},

	cuMemGetAllocationGranularity: {"cuMemGetAllocationGranularity", cudadrv.VirtualMemory},
	cuMemAddressReserve:           {"cuMemAddressReserve", cudadrv.VirtualMemory},
	cuMemAddressFree:              {"cuMemAddressFree", cudadrv.VirtualMemory},
	cuMemCreate:                   {"cuMemCreate", cudadrv.VirtualMemory},
	cuMemRelease:                  {"cuMemRelease", cudadrv.VirtualMemory},
	cuMemMap:                      {"cuMemMap", cudadrv.VirtualMemory},
	cuMemSetAccess:                {"cuMemSetAccess", cudadrv.VirtualMemory},
	cuMemUnmap:                    {"cuMemUnmap", cudadrv.VirtualMemory},

	cuMemHostAlloc:            {"cuMemHostAlloc", cudadrv.PinnedHost},
	cuMemFreeHost:             {"cuMemFreeHost", cudadrv.PinnedHost},
	cuMemHostRegister:         {"cuMemHostRegister_v2", cudadrv.PinnedHost},
	cuMemHostUnregister:       {"cuMemHostUnregister", cudadrv.PinnedHost},
	cuMemHostGetDevicePointer: {"cuMemHostGetDevicePointer_v2", cudadrv.PinnedHost},
	cuMemcpyHtoDAsync:         {"cuMemcpyHtoDAsync_v2", cudadrv.PinnedHost},
	cuMemcpyDtoHAsync:         {"cuMemcpyDtoHAsync_v2", cudadrv.PinnedHost},

	cuLaunchHostFunc:               {"cuLaunchHostFunc", cudadrv.HostCalls},
	cuMemExportToShareableHandle:   {"cuMemExportToShareableHandle", cudadrv.ShareableHandles},
	cuMemImportFromShareableHandle: {"cuMemImportFromShareableHandle", cudadrv.ShareableHandles},
	cuStreamIsCapturing:            {"cuStreamIsCapturing", cudadrv.CaptureInformation},

	cuModuleLoadDataEx:  {"cuModuleLoadDataEx", cudadrv.KernelLaunches},
	cuModuleUnload:      {"cuModuleUnload", cudadrv.KernelLaunches},
	cuModuleGetFunction: {"cuModuleGetFunction", cudadrv.KernelLaunches},
	cuModuleGetGlobal:   {"cuModuleGetGlobal_v2", cudadrv.KernelLaunches},
	cuLinkCreate:        {"cuLinkCreate_v2", cudadrv.KernelLaunches},
	cuLinkAddData:       {"cuLinkAddData_v2", cudadrv.KernelLaunches},
	cuLinkComplete:      {"cuLinkComplete", cudadrv.KernelLaunches},
	cuLinkDestroy:       {"cuLinkDestroy", cudadrv.KernelLaunches},
	cuFuncGetAttribute:  {"cuFuncGetAttribute", cudadrv.KernelLaunches},
	cuFuncSetAttribute:  {"cuFuncSetAttribute", cudadrv.KernelLaunches},
	cuOccupancyMaxActiveBlocksPerMultiprocessor: {"cuOccupancyMaxActiveBlocksPerMultiprocessor", cudadrv.KernelLaunches},
	cuOccupancyMaxPotentialBlockSize:            {"cuOccupancyMaxPotentialBlockSize", cudadrv.KernelLaunches},
	cuLaunchKernel:                              {"cuLaunchKernel", cudadrv.KernelLaunches},
	cuFuncGetParamInfo:                          {"cuFuncGetParamInfo", alone},

	cuStreamBeginCapture:              {"cuStreamBeginCapture_v2", cudadrv.GraphLaunches},
	cuStreamEndCapture:                {"cuStreamEndCapture", cudadrv.GraphLaunches},
	cuThreadExchangeStreamCaptureMode: {"cuThreadExchangeStreamCaptureMode", cudadrv.GraphLaunches},
	cuStreamGetCaptureInfo:            {"cuStreamGetCaptureInfo_v2", cudadrv.GraphLaunches},
	cuGraphGetNodes:                   {"cuGraphGetNodes", cudadrv.GraphLaunches},
	cuGraphNodeGetType:                {"cuGraphNodeGetType", cudadrv.GraphLaunches},
	cuGraphDestroy:                    {"cuGraphDestroy", cudadrv.GraphLaunches},
	cuGraphInstantiateWithFlags:       {"cuGraphInstantiateWithFlags", cudadrv.GraphLaunches},
	cuGraphExecUpdate:                 {"cuGraphExecUpdate_v2", cudadrv.GraphLaunches},
	cuGraphExecKernelNodeSetParams:    {"cuGraphExecKernelNodeSetParams_v2", cudadrv.GraphLaunches},
	cuGraphUpload:                     {"cuGraphUpload", cudadrv.GraphLaunches},
	cuGraphLaunch:                     {"cuGraphLaunch", cudadrv.GraphLaunches},
	cuGraphExecDestroy:                {"cuGraphExecDestroy", cudadrv.GraphLaunches},

	cuEventElapsedTime: {"cuEventElapsedTime", cudadrv.EventTiming},

	cuMemsetD16Async: {"cuMemsetD16Async", cudadrv.WideFills},
	cuMemsetD32Async: {"cuMemsetD32Async", cudadrv.WideFills},
	cuMemcpy2DAsync:  {"cuMemcpy2DAsync_v2", cudadrv.WideFills},

	cuDeviceCanAccessPeer: {"cuDeviceCanAccessPeer", cudadrv.PeerAccess},
	cuMemcpyPeerAsync:     {"cuMemcpyPeerAsync", cudadrv.PeerAccess},

	cuIpcGetEventHandle:  {"cuIpcGetEventHandle", cudadrv.EventSharing},
	cuIpcOpenEventHandle: {"cuIpcOpenEventHandle", cudadrv.EventSharing},
}

// feature is an ability that functions of the library and an attribute of the device make up.
type feature struct {
	capability cudadrv.Capability
	name       string
	attribute  uintptr // the CUdevice_attribute that must be set; 0: the functions suffice
}

// features are all of them except the required ones.
var features = [...]feature{ //nolint:gochecknoglobals // a constant table
	{cudadrv.VirtualMemory, "virtual memory management", 102},
	{cudadrv.PinnedHost, "page-locked host memory", 0},
	{cudadrv.HostCalls, "host functions", 0},
	{cudadrv.ShareableHandles, "shareable handles", 103},
	{cudadrv.CaptureInformation, "the capture state of streams", 0},
	{cudadrv.KernelLaunches, "kernels", 0},
	{cudadrv.GraphLaunches, "graphs", 0},
	{cudadrv.EventTiming, "events with timing", 0},
	{cudadrv.WideFills, "wide fills", 0},
	{cudadrv.PeerAccess, "peer access", 0},
	{cudadrv.EventSharing, "shared events", 0},
}

// featureName returns a feature's name in errors.
func featureName(c cudadrv.Capability) string {
	for _, f := range features {
		if f.capability == c {
			return f.name
		}
	}
	return "every device"
}
