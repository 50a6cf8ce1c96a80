//go:build linux && (amd64 || arm64)

package dynamic

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// unused counts the frames of a gate that are not in use.
func (g *gate) unused() (frames int) {
	for i := range g.shards {
		for f := g.shards[i].free.Load(); f != 0; f &= f - 1 {
			frames++
		}
	}
	return frames
}

// neededBy returns the capabilities that a call of handles needs.
func neededBy(name string) cudadrv.Capability {
	switch {
	case strings.HasPrefix(name, "access"), name == "cuMemSetAccess":
		return cudadrv.PeerAccess | cudadrv.VirtualMemory
	case strings.HasPrefix(name, "a copy"), name == "cuMemcpyPeerAsync", name == "cuDeviceCanAccessPeer":
		return cudadrv.PeerAccess
	case strings.HasPrefix(name, "cuGraph"), name == "set parameters":
		return cudadrv.GraphLaunches
	case strings.HasPrefix(name, "cuMem"):
		return cudadrv.WideFills
	case name == "cuEventElapsedTime":
		return cudadrv.EventTiming
	case name == "cuIpcGetEventHandle":
		return cudadrv.EventSharing
	}
	return cudadrv.KernelLaunches
}

// A call that is refused before the driver is asked gives its frame back, else Close would wait for it for ever: one whose
// arguments mean nothing, and one that the device does not have.
func TestARefusedCallGivesItsFrameBack(t *testing.T) {
	d := &device{lib: &library{}, info: cudadrv.Info{GranularityBytes: 2 << 20}}
	d.gate.init()
	optional := map[string]func() error{
		"cuMemAddressReserve":  func() error { _, err := d.MemAddressReserve(1); return err },
		"cuMemAddressFree":     func() error { return d.MemAddressFree(0, 1) },
		"cuMemCreate":          func() error { _, err := d.MemCreate(1); return err },
		"cuMemCreate to share": func() error { _, err := d.MemCreateShareable(1); return err },
		"cuMemRelease":         func() error { return d.MemRelease(0) },
		"cuMemMap":             func() error { return d.MemMap(0, 1, 1) },
		"cuMemSetAccess":       func() error { return d.MemSetAccess(0, 1) },
		"cuMemUnmap":           func() error { return d.MemUnmap(0, 1) },
		"cuLaunchHostFunc":     func() error { return d.LaunchHostFunc(0, nil) },
		"cuMemHostAlloc":       func() error { _, err := d.MemHostAlloc(0); return err },
		"cuMemFreeHost":        func() error { return d.MemFreeHost(nil) },
		"cuMemHostRegister":    func() error { return d.MemHostRegister(nil) },
		"cuMemHostUnregister":  func() error { return d.MemHostUnregister(nil) },
		"cuMemHostGetDevicePointer": func() error {
			_, err := d.MemHostGetDevicePointer(nil)
			return err
		},
	}
	handles := map[string]func() error{
		"cuModuleUnload":        func() error { return d.ModuleUnload(0) },
		"cuModuleGetFunction":   func() error { _, err := d.ModuleGetFunction(0, ""); return err },
		"cuModuleGetGlobal":     func() error { _, _, err := d.ModuleGetGlobal(0, ""); return err },
		"cuModuleLoadData":      func() error { _, err := d.ModuleLoadData(nil); return err },
		"cuLinkComplete":        func() error { _, err := d.LinkImages(nil); return err },
		"cuFuncGetAttribute":    func() error { _, err := d.FuncGetAttribute(0, 0); return err },
		"cuFuncSetAttribute":    func() error { return d.FuncSetAttribute(0, 0, 0) },
		"cuFuncGetParamInfo":    func() error { _, _, err := d.FuncGetParamInfo(0, 0); return err },
		"blocks":                func() error { _, err := d.OccupancyMaxActiveBlocksPerMultiprocessor(1, 0, 0); return err },
		"block size":            func() error { _, _, err := d.OccupancyMaxPotentialBlockSize(1, -1, 0); return err },
		"cuLaunchKernel":        func() error { return d.LaunchKernel(0, cudadrv.Geometry{}, nil, 0) },
		"cuGraphGetNodes":       func() error { _, err := d.GraphGetNodes(0); return err },
		"cuGraphNodeGetType":    func() error { _, err := d.GraphNodeGetType(0); return err },
		"cuGraphDestroy":        func() error { return d.GraphDestroy(0) },
		"cuGraphInstantiate":    func() error { _, err := d.GraphInstantiate(0); return err },
		"cuGraphExecUpdate":     func() error { return d.GraphExecUpdate(1, 0) },
		"set parameters":        func() error { return d.GraphExecKernelNodeSetParams(1, 1, 0, cudadrv.Geometry{}, nil) },
		"cuGraphUpload":         func() error { return d.GraphUpload(0, 0) },
		"cuGraphLaunch":         func() error { return d.GraphLaunch(0, 0) },
		"cuGraphExecDestroy":    func() error { return d.GraphExecDestroy(0) },
		"cuEventElapsedTime":    func() error { _, err := d.EventElapsedTime(1, 0); return err },
		"cuMemsetD16Async":      func() error { return d.MemsetD16Async(1, 0, -1, 0) },
		"cuMemsetD32Async":      func() error { return d.MemsetD32Async(1, 0, -1, 0) },
		"cuMemcpy2DAsync":       func() error { return d.Memcpy2DAsync(cudadrv.Copy2D{WidthBytes: -1}, 0) },
		"cuDeviceCanAccessPeer": func() error { _, err := d.DeviceCanAccessPeer(-1); return err },
		"cuMemSetAccess":        func() error { return d.MemSetPeerAccess(0, 1, 0) },
		"access to no bytes":    func() error { return d.MemSetPeerAccess(1, 0, 0) },
		"access for nobody":     func() error { return d.MemSetPeerAccess(1, 1) },
		"cuMemcpyPeerAsync":     func() error { return d.MemcpyPeerAsync(1, 0, 1, 0, 1, 0) },
		"a copy to nowhere":     func() error { return d.MemcpyPeerAsync(1, 0, 1, 1, 1, 0) },
		"a copy from nowhere":   func() error { return d.MemcpyPeerAsync(1, 1, 1, 0, 1, 0) },
		"cuIpcGetEventHandle":   func() error { _, err := d.IpcGetEventHandle(0); return err },
	}
	always := map[string]func() error{
		"cuMemAlloc":         func() error { _, err := d.MemAlloc(0); return err },
		"cuMemsetD8Async":    func() error { return d.MemsetD8Async(1, 0, -1, 0) },
		"cuMemcpyDtoDAsync":  func() error { return d.MemcpyDtoDAsync(1, 1, -1, 0) },
		"cuStreamDestroy":    func() error { return d.StreamDestroy(lastStandardStream) },
		"cuStreamWaitEvent":  func() error { return d.StreamWaitEvent(0, 0) },
		"cuEventDestroy":     func() error { return d.EventDestroy(0) },
		"cuEventRecord":      func() error { return d.EventRecord(0, 0) },
		"cuEventQuery":       func() error { _, err := d.EventQuery(0); return err },
		"cuEventSynchronize": func() error { return d.EventSynchronize(0) },
	}
	refused := func(calls map[string]func() error, result ...cudadrv.Result) {
		for name, call := range calls {
			var failure *cudadrv.CallError
			require.ErrorAs(t, call(), &failure, name)
			assert.Contains(t, result, failure.Result, name)
			require.Equal(t, shardCount*shardFrames, d.gate.unused(), name)
		}
	}
	refused(optional, cudadrv.NotSupported)
	refused(handles, cudadrv.NotSupported)
	d.lib.functions[call.FuncGetParamInfo] = 1 // never called
	for name, call := range handles {          // each needs one capability, except access for peers
		var needs cudadrv.Capability
		for one := cudadrv.VirtualMemory; one <= cudadrv.BulkTensors; one <<= 1 {
			d.info.Capabilities = ^one
			if errors.Is(call(), cudadrv.NotSupported) {
				needs |= one
			}
		}
		assert.Equal(t, neededBy(name), needs, name)
	}
	refused(always, cudadrv.InvalidValue, cudadrv.InvalidHandle)
	d.info.Capabilities = ^cudadrv.Capability(0)
	refused(optional, cudadrv.InvalidValue)
	refused(handles, cudadrv.InvalidValue, cudadrv.InvalidHandle, cudadrv.InvalidDevice, cudadrv.InvalidContext)

	nothing := map[string]error{ // and is no mistake
		"cuMemFree":         d.MemFree(0),
		"cuMemsetD8Async":   d.MemsetD8Async(1, 0, 0, 0),
		"cuMemcpyDtoDAsync": d.MemcpyDtoDAsync(1, 1, 0, 0),
		"cuMemcpyHtoDAsync": d.MemcpyHtoDAsync(1, nil, 0),
		"cuMemcpyDtoHAsync": d.MemcpyDtoHAsync(nil, 1, 0),
		"cuMemsetD16Async":  d.MemsetD16Async(1, 0, 0, 0),
		"cuMemcpy2DAsync":   d.Memcpy2DAsync(cudadrv.Copy2D{Rows: 1}, 0),
		"cuMemcpyPeerAsync": d.MemcpyPeerAsync(1, 0, 1, 0, 0, 0),
	}
	for name, err := range nothing {
		require.NoError(t, err, name)
	}
	assert.Equal(t, shardCount*shardFrames, d.gate.unused())
}
