//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// symbol numbers the functions of the library: a Call that every driver makes, or one of the functions below.
type symbol = call.Call

// The functions that no method of cudadrv is named after.
const (
	cuInit symbol = call.Count + iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGet
	cuDeviceGetName
	cuDeviceTotalMem
	cuDeviceGetUUID
	cuDeviceGetAttribute
	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxGetDevice
	cuMemGetAllocationGranularity
	cuLinkCreate
	cuLinkAddData
	cuLinkDestroy
	symbolCount
)

// exported has the names in the library that are not those of the calls, with the version whose signature is called here.
var exported = map[symbol]string{ //nolint:gochecknoglobals // a constant table
	cuInit:                            "cuInit",
	cuDriverGetVersion:                "cuDriverGetVersion",
	cuGetErrorName:                    "cuGetErrorName",
	cuGetErrorString:                  "cuGetErrorString",
	cuDeviceGet:                       "cuDeviceGet",
	cuDeviceGetName:                   "cuDeviceGetName",
	cuDeviceTotalMem:                  "cuDeviceTotalMem_v2",
	cuDeviceGetUUID:                   "cuDeviceGetUuid_v2",
	cuDeviceGetAttribute:              "cuDeviceGetAttribute",
	call.PrimaryCtxRelease:            "cuDevicePrimaryCtxRelease_v2",
	cuCtxPushCurrent:                  "cuCtxPushCurrent_v2",
	cuCtxPopCurrent:                   "cuCtxPopCurrent_v2",
	cuCtxGetDevice:                    "cuCtxGetDevice",
	call.MemGetInfo:                   "cuMemGetInfo_v2",
	call.MemAlloc:                     "cuMemAlloc_v2",
	call.MemFree:                      "cuMemFree_v2",
	call.MemcpyDtoDAsync:              "cuMemcpyDtoDAsync_v2",
	call.StreamDestroy:                "cuStreamDestroy_v2",
	call.EventDestroy:                 "cuEventDestroy_v2",
	cuMemGetAllocationGranularity:     "cuMemGetAllocationGranularity",
	call.MemHostRegister:              "cuMemHostRegister_v2",
	call.MemHostGetDevicePointer:      "cuMemHostGetDevicePointer_v2",
	call.MemcpyHtoDAsync:              "cuMemcpyHtoDAsync_v2",
	call.MemcpyDtoHAsync:              "cuMemcpyDtoHAsync_v2",
	call.ModuleLoadData:               "cuModuleLoadDataEx",
	call.ModuleGetGlobal:              "cuModuleGetGlobal_v2",
	cuLinkCreate:                      "cuLinkCreate_v2",
	cuLinkAddData:                     "cuLinkAddData_v2",
	cuLinkDestroy:                     "cuLinkDestroy",
	call.StreamBeginCapture:           "cuStreamBeginCapture_v2",
	call.StreamGetCaptureInfo:         "cuStreamGetCaptureInfo_v2",
	call.GraphInstantiate:             "cuGraphInstantiateWithFlags",
	call.GraphExecUpdate:              "cuGraphExecUpdate_v2",
	call.GraphExecKernelNodeSetParams: "cuGraphExecKernelNodeSetParams_v2",
	call.Memcpy2DAsync:                "cuMemcpy2DAsync_v2",
}

// nameOf returns a function's name in the library.
func nameOf(fn symbol) string {
	if name, ok := exported[fn]; ok {
		return name
	}
	return fn.String()
}

// required is the feature of functions that every device needs.
const required cudadrv.Capability = 0

// alone is the feature of functions that their own call needs and nothing else.
const alone cudadrv.Capability = 1 << 31

// feature is an ability that functions of the library and an attribute of the device make up.
type feature struct {
	capability cudadrv.Capability
	name       string
	attribute  uintptr // the CUdevice_attribute that must be set; 0: the functions suffice
	functions  []symbol
}

// features are all of them, and each function is in one.
var features = [...]feature{ //nolint:gochecknoglobals // a constant table
	{required, "every device", 0, []symbol{
		cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString, call.DeviceGetCount, cuDeviceGet, cuDeviceGetName, cuDeviceTotalMem,
		cuDeviceGetUUID, cuDeviceGetAttribute, call.PrimaryCtxRetain, call.PrimaryCtxRelease, cuCtxPushCurrent, cuCtxPopCurrent, cuCtxGetDevice,
		call.CtxSynchronize, call.MemGetInfo, call.MemAlloc, call.MemFree, call.MemsetD8Async, call.MemcpyDtoDAsync, call.StreamCreate,
		call.StreamDestroy, call.StreamQuery, call.StreamSynchronize, call.StreamWaitEvent, call.EventCreate, call.EventDestroy,
		call.EventRecord, call.EventQuery, call.EventSynchronize,
	}},
	{cudadrv.VirtualMemory, "virtual memory management", 102, []symbol{
		cuMemGetAllocationGranularity, call.MemAddressReserve, call.MemAddressFree, call.MemCreate, call.MemRelease, call.MemMap,
		call.MemSetAccess, call.MemUnmap,
	}},
	{cudadrv.PinnedHost, "page-locked host memory", 0, []symbol{
		call.MemHostAlloc, call.MemFreeHost, call.MemHostRegister, call.MemHostUnregister, call.MemHostGetDevicePointer, call.MemcpyHtoDAsync,
		call.MemcpyDtoHAsync,
	}},
	{cudadrv.HostCalls, "host functions", 0, []symbol{
		call.LaunchHostFunc,
	}},
	{cudadrv.ShareableHandles, "shareable handles", 103, []symbol{
		call.MemExportToShareableHandle, call.MemImportFromShareableHandle,
	}},
	{cudadrv.CaptureInformation, "the capture state of streams", 0, []symbol{
		call.StreamIsCapturing,
	}},
	{cudadrv.KernelLaunches, "kernels", 0, []symbol{
		call.ModuleLoadData, call.ModuleUnload, call.ModuleGetFunction, call.ModuleGetGlobal, cuLinkCreate, cuLinkAddData, call.LinkComplete,
		cuLinkDestroy, call.FuncGetAttribute, call.FuncSetAttribute, call.OccupancyMaxActiveBlocksPerMultiprocessor,
		call.OccupancyMaxPotentialBlockSize, call.LaunchKernel,
	}},
	{cudadrv.GraphLaunches, "graphs", 0, []symbol{
		call.StreamBeginCapture, call.StreamEndCapture, call.ThreadExchangeStreamCaptureMode, call.StreamGetCaptureInfo, call.GraphGetNodes,
		call.GraphNodeGetType, call.GraphDestroy, call.GraphInstantiate, call.GraphExecUpdate, call.GraphExecKernelNodeSetParams,
		call.GraphUpload, call.GraphLaunch, call.GraphExecDestroy,
	}},
	{cudadrv.EventTiming, "events with timing", 0, []symbol{
		call.EventElapsedTime,
	}},
	{cudadrv.WideFills, "wide fills", 0, []symbol{
		call.MemsetD16Async, call.MemsetD32Async, call.Memcpy2DAsync,
	}},
	{cudadrv.PeerAccess, "peer access", 0, []symbol{
		call.DeviceCanAccessPeer, call.MemcpyPeerAsync,
	}},
	{cudadrv.EventSharing, "shared events", 0, []symbol{
		call.IpcGetEventHandle, call.IpcOpenEventHandle,
	}},
	{cudadrv.BulkTensors, "bulk copies of tensors", 127, []symbol{
		call.TensorMapEncodeTiled,
	}},
	{alone, "every device", 0, []symbol{
		call.FuncGetParamInfo,
	}},
}

// featureName returns a feature's name in errors.
func featureName(c cudadrv.Capability) string {
	for _, f := range features {
		if f.capability == c {
			return f.name
		}
	}
	return features[0].name
}
