package sleep_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The weights of a model sleep while another program needs the GPU. vram.Config{} is the first GPU.
func Example() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	weights := []float32{1, 2, 3}
	ctx := context.Background()

	a := must(sleep.New(c, sleep.Options{}))
	w := must(a.Alloc(int64(4 * len(weights)))) // a vram.Buffer
	check(cuda.CopyIn(c, w, weights))
	check(a.Sleep(ctx, sleep.Save)) // waits for work on w, saves its bytes, gives the memory back
	err := cuda.CopyIn(c, w, weights)
	fmt.Println(errors.Is(err, cuda.ErrAsleep), dev.Stats().SleepingBytes>>20, "MiB")
	check(a.Wake(ctx)) // w is at the same address, with the same bytes

	got := make([]float32, len(weights))
	check(cuda.CopyOut(c, got, w))
	fmt.Println(got)
	check(w.Free())
	check(a.Close())
	check(c.Close())
	check(dev.Close())
	// Output:
	// true 2 MiB
	// [1 2 3]
}

func must[T any](x T, err error) T {
	check(err)
	return x
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
