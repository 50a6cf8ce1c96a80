//go:build linux && (amd64 || arm64) && !gpu

package dynamic_test

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// Each method is a call of the driver. Where that refuses, the method's error has the function's name.
func TestEachMethodReturnsTheDriversError(t *testing.T) {
	names := map[string]string{ // of functions, where it is not the method's with cu
		"EventCreateShared": "cuEventCreate", "EventCreateTimed": "cuEventCreate", "StreamCreateBlocking": "cuStreamCreate",
		"LinkImages": "cuLinkComplete", "MemCreateShareable": "cuMemCreate", "MemSetPeerAccess": "cuMemSetAccess",
	}
	versions := map[string]string{"cuModuleLoadData": "cuModuleLoadDataEx", "cuGraphInstantiate": "cuGraphInstantiateWithFlags"} // that are called
	f := newFake(t)
	f.setDevices(2)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	of := reflect.TypeOf(dev)
	tried := 0
	for method := range of.Methods() {
		n := method.Type.NumOut()
		switch {
		case n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]():
			continue
		case slices.Contains([]string{"Close", "WithContext"}, method.Name):
			continue // of several calls
		}
		t.Run(method.Name, func(t *testing.T) {
			function, ok := names[method.Name]
			if !ok {
				function = "cu" + method.Name
			}
			in := argumentsOf(dev, method)
			called := cmp.Or(versions[function], function)
			f.failCall(called, 1, int32(cudadrv.LaunchFailed))
			last, ok := reflect.TypeAssert[error](method.Func.Call(in)[n-1])
			require.True(t, ok, "it has no error")
			var refused *cudadrv.CallError
			require.ErrorAs(t, last, &refused)
			assert.Equal(t, function, refused.Func)
			assert.Equal(t, cudadrv.LaunchFailed, refused.Result)
			f.failCall(called, 0, 0)
		})
		tried++
	}
	assert.Greater(t, tried, 60)
	assert.NoError(t, dev.Close())
}

// argumentsOf returns arguments of a method, with the device, that the package itself does not refuse.
func argumentsOf(dev cudadrv.Device, method reflect.Method) []reflect.Value {
	in := []reflect.Value{reflect.ValueOf(dev)}
	for p := 1; p < method.Type.NumIn(); p++ {
		variadic := method.Type.IsVariadic() && p == method.Type.NumIn()-1
		switch of := method.Type.In(p); {
		case variadic && of.Elem().Kind() == reflect.Int:
			in = append(in, reflect.ValueOf(0))
		case variadic && of.Elem() == reflect.TypeFor[[]byte]():
			in = append(in, reflect.ValueOf([]byte(".version 7.0\n.target sm_70\n.address_size 64\n")))
		case variadic:
		case of == reflect.TypeFor[[]byte]():
			in = append(in, reflect.ValueOf(make([]byte, 8)))
		case of == reflect.TypeFor[[][]byte]():
			in = append(in, reflect.ValueOf([][]byte{make([]byte, 8)}))
		case of == reflect.TypeFor[int64]():
			in = append(in, reflect.ValueOf(int64(2<<20)))
		case of == reflect.TypeFor[cudadrv.Copy2D]():
			in = append(in, reflect.ValueOf(cudadrv.Copy2D{WidthBytes: 8, Rows: 1, DstPitch: 8, SrcPitch: 8}))
		case of == reflect.TypeFor[func()]():
			in = append(in, reflect.ValueOf(func() {}))
		case of == reflect.TypeFor[func() error]():
			in = append(in, reflect.ValueOf(func() error { return nil }))
		case of == reflect.TypeFor[cudadrv.TensorMap]():
			in = append(in, reflect.ValueOf(cudadrv.TensorMap{
				Ptr: 4096, Type: cudadrv.TensorBFloat16, Rank: 1, Dims: [cudadrv.MaxTensorRank]int64{64}, Box: [cudadrv.MaxTensorRank]int32{8},
			}))
		case of.Kind() == reflect.Int:
			in = append(in, reflect.ValueOf(1))
		case of.Kind() == reflect.Uint64 || of.Kind() == reflect.Uintptr: // a handle or an address: the driver refuses before it reads it
			in = append(in, reflect.ValueOf(uint64(4096)).Convert(of))
		default:
			in = append(in, reflect.Zero(of))
		}
	}
	return in
}

// Each method has its frame for as long as it calls the driver, so that Close waits for it and no other call writes to its arguments,
// and gives it back.
func TestEachMethodHoldsItsFrame(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	var outs []int
	stop := dynamic.Watch(t, dev, func(out int) { outs = append(outs, out) })
	tried := 0
	for method := range reflect.TypeOf(dev).Methods() {
		n := method.Type.NumOut()
		if n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]() || method.Name == "Close" {
			continue
		}
		outs = nil
		method.Func.Call(argumentsOf(dev, method))
		assert.NotEmpty(t, outs, "%s does not call the driver", method.Name)
		for _, out := range outs {
			require.Equal(t, 1, out, method.Name)
		}
		require.Zero(t, dynamic.FramesOut(dev), method.Name)
		tried++
	}
	assert.Greater(t, tried, 60)
	stop()
	assert.NoError(t, dev.Close())
}

// Each method of a device that was closed is refused, and asks no driver.
func TestEachMethodOfAClosedDeviceIsRefused(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	before, tried := f.calls(""), 0
	for method := range reflect.TypeOf(dev).Methods() {
		n := method.Type.NumOut()
		if n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]() || method.Name == "Close" {
			continue
		}
		last, _ := reflect.TypeAssert[error](method.Func.Call(argumentsOf(dev, method))[n-1])
		require.ErrorIs(t, last, cudadrv.InvalidContext, method.Name)
		tried++
	}
	assert.Greater(t, tried, 60)
	assert.Equal(t, before, f.calls(""))
}
