//go:build linux && (amd64 || arm64) && !gpu

package dynamic_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// Each method is a call of the driver. Where that refuses, the method's error has the function's name.
func TestEachMethodReturnsTheDriversError(t *testing.T) {
	names := map[string]string{ // of functions, where it is not the method's with cu
		"EventCreateShared": "cuEventCreate", "EventCreateTimed": "cuEventCreate", "StreamCreateBlocking": "cuStreamCreate",
		"LinkImages": "cuLinkComplete", "MemCreateShareable": "cuMemCreate", "MemSetPeerAccess": "cuMemSetAccess",
	}
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	of := reflect.TypeOf(dev)
	tried := 0
	for method := range of.Methods() {
		n := method.Type.NumOut()
		switch {
		case n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]():
			continue
		case slices.Contains([]string{"Close", "WithContext", "ThreadExchangeStreamCaptureMode", "MemFree"}, method.Name):
			continue // of several calls, or of none with these arguments
		}
		t.Run(method.Name, func(t *testing.T) {
			function, ok := names[method.Name]
			if !ok {
				function = "cu" + method.Name
			}
			in := []reflect.Value{reflect.ValueOf(dev)}
			for p := 1; p < method.Type.NumIn(); p++ {
				switch of := method.Type.In(p); {
				case method.Type.IsVariadic() && p == method.Type.NumIn()-1:
				case of == reflect.TypeFor[[]byte]():
					in = append(in, reflect.ValueOf(make([]byte, 8)))
				case of == reflect.TypeFor[[][]byte]():
					in = append(in, reflect.ValueOf([][]byte{make([]byte, 8)}))
				case of == reflect.TypeFor[int64]():
					in = append(in, reflect.ValueOf(int64(8)))
				case of == reflect.TypeFor[cudadrv.Copy2D]():
					in = append(in, reflect.ValueOf(cudadrv.Copy2D{WidthBytes: 8, Rows: 1, DstPitch: 8, SrcPitch: 8}))
				case of == reflect.TypeFor[func()]():
					in = append(in, reflect.ValueOf(func() {}))
				default:
					in = append(in, reflect.Zero(of))
				}
			}
			f.failCall(function, 1, int32(cudadrv.LaunchFailed))
			last, ok := reflect.TypeAssert[error](method.Func.Call(in)[n-1])
			require.True(t, ok, "it has no error")
			var refused *cudadrv.CallError
			require.ErrorAs(t, last, &refused)
			assert.Equal(t, function, refused.Func)
			f.failCall(function, 0, 0)
		})
		tried++
	}
	assert.Greater(t, tried, 60)
	assert.NoError(t, dev.Close())
}
