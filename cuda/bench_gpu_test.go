//go:build gpu

package cuda_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// rawLaunch returns the driver's function.
func rawLaunch(tb testing.TB) uintptr {
	tb.Helper()
	lib, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(tb, err)
	f, err := purego.Dlsym(lib, "cuLaunchKernel")
	require.NoError(tb, err)
	return f
}

func rawGraphLaunch(tb testing.TB) uintptr {
	tb.Helper()
	lib, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(tb, err)
	f, err := purego.Dlsym(lib, "cuGraphLaunch")
	require.NoError(tb, err)
	return f
}

// batchLaunches is after how many launches a benchmark waits for the device, off the clock: the queue holds 1024, and a launch
// that finds it full waits.
const batchLaunches = 400

// launches measures the host's time of a launch.
func launches(b *testing.B, c *cuda.Context, launch func()) {
	b.Helper()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		launch()
		if i%batchLaunches == batchLaunches-1 {
			b.StopTimer()
			require.NoError(b, c.Synchronize(context.Background()))
			b.StartTimer()
		}
	}
	require.NoError(b, c.Synchronize(context.Background()))
}

// inTurns measures the host's time of two ways to launch, a batch of one and then a batch of the other, so that other load of
// the machine meets both: the medians, and the median of the ratios.
func inTurns(b *testing.B, c *cuda.Context, raw, ours func()) {
	b.Helper()
	batch := func(launch func()) float64 {
		begun := time.Now()
		for range batchLaunches {
			launch()
		}
		took := time.Since(begun)
		require.NoError(b, c.Synchronize(context.Background()))
		return float64(took.Nanoseconds()) / batchLaunches
	}
	var raws, cudas, ratios []float64
	for i := 0; b.Loop(); i++ {
		var one, other float64
		if i%2 == 0 {
			one, other = batch(raw), batch(ours)
		} else {
			other, one = batch(ours), batch(raw)
		}
		raws, cudas, ratios = append(raws, one), append(cudas, other), append(ratios, other/one)
	}
	b.ReportMetric(median(raws), "raw-ns")
	b.ReportMetric(median(cudas), "cuda-ns")
	b.ReportMetric(median(ratios), "cuda/raw")
}

// median sorts its numbers.
func median(numbers []float64) float64 {
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}

// BenchmarkLaunch compares a launch with the driver's call through purego, and through cudadrv.
func BenchmarkLaunch(b *testing.B) {
	g, c := openGPU(b)
	d := g.context()
	x := g.alloc(c, 4096)
	foreign := g.alloc(d, 4096)
	stale := g.alloc(c, 4096)
	require.NoError(b, stale.Free())
	shape := cuda.Cover(1024, 256)
	raw := rawLaunch(b)
	frame := new(struct {
		p            uint64
		value, count uint32
		extra        [5]uintptr
		size         uintptr
	})
	frame.p, frame.count, frame.size = uint64(x.Ptr()), 1024, 16
	frame.extra = [5]uintptr{1, uintptr(unsafe.Pointer(&frame.p)), 2, uintptr(unsafe.Pointer(&frame.size)), 0}
	args := make([]uintptr, 11)
	stream := uintptr(c.Stream().Handle())
	b.Run("raw", func(b *testing.B) {
		launches(b, c, func() {
			copy(args, []uintptr{cuda.FunctionHandle(g.fill), 4, 1, 1, 256, 1, 1, 0, stream, 0, uintptr(unsafe.Pointer(&frame.extra))})
			purego.SyscallN(raw, args...)
		})
	})
	kernels := cuda.Kernels(c)
	params := make([]byte, 16)
	*(*uint64)(unsafe.Pointer(&params[0])) = uint64(x.Ptr())
	params[12] = 0
	params[13] = 4
	b.Run("cudadrv", func(b *testing.B) {
		launches(b, c, func() {
			_ = kernels.LaunchKernel(cudadrv.Function(cuda.FunctionHandle(g.fill)), shape, params, c.Stream().Handle())
		})
	})
	b.Run("cuda", func(b *testing.B) {
		launches(b, c, func() { _ = c.Launch(g.fill, shape, cuda.Out(x), cuda.Value(uint32(1)), cuda.Value(uint32(1024))) })
	})
	b.Run("in turns", func(b *testing.B) {
		inTurns(b, c, func() {
			copy(args, []uintptr{cuda.FunctionHandle(g.fill), 4, 1, 1, 256, 1, 1, 0, stream, 0, uintptr(unsafe.Pointer(&frame.extra))})
			purego.SyscallN(raw, args...)
		}, func() { _ = c.Launch(g.fill, shape, cuda.Out(x), cuda.Value(uint32(1)), cuda.Value(uint32(1024))) })
	})
	b.Run("cuda, 16 arguments", func(b *testing.B) {
		n, f := cuda.Value(uint32(1)), cuda.Value(float32(1))
		launches(b, c, func() {
			_ = c.Launch(g.sixth, shape, cuda.In(x), cuda.In(x), cuda.In(x), cuda.In(x), cuda.In(x), cuda.In(x), cuda.In(x), cuda.Out(x), n, n, n, n, f, f, f, f)
		})
	})
	b.Run("cuda, buffer of another stream", func(b *testing.B) {
		launches(b, c, func() {
			_ = c.Launch(g.fill, shape, cuda.Out(foreign), cuda.Value(uint32(1)), cuda.Value(uint32(1024)))
		})
	})
	b.Run("an event recorded and waited for", func(b *testing.B) {
		e, err := d.Record()
		require.NoError(b, err)
		launches(b, c, func() { _ = cuda.RecordAndWait(d, c, e) })
		require.NoError(b, e.Close())
	})
	b.Run("argument of another type", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if c.Launch(g.fill, shape, cuda.Out(x), cuda.Value(float32(1)), cuda.Value(uint32(1024))) == nil {
				b.Fatal("launched")
			}
		}
	})
	b.Run("packed", func(b *testing.B) {
		launches(b, c, func() { _ = c.LaunchPacked(g.fill, shape, params, cuda.Out(x)) })
	})
	b.Run("stale buffer", func(b *testing.B) {
		for b.Loop() {
			if c.Launch(g.fill, shape, cuda.Out(stale), cuda.Value(uint32(1)), cuda.Value(uint32(1024))) == nil {
				b.Fatal("launched")
			}
		}
	})
	require.NoError(b, c.Synchronize(context.Background()))
	require.NoError(b, x.Free())
	require.NoError(b, foreign.Free())
}

// BenchmarkGraphLaunch compares the launch of a graph with the driver's call through purego.
func BenchmarkGraphLaunch(b *testing.B) {
	g, c := openGPU(b)
	raw := rawGraphLaunch(b)
	for _, nodes := range []int{1, 10, 100} {
		x := g.alloc(c, 4096)
		graph, err := c.Capture(func() error {
			for range nodes {
				if err := c.Launch(g.fill, cuda.Cover(1024, 256), fillArgs(x, 1)...); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(b, err)
		require.NoError(b, graph.Launch(c))
		args := []uintptr{cuda.GraphHandle(graph), uintptr(c.Stream().Handle())}
		b.Run("nodes="+strconv.Itoa(nodes), func(b *testing.B) {
			inTurns(b, c, func() { purego.SyscallN(raw, args...) }, func() { _ = graph.Launch(c) })
		})
		require.NoError(b, graph.Close())
		require.NoError(b, x.Free())
	}
}
