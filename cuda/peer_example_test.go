package cuda_test

import (
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A buffer moves from device to device, as activations do between the stages of a pipeline.
func ExampleContext_TransferPeer() {
	set := must(vram.OpenAll(vram.Config{Driver: sim.New(sim.Config{Devices: 3, Bytes: true})}))
	var stages []*cuda.Context
	for _, dev := range set.Devices() {
		stages = append(stages, must(cuda.NewContext(must(dev.NewStream()))))
	}
	x := must(stages[0].Alloc(4))
	check(cuda.CopyIn(stages[0], x, []int8{1, 2, 3, 4}))
	for i, c := range stages[1:] {
		x = must(c.TransferPeer(stages[i], x)) // the old buffer is freed
	}
	last, got := stages[len(stages)-1], make([]int8, 4)
	check(cuda.CopyOut(last, got, x))
	fmt.Println("on device", last.Info().Ordinal, got)
	check(x.Free())
	check(set.Close())
	// Output: on device 2 [1 2 3 4]
}

// Kernels of one device work on memory of another one.
func ExampleContext_Launch_peer() {
	set := must(vram.OpenAll(vram.Config{Driver: sim.New(sim.Config{Devices: 2})}))
	c := must(cuda.NewContext(must(set.Devices()[0].NewStream())))
	home := must(cuda.NewContext(must(set.Devices()[1].NewStream())))
	kernel := must(must(c.LoadModule([]byte(ptx))).Function("touch"))
	check(set.Devices()[0].EnablePeerAccess(set.Devices()[1]))
	x := must(home.Alloc(4 << 20)) // of device 1
	check(c.Launch(kernel, cuda.Cover(1<<20, 256), cuda.InOut(x)))
	check(x.Free()) // after the launch
	fmt.Println("launched on device", c.Info().Ordinal)
	check(set.Close())
	// Output: launched on device 0
}
