package store_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// The second compiler takes the first one's code. store.Config{} is the folder of the user; vram.Config{} is the first GPU.
func Example() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	config := store.Config{Folder: must(os.MkdirTemp("", "kernels"))}

	for range 2 {
		kept := store.Open(config)
		kernels := must(kernel.NewCompiler(c, kernel.WithStore(kept.On(c.Info()))))
		square := must(kernels.Elementwise(expr.Input(0, tensor.Float32).Square()))
		check(tensor.Scoped(c, func(s *tensor.Scope) error {
			x := must(tensor.From(s, []float32{1, 2, 3}))
			return square.Run(s, []*tensor.Tensor{x}, x)
		}))
		fmt.Println("compiled", kernels.Stats().Compiled, "found", kept.Stats().Hits)
		check(c.Synchronize(context.Background()))
		check(kernels.Close())
	}

	check(c.Close())
	check(dev.Close())
	check(os.RemoveAll(config.Folder))
	// Output:
	// compiled 1 found 0
	// compiled 0 found 1
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
