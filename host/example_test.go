package host_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/host"
)

// must ends the program on an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A batch is copied to the device from page-locked memory, which is freed before the copy has
// finished. The simulated device takes the GPU's place.
func Example() {
	device := must(sim.New(sim.Config{Bytes: true}).Open(0))
	stream := must(device.StreamCreate())
	weights := must(device.MemAlloc(1 << 20))

	cache := must(host.NewPageLocked(device, host.PoolConfig{KeepBytes: 64 << 20}))
	staging := must(host.Tracked(must(host.Limited(cache, host.Bounds{Bytes: 1 << 30}))))

	for range 3 {
		b := must(staging.Alloc(1<<20, 64))
		b.Bytes()[0] = 42
		_ = b.Use(stream)
		_ = device.(cudadrv.HostMemory).MemcpyHtoDAsync(weights, b.Bytes(), stream)
		fmt.Println(b)
		fmt.Println("free:", b.Free(), "again:", errors.Is(b.Free(), host.ErrDoubleFree))
	}
	fmt.Println("live:", staging.Stats().LiveBlocks, "at most:", staging.Stats().PeakBytes)
	fmt.Println("close:", staging.Close(context.Background()), device.Close())
	// Output:
	// block of 1 MiB of page-locked memory
	// free: <nil> again: true
	// block of 1 MiB of page-locked memory
	// free: <nil> again: true
	// block of 1 MiB of page-locked memory
	// free: <nil> again: true
	// live: 0 at most: 1048576
	// close: <nil> <nil>
}

// Programs choose where memory is by name.
func ExampleByName() {
	driver := sim.New(sim.Config{Bytes: true})
	for _, name := range []string{"cpu", "cuda:0", "cuda:0/pinned", "gpu"} {
		a, err := host.ByName(name, host.Options{Driver: driver})
		if err != nil {
			fmt.Println(err)
			continue
		}
		b := must(a.AllocZeroed(100, 0))
		fmt.Printf("%s: %v, %d bytes for Go\n", name, b, len(b.Bytes()))
		fmt.Println(b.Free(), a.Close(context.Background()))
	}
	// Output:
	// cpu: block of 100 B of pageable memory, 100 bytes for Go
	// <nil> <nil>
	// cuda:0: block of 100 B of device memory, 0 bytes for Go
	// <nil> <nil>
	// cuda:0/pinned: block of 100 B of page-locked memory, 100 bytes for Go
	// <nil> <nil>
	// host: allocator "gpu": unknown device, want cpu, cuda:N or cuda:N/pinned
}
