//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"runtime"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
)

// capturing captures streams of the primary context of the first device, as other code in the process does.
type capturing struct {
	t       *testing.T
	raw     *raw
	context uintptr

	beginCapture func(stream uintptr, mode int32) int32
	endCapture   func(stream uintptr, graph *uintptr) int32
	destroyGraph func(graph uintptr) int32
}

func newCapturing(t *testing.T, path string) *capturing {
	t.Helper()
	c := &capturing{t: t, raw: newRaw(t, path)}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	purego.RegisterLibFunc(&c.beginCapture, handle, "cuStreamBeginCapture_v2")
	purego.RegisterLibFunc(&c.endCapture, handle, "cuStreamEndCapture")
	purego.RegisterLibFunc(&c.destroyGraph, handle, "cuGraphDestroy")
	require.Zero(t, c.raw.retain(&c.context, 0))
	t.Cleanup(func() { require.Zero(t, c.raw.release(0)) })
	return c
}

// call makes a call with the context current, and makes an error of its result.
func (c *capturing) call(name string, call func() int32) error {
	c.t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.Zero(c.t, c.raw.push(c.context))
	result := call()
	var popped uintptr
	require.Zero(c.t, c.raw.pop(&popped))
	if result != 0 {
		return &cudadrv.CallError{Func: name, Result: cudadrv.Result(result)}
	}
	return nil
}

// BeginCapture begins a capture in the relaxed mode.
func (c *capturing) BeginCapture(s cudadrv.Stream) error { return c.begin(s, cudadrv.CaptureRelaxed) }

func (c *capturing) begin(s cudadrv.Stream, mode cudadrv.CaptureMode) error {
	return c.call("cuStreamBeginCapture", func() int32 { return c.beginCapture(uintptr(s), int32(mode)) })
}

// EndCapture ends it and drops the graph.
func (c *capturing) EndCapture(s cudadrv.Stream) error {
	return c.call("cuStreamEndCapture", func() int32 {
		var graph uintptr
		if result := c.endCapture(uintptr(s), &graph); result != 0 {
			return result
		}
		return c.destroyGraph(graph)
	})
}

func TestCaptureConformanceOnTheFake(t *testing.T) {
	drivertest.RunCaptures(t, func(t *testing.T) (cudadrv.Driver, drivertest.Captures) {
		t.Helper()
		f := newFake(t)
		drv := f.driver()
		_, err := drv.DeviceCount() // starts the library
		require.NoError(t, err)
		return drv, newCapturing(t, f.path)
	})
}
