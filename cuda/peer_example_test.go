package cuda_test

import (
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A buffer moves from device to device, as activations do between the stages of a pipeline.
func ExampleContext_TransferPeer() {
	driver := sim.New(sim.Config{Devices: 3, Bytes: true})
	var at *cuda.Context
	var x cuda.Buffer
	for ordinal := range 3 {
		dev := must(vram.Open(vram.Config{Driver: driver, Ordinal: ordinal}))
		defer dev.Close()
		c := must(cuda.NewContext(must(dev.NewStream())))
		defer c.Close()
		if at == nil {
			x = must(c.Alloc(4))
			check(cuda.CopyIn(c, x, []byte{1, 2, 3, 4}))
		} else {
			x = must(c.TransferPeer(at, x)) // what it was before is freed
		}
		at = c
	}
	got := make([]byte, 4)
	check(cuda.CopyOut(at, got, x))
	fmt.Println("on device", at.Info().Ordinal, got)
	check(x.Free())
	// Output: on device 2 [1 2 3 4]
}
