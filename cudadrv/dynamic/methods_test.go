//go:build linux && (amd64 || arm64) && !gpu

package dynamic_test

import (
	"cmp"
	"errors"
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

// Each number that a method is given, be it a handle, an address, a size or a value, is an argument of the driver's function, in the
// same order.
func TestEachMethodPassesItsArguments(t *testing.T) {
	others := map[string][]int{ // the order, where it is another one
		"FuncGetAttribute":             {1, 0},
		"GraphExecKernelNodeSetParams": {0, 1},    // the third one is in a structure
		"MemSetPeerAccess":             {2, 0, 1}, // first it asks which device that is
	}
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	var arguments []uintptr
	stop := dynamic.Arguments(t, dev, func(args ...uintptr) { arguments = append(arguments, args...) })
	number, tried := uint64(16), 0 // the functions' own arguments are smaller
	for method := range reflect.TypeOf(dev).Methods() {
		n := method.Type.NumOut()
		passedOn := method.Name != "Close" && method.Name != "ThreadExchangeStreamCaptureMode" // which passes an address
		if n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]() || !passedOn {
			continue
		}
		in := argumentsOf(dev, method)
		var given []uintptr
		for i, v := range in {
			if !v.CanInt() && !v.CanUint() {
				continue
			}
			number++ // no two are equal
			value := reflect.ValueOf(number)
			if v.Type().Size() == 8 && v.Kind() != reflect.Int {
				value = reflect.ValueOf(number << 21) // a size is one of granules
			}
			in[i] = value.Convert(v.Type())
			given = append(given, uintptr(value.Uint()))
		}
		arguments = nil
		method.Func.Call(in)
		var passed []int
		for _, a := range arguments {
			if i := slices.Index(given, a); i >= 0 {
				passed = append(passed, i)
			}
		}
		want, ok := others[method.Name]
		for i := range given {
			if !ok {
				want = append(want, i)
			}
		}
		assert.Equal(t, want, passed, method.Name)
		tried++
	}
	assert.Greater(t, tried, 60)
	stop()
	assert.NoError(t, dev.Close())
}

// A function that a library lacks is never called, and its absence leaves the other methods as they are: also where the driver refuses
// their calls for a capture.
func TestNoMethodCallsAFunctionThatIsMissing(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	dynamic.EachLack(t, dev, func(function string) {
		tried, refused := 0, 0
		for method := range reflect.TypeOf(dev).Methods() {
			n := method.Type.NumOut()
			if n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]() || method.Name == "Close" {
				continue
			}
			var last error
			require.NotPanics(t, func() {
				last, _ = reflect.TypeAssert[error](method.Func.Call(argumentsOf(dev, method))[n-1])
			}, "%s without %s", method.Name, function)
			if errors.Is(last, cudadrv.NotSupported) {
				refused++
			}
			tried++
		}
		assert.Greater(t, tried, 60)
		assert.Positive(t, refused, "without %s", function)
		assert.Less(t, refused, 20, "without %s", function)
	})
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
