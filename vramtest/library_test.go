package vramtest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// absent is what a library's wrapper does where there is no library.
func absent(cudadrv.Device, cudadrv.Stream) error { return errors.New("the library is absent") }

// saxpy stands in for a routine of a library: y = a x + y of the elements of x, with a count by value.
func saxpy(c *vramtest.LibraryCall) error {
	n, a := vramtest.Scalar[int32](c, 0), vramtest.Scalar[float32](c, 1)
	x, y := vramtest.Slice[float32](c, 2), vramtest.Slice[float32](c, 3)
	if len(x) < int(n) || len(y) < int(n) {
		return errors.New("saxpy: buffers are too short")
	}
	for i := range n {
		y[i] += a * x[i]
	}
	return nil
}

// stood opens a device with functions that stand in for libraries.
func stood(t *testing.T, options ...vramtest.Option) (*vramtest.Device, *cuda.Context) {
	t.Helper()
	dev := vramtest.Open(t, options...)
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	return dev, c
}

// callSaxpy is the wrapper of a program.
func callSaxpy(c *cuda.Context, n int32, a float32, x, y cuda.Arg) error {
	return c.LaunchWith("cublasSaxpy", absent, cuda.Value(n), cuda.Value(a), x, y)
}

// The stand-in computes in the order of the stream, also between streams, and over pages that lie in several places.
func TestALibraryStandsInItsPlaceOfTheStream(t *testing.T) {
	const n = 3 << 20 / 4 * 2 // 6 MiB: several mappings
	_, c := stood(t, vramtest.Library("cublasSaxpy", saxpy), vramtest.Machine(sim.Config{GranularityBytes: 2 << 20}))
	x, y := buffer(t, c, 4*n), buffer(t, c, 4*n)
	xs := make([]float32, n)
	for i := range xs {
		xs[i] = float32(i % 1000)
	}
	require.NoError(t, cuda.CopyIn(c, x, xs))
	require.NoError(t, c.Fill32(cuda.Whole(y), 0))
	require.NoError(t, callSaxpy(c, n, 2, cuda.In(x), cuda.InOut(y)))
	require.NoError(t, c.Copy(cuda.Whole(x), cuda.Whole(y))) // x = 2 x, after the work
	require.NoError(t, callSaxpy(c, n, 1, cuda.In(x), cuda.InOut(y)))
	got := make([]float32, n)
	require.NoError(t, cuda.CopyOut(c, got, y))
	for _, i := range []int{0, 1, 999, 1001, n / 2, n - 1} {
		require.InDelta(t, 4*float32(i%1000), got[i], 0, i)
	}
	require.NoError(t, errors.Join(x.Free(), y.Free(), c.Close()))
}

// A graph runs the stand-in at each launch, and not in the capture.
func TestALibraryStandsInInGraphs(t *testing.T) {
	calls := 0
	_, c := stood(t, vramtest.Library("twice", func(call *vramtest.LibraryCall) error {
		calls++
		for i, x := range vramtest.Slice[uint16](call, 0) {
			vramtest.Slice[uint16](call, 0)[i] = 2 * x
		}
		return nil
	}))
	x := buffer(t, c, 64)
	require.NoError(t, c.Fill16(cuda.Whole(x), 1))
	graph, err := c.Capture(func() error { return c.LaunchWith("twice", absent, cuda.InOut(x).Of(2, 60)) })
	require.NoError(t, err)
	require.Zero(t, calls)
	for range 3 {
		require.NoError(t, graph.Launch(c))
	}
	got := make([]uint16, 32)
	require.NoError(t, cuda.CopyOut(c, got, x))
	assert.Equal(t, 3, calls)
	assert.Equal(t, []uint16{1, 8, 8}, got[:3], "the part begins at the second")
	assert.Equal(t, []uint16{8, 1}, got[30:], "and ends before the last")
	require.NoError(t, errors.Join(graph.Close(), x.Free(), c.Close()))
}

// Work of a library that has no stand-in calls the library.
func TestALibraryWithoutAStandIn(t *testing.T) {
	_, c := stood(t, vramtest.Library("cublasSaxpy", saxpy))
	require.ErrorContains(t, c.LaunchWith("cufft", absent), "the library is absent")
	require.NoError(t, c.Close())
}

// Any number of libraries have stand-ins, in any order of the options, and kernels are executed as Kernels says.
func TestLibrariesAndKernels(t *testing.T) {
	fill := func(value uint32) func(*vramtest.LibraryCall) error {
		return func(call *vramtest.LibraryCall) error {
			vramtest.Slice[uint32](call, 0)[1] = value
			return nil
		}
	}
	ones, twos := vramtest.Library("ones", fill(1)), vramtest.Library("twos", fill(2))
	ignoring := vramtest.Kernels(vramtest.KernelConfig{Ignore: []interp.Kind{interp.Uninitialised}})
	for i, options := range [][]vramtest.Option{{ones, twos, ignoring}, {ones, ignoring, twos}, {ignoring, ones, twos}} {
		_, c, f := kernels(t, options...)
		x, to, unwritten := buffer(t, c, 16), buffer(t, c, 16), buffer(t, c, 16)
		require.NoError(t, c.Fill32(cuda.Whole(x), 7))
		for _, library := range []string{"ones", "twos"} {
			require.NoError(t, c.LaunchWith(library, absent, cuda.Out(x).Of(4, 12)))
		}
		got := make([]uint32, 4)
		require.NoError(t, cuda.CopyOut(c, got, x))
		assert.Equal(t, []uint32{7, 7, 2, 7}, got, "what an Out argument had stays where the function leaves it: %d", i)
		copies(t, c, f, cuda.Out(to), cuda.In(unwritten), 4)
		require.NoError(t, c.Synchronize(t.Context()), "Kernels counts in any place: %d", i)
		require.NoError(t, errors.Join(x.Free(), to.Free(), unwritten.Free(), c.Close()))
	}
}

// mapped maps memory of the test's own in pieces: their bytes lie in several places of the host.
func mapped(t *testing.T, dev *vramtest.Device, pieces int) (p cudadrv.Ptr, bytes int64) {
	t.Helper()
	const piece = sim.DefaultGranularityBytes
	gpu, bytes := dev.GPU(), int64(pieces)*piece
	p, err := gpu.MemAddressReserve(bytes)
	require.NoError(t, err)
	for n := range pieces {
		h, err := gpu.MemCreate(piece)
		require.NoError(t, err)
		require.NoError(t, gpu.MemMap(p+cudadrv.Ptr(int64(n)*piece), piece, h)) //nolint:gosec // not negative
	}
	require.NoError(t, gpu.MemSetAccess(p, bytes))
	return p, bytes
}

// reads queues work of a library that reads memory, after a number by value.
func reads(dev *vramtest.Device, s cudadrv.Stream, p cudadrv.Ptr, bytes int64) error {
	return dev.GPU().WorkTouching(cudadrv.LibraryWork{
		Library: "library", Arguments: []cudadrv.LibraryArgument{{Value: []byte{1}}, {Ptr: p, Bytes: bytes, Read: true}},
	}, s, func() error { return absent(nil, s) })
}

// A change of memory that is declared In is a fault, whichever byte of whichever mapping it is.
func TestAnyByteOfAnInArgument(t *testing.T) {
	const pieces = 3
	for n := range pieces {
		dev, _ := stood(t, vramtest.Expected(), vramtest.Library("library", func(call *vramtest.LibraryCall) error {
			bytes := vramtest.Slice[uint8](call, 1)
			bytes[n*(len(bytes)-1)/(pieces-1)]++
			return nil
		}))
		s := dev.Stream().Handle()
		p, bytes := mapped(t, dev, pieces)
		require.NoError(t, dev.GPU().MemsetD8Async(p, 1, bytes, s))
		require.NoError(t, reads(dev, s, p, bytes))
		require.Error(t, dev.GPU().StreamSynchronize(s))
		require.Len(t, dev.Faults(), 1)
		require.ErrorContains(t, dev.Faults()[0], "it changed argument 1, which is declared In", n)
		_ = dev.Close() // every call fails
	}
}

// Work whose memory was unmapped before its turn is a fault as an access of a kernel is.
func TestALibraryWhoseMemoryIsGone(t *testing.T) {
	calls := 0
	dev, _ := stood(t, vramtest.Library("library", func(*vramtest.LibraryCall) error {
		calls++
		return nil
	}), vramtest.Expected())
	stream := dev.Stream()
	s := stream.Handle()
	p, bytes := mapped(t, dev, 1)
	require.NoError(t, dev.GPU().MemsetD8Async(p, 1, bytes, s))
	require.NoError(t, reads(dev, s, p, bytes))
	require.NoError(t, dev.GPU().StreamSynchronize(s), "its memory is there")
	dev.Launch(stream, time.Millisecond) // that the work waits for
	require.NoError(t, reads(dev, s, p, bytes))
	require.NoError(t, dev.GPU().MemUnmap(p, bytes))
	require.Error(t, dev.GPU().StreamSynchronize(s))
	assert.Equal(t, 1, calls, "the function is not called without its memory")
	require.Len(t, dev.Faults(), 1)
	var failed *vramtest.LibraryError
	require.ErrorAs(t, dev.Faults()[0], &failed)
	assert.Equal(t, cudadrv.IllegalAddress, failed.Result())
	require.ErrorContains(t, failed, "argument 1: its memory is not mapped")
	_ = dev.Close() // every call fails
}

// What a stand-in does wrong is a fault, with the library's name.
func TestFaultsOfLibraries(t *testing.T) {
	failing := errors.New("no plan")
	for text, compute := range map[string]func(*vramtest.LibraryCall) error{
		"no plan": func(*vramtest.LibraryCall) error { return failing },
		"it changed argument 0, which is declared In": func(c *vramtest.LibraryCall) error {
			vramtest.Slice[uint8](c, 0)[63] = 7
			return nil
		},
		"it changed argument 3, which is declared In": func(c *vramtest.LibraryCall) error {
			vramtest.Slice[uint8](c, 3)[0] = 7
			return nil
		},
		"there is no argument 4 of 4": func(c *vramtest.LibraryCall) error {
			assert.Nil(t, vramtest.Slice[uint8](c, 4))
			assert.Nil(t, vramtest.Slice[uint8](c, -1), "the first misuse is the fault")
			assert.Equal(t, 4, c.Arguments())
			return nil
		},
		"argument 2 is a value":  func(c *vramtest.LibraryCall) error { vramtest.Slice[uint8](c, 2); return nil },
		"argument 0 is a buffer": func(c *vramtest.LibraryCall) error { vramtest.Scalar[uint64](c, 0); return nil },
		"argument 2 has 4 bytes, and the number has 8": func(c *vramtest.LibraryCall) error {
			assert.Zero(t, vramtest.Scalar[float64](c, 2))
			return nil
		},
		"argument 2 has 4 bytes, and the number has 2": func(c *vramtest.LibraryCall) error {
			assert.Zero(t, vramtest.Scalar[uint16](c, 2))
			return nil
		},
		"argument 1 has 62 bytes, and elements have 4": func(c *vramtest.LibraryCall) error {
			assert.Nil(t, vramtest.Slice[float32](c, 1))
			return nil
		},
	} {
		dev, c := stood(t, vramtest.Library("library", compute), vramtest.Expected())
		x, y := buffer(t, c, 64), buffer(t, c, 64)
		require.NoError(t, c.Fill8(cuda.Whole(x), 1))
		require.NoError(t, c.LaunchWith("library", absent, cuda.In(x), cuda.Out(y).Of(0, 62), cuda.Value(uint32(1)), cuda.In(x)))
		require.Error(t, c.Synchronize(t.Context()))
		require.Len(t, dev.Faults(), 1, text)
		var failed *vramtest.LibraryError
		require.ErrorAs(t, dev.Faults()[0], &failed)
		assert.Equal(t, "library", failed.Library)
		assert.Contains(t, failed.Error(), "the stand-in for library: "+text+"; launched at ")
		assert.Contains(t, failed.Error(), "library_test.go:")
		assert.Equal(t, cudadrv.LaunchFailed, failed.Result())
		assert.Equal(t, text == failing.Error(), errors.Is(failed, failing))
		_ = dev.Close() // every call fails
	}
}

// Memory that a library writes counts as written, and memory that it reads in another order is a hazard.
func TestAccessesOfLibraries(t *testing.T) {
	dev, c := stood(t, vramtest.Library("fill", func(call *vramtest.LibraryCall) error {
		for i := range vramtest.Slice[uint32](call, 0) {
			vramtest.Slice[uint32](call, 0)[i] = 5
		}
		return nil
	}), vramtest.Expected())
	m, err := c.LoadModule([]byte(ptxOfCopy))
	require.NoError(t, err)
	f, err := m.Function("copy")
	require.NoError(t, err)
	x, to := buffer(t, c, 256), buffer(t, c, 256)
	require.NoError(t, c.LaunchWith("fill", absent, cuda.Out(x)))
	copies(t, c, f, cuda.Out(to), cuda.In(x), 64)
	got := make([]uint32, 64)
	require.NoError(t, cuda.CopyOut(c, got, to))
	assert.Equal(t, uint32(10), got[63], "the kernel adds 5")
	assert.Empty(t, dev.Faults())
	assert.Empty(t, dev.Hazards())

	other := dev.Stream() // its work is not ordered after the library's
	require.NoError(t, c.LaunchWith("fill", absent, cuda.Out(x)))
	dev.Launch(other, 1, vramtest.Reads(x))
	assert.NotEmpty(t, dev.Hazards())
	require.NoError(t, errors.Join(x.Free(), to.Free(), c.Close()))
}
