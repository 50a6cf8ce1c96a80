package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Names are read as they are written, and nothing else is a name.
func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Name{
		"cpu": {}, "cuda:0": {CUDA: true}, "cuda:12": {CUDA: true, Ordinal: 12},
		"cuda:3/pinned": {CUDA: true, Ordinal: 3, Pinned: true},
	} {
		n, err := ParseName(text)
		require.NoError(t, err)
		assert.Equal(t, want, n)
		assert.Equal(t, text, n.String())
	}
	for _, text := range []string{
		"", "CPU", "cpu:0", "cpu/pinned", "cuda", "cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda:x", "cuda:1.0", "cuda:70000",
		"cuda:0/", "cuda:0/pin", "cuda:/pinned", "cuda:0/pinned/", " cuda:0", "cuda:0 ",
	} {
		var refused *NameError
		_, err := ParseName(text)
		require.ErrorAs(t, err, &refused, text)
		assert.Equal(t, text, refused.Name)
		_, err = ByName(text, Options{})
		require.ErrorAs(t, err, &refused, text)
	}
}

// An allocator by name keeps the promises of the interface, and its Close closes the device.
func TestAllocatorsByName(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]Kind{"cpu": Pageable, "cuda:0": Device, "cuda:0/pinned": PageLocked} {
		simulator := sim.New(sim.Config{Bytes: true, TotalBytes: 1 << 30})
		a, err := ByName(name, Options{Driver: simulator, KeepBytes: 1 << 20})
		require.NoError(t, err)
		assert.Equal(t, kind, a.Kind())
		b, other := alloc(t, a, 1000, 4096), alloc(t, a, 10, 0)
		zeros, err := a.AllocZeroed(10, 0)
		require.NoError(t, err)
		require.NoError(t, FreeAll(b, zeros))
		require.ErrorIs(t, a.Close(t.Context()), ErrLeak)
		free(t, other) // the device is open still
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, a.Close(t.Context()))
		_, err = a.Alloc(1, 0)
		require.ErrorIs(t, err, ErrClosed)
		counts := simulator.Device(0).Counts()
		assert.Equal(t, counts["cuMemHostAlloc"], counts["cuMemFreeHost"])
		assert.Equal(t, counts["cuMemCreate"], counts["cuMemRelease"])
		assert.Equal(t, counts["cuStreamCreate"], counts["cuStreamDestroy"])
	}
}

// The place of a buffer is the caller of the allocator by name, whichever of its methods allocates.
func TestThePlaceOfABufferByName(t *testing.T) {
	t.Parallel()
	var places []string
	a, err := ByName("cuda:0", Options{Driver: sim.New(sim.Config{}), Device: vram.Config{Observer: vram.Observer{
		Allocated: func(e vram.BufferEvent) { places = append(places, e.Place.String()) },
	}}})
	require.NoError(t, err)
	for _, request := range []func(bytes, align int64) (Block, error){a.Alloc, a.AllocZeroed} {
		b, err := request(1000, 0)
		require.NoError(t, err)
		free(t, b)
	}
	require.NoError(t, a.Close(t.Context()))
	require.Len(t, places, 2)
	for _, place := range places {
		assert.Regexp(t, `^host\.TestThePlaceOfABufferByName \(name_test\.go:\d+\)$`, place)
	}
}

// Failures to open are the driver's, and leave nothing open.
func TestAllocatorsThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cuda:1", "cuda:1/pinned"} {
		_, err := ByName(name, Options{Driver: sim.New(sim.Config{})})
		require.ErrorIs(t, err, vram.ErrNoDevice)
	}
	var missing *CapabilityError
	bare := sim.New(sim.Config{})
	_, err := ByName("cuda:0/pinned", Options{Driver: bare})
	require.ErrorAs(t, err, &missing, "a simulated device without bytes")
	assert.Empty(t, bare.Device(0).Objects())
	var bad *ConfigError
	_, err = ByName("cpu", Options{KeepBytes: -1})
	require.ErrorAs(t, err, &bad)
	for _, function := range []string{"cuDevicePrimaryCtxRetain", "cuStreamCreate"} {
		machine := sim.New(sim.Config{})
		driver := fault.Wrap(machine)
		require.NoError(t, driver.Add(fault.Rule{Func: function, Result: cudadrv.LaunchFailed}))
		_, err = ByName("cuda:0", Options{Driver: driver})
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		assert.Empty(t, machine.Device(0).Objects())
	}
	_, err = OfStream(nil)
	require.ErrorIs(t, err, vram.ErrNotOpen)
}

// The bound of a cache is the caller's.
func TestTheBoundOfANamedCache(t *testing.T) {
	t.Parallel()
	a, err := ByName("cuda:0/pinned", Options{Driver: sim.New(sim.Config{Bytes: true}), KeepBytes: 8192})
	require.NoError(t, err)
	for _, b := range []Block{alloc(t, a, 4096, 0), alloc(t, a, 4096, 0), alloc(t, a, 4096, 0)} {
		free(t, b)
	}
	assert.EqualValues(t, 8192, a.Stats().KeptBytes)
	require.NoError(t, a.Close(t.Context()))
}
