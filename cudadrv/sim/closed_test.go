package sim_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Each call of a device that was closed is refused.
func TestEachCallOfAClosedDeviceIsRefused(t *testing.T) {
	of := reflect.TypeFor[*sim.Device]()
	refused := 0
	for method := range of.Methods() {
		n := method.Type.NumOut()
		if n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]() || slices.Contains([]string{"Audit", "LaunchLibrary"}, method.Name) {
			continue
		}
		t.Run(method.Name, func(t *testing.T) {
			dev, err := sim.New(sim.Config{Bytes: true, TimedKernels: true, Devices: 2}).Open(0)
			require.NoError(t, err)
			require.NoError(t, dev.Close())
			in := []reflect.Value{reflect.ValueOf(dev)}
			for p := 1; p < method.Type.NumIn(); p++ {
				switch of := method.Type.In(p); {
				case method.Type.IsVariadic() && p == method.Type.NumIn()-1:
				case of == reflect.TypeFor[func()]():
					in = append(in, reflect.ValueOf(func() {}))
				case of == reflect.TypeFor[func() error]():
					in = append(in, reflect.ValueOf(func() error { return nil }))
				case of == reflect.TypeFor[[]byte]():
					in = append(in, reflect.ValueOf(make([]byte, 8)))
				default:
					in = append(in, reflect.Zero(of))
				}
			}
			last, _ := reflect.TypeAssert[error](method.Func.Call(in)[n-1])
			require.Error(t, last)
		})
		refused++
	}
	assert.Greater(t, refused, 60)
}

// An address of page-locked memory is as far from the begin as the byte.
func TestAddressesInsidePageLockedMemory(t *testing.T) {
	dev := open(t, sim.Config{Bytes: true})
	memory := dev.(cudadrv.HostMemory)
	b, err := memory.MemHostAlloc(10_000)
	require.NoError(t, err)
	begin, err := memory.MemHostGetDevicePointer(b)
	require.NoError(t, err)
	for _, at := range []int{0, 1, 4096, 9_999} {
		p, err := memory.MemHostGetDevicePointer(b[at:])
		require.NoError(t, err)
		assert.Equal(t, begin+cudadrv.Ptr(at), p)
	}
	for _, none := range [][]byte{nil, b[10_000:], make([]byte, 8)} {
		_, err := memory.MemHostGetDevicePointer(none)
		require.ErrorIs(t, err, cudadrv.InvalidValue)
	}
	require.NoError(t, memory.MemFreeHost(b))
}

// Attributes of a function are set within their bounds.
func TestBoundsOfFunctionAttributes(t *testing.T) {
	dev := open(t, sim.Config{TimedKernels: true})
	kernels := dev.(cudadrv.Kernels)
	m, err := kernels.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.entry step(.param .u64 p) { ret; }"))
	require.NoError(t, err)
	f, err := kernels.ModuleGetFunction(m, "step")
	require.NoError(t, err)
	for _, c := range []struct {
		attribute cudadrv.FunctionAttribute
		value     int
		fine      bool
	}{
		{cudadrv.PreferredSharedCarveout, -2, false},
		{cudadrv.PreferredSharedCarveout, -1, true},
		{cudadrv.PreferredSharedCarveout, 0, true},
		{cudadrv.PreferredSharedCarveout, 100, true},
		{cudadrv.PreferredSharedCarveout, 101, false},
		{cudadrv.MaxDynamicSharedBytes, -1, false},
		{cudadrv.MaxDynamicSharedBytes, 0, true},
		{cudadrv.MaxThreadsPerBlock, 1, false},
	} {
		err := kernels.FuncSetAttribute(f, c.attribute, c.value)
		if c.fine {
			require.NoError(t, err, "%d", c.value)
			got, err := kernels.FuncGetAttribute(f, c.attribute)
			require.NoError(t, err)
			assert.Equal(t, c.value, got)
		} else {
			require.ErrorIs(t, err, cudadrv.InvalidValue, "%d", c.value)
		}
	}
}

// Only the whole text of an encoded tensor map is one.
func TestEncodedTensorMaps(t *testing.T) {
	dev := open(t, sim.Config{Bytes: true, TimedKernels: true})
	want := cudadrv.TensorMap{
		Ptr: 0x1000, Type: cudadrv.TensorFloat32, Rank: 1, Dims: [cudadrv.MaxTensorRank]int64{64}, Box: [cudadrv.MaxTensorRank]int32{64},
	}
	encoded, err := dev.(cudadrv.TensorMaps).TensorMapEncodeTiled(want)
	require.NoError(t, err)
	got, ok := sim.DecodeTensorMap(encoded[:])
	require.True(t, ok)
	assert.Equal(t, want.Ptr, got.Ptr)
	assert.Equal(t, want.Dims, got.Dims)
	_, ok = sim.DecodeTensorMap(encoded[1:])
	assert.False(t, ok, "it is too short")
	for _, at := range []int{0, 1, 2, 3, 4, 5, 6, 7, len(encoded) - 1} {
		other := encoded
		other[at]++
		_, ok := sim.DecodeTensorMap(other[:])
		assert.False(t, ok, "byte %d", at)
	}
	assert.True(t, slices.Equal(encoded[:8], []byte("vram map")))
}

func open(t *testing.T, config sim.Config) cudadrv.Device {
	t.Helper()
	dev, err := sim.New(config).Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev
}

// Each call refuses a name that names nothing, whichever of its arguments that is, and says which.
func TestEachNameThatNamesNothingIsRefused(t *testing.T) {
	dev := open(t, sim.Config{Bytes: true, TimedKernels: true}).(*sim.Device)
	s := newStream(t, dev)
	m, err := dev.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.entry step(.param .u64 p) { ret; }"))
	require.NoError(t, err)
	f, err := dev.ModuleGetFunction(m, "step")
	require.NoError(t, err)
	require.NoError(t, dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
	require.NoError(t, dev.LaunchKernel(f, oneThread, make([]byte, 8), s))
	g, err := dev.StreamEndCapture(s)
	require.NoError(t, err)
	x, err := dev.GraphInstantiate(g)
	require.NoError(t, err)
	nodes, err := dev.GraphGetNodes(g)
	require.NoError(t, err)
	timed, err := dev.EventCreateTimed()
	require.NoError(t, err)
	require.NoError(t, dev.EventRecord(timed, s))
	p, err := dev.MemAlloc(granule)
	require.NoError(t, err)
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	const none = 0xbad
	names := map[reflect.Type]any{
		reflect.TypeFor[cudadrv.Stream](): s, reflect.TypeFor[cudadrv.Event](): timed, reflect.TypeFor[cudadrv.Module](): m,
		reflect.TypeFor[cudadrv.Function](): f, reflect.TypeFor[cudadrv.Graph](): g, reflect.TypeFor[cudadrv.GraphExec](): x,
		reflect.TypeFor[cudadrv.GraphNode](): nodes[0], reflect.TypeFor[cudadrv.Handle](): h, reflect.TypeFor[cudadrv.Context](): dev.Context(),
	}
	others := map[reflect.Type]any{
		reflect.TypeFor[cudadrv.Ptr](): p, reflect.TypeFor[int64](): granule, reflect.TypeFor[cudadrv.Geometry](): oneThread,
		reflect.TypeFor[[]byte](): make([]byte, 8), reflect.TypeFor[string](): "step", reflect.TypeFor[func()](): func() {},
	}
	refused := 0
	for method := range reflect.TypeFor[*sim.Device]().Methods() {
		if n := method.Type.NumOut(); n == 0 || method.Type.Out(n-1) != reflect.TypeFor[error]() {
			continue
		}
		for wrong := 1; wrong < method.Type.NumIn(); wrong++ {
			if _, ok := names[method.Type.In(wrong)]; !ok || method.Name == "LaunchLibrary" { // no library stands for it
				continue
			}
			in := []reflect.Value{reflect.ValueOf(dev)}
			for p := 1; p < method.Type.NumIn(); p++ {
				of := method.Type.In(p)
				value, ok := names[of]
				switch {
				case p == wrong:
					in = append(in, reflect.ValueOf(uint64(none)).Convert(of))
					continue
				case !ok:
					value, ok = others[of]
				}
				switch {
				case ok:
					in = append(in, reflect.ValueOf(value))
				case !method.Type.IsVariadic() || p < method.Type.NumIn()-1:
					in = append(in, reflect.Zero(of))
				}
			}
			out := method.Func.Call(in)
			err, _ := reflect.TypeAssert[error](out[len(out)-1])
			want := cudadrv.InvalidHandle
			switch of := method.Type.In(wrong); {
			case of == reflect.TypeFor[cudadrv.Context]():
				want = cudadrv.InvalidContext
			case method.Name == "EndCapture", method.Name == "StreamEndCapture": // it has no capture
				want = cudadrv.IllegalState
			case of == reflect.TypeFor[cudadrv.Handle](), of == reflect.TypeFor[cudadrv.GraphNode]() && wrong > 1: // no node of the graph
				want = cudadrv.InvalidValue
			}
			require.ErrorIs(t, err, want, "%s, argument %d", method.Name, wrong)
			refused++
		}
	}
	assert.Greater(t, refused, 50)
}
