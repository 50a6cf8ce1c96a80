package kernel_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/kernel/tune/tables"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// A list of kernels is compiled before it is needed.
func ExampleCompiler_WarmUp() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	kernels := must(kernel.NewCompiler(c, kernel.Threads(4)))
	x, l := expr.Input(0, tensor.Float32), must(layout.Of(1024))
	needs := []kernel.Need{
		{Kernel: must(kernels.Elementwise(x.Relu())), Layouts: []layout.Layout{l, l}},
		{Kernel: must(kernels.Elementwise(x.Gelu())), Layouts: []layout.Layout{l, l}},
	}
	ctx := context.Background()
	total := 0

	err := kernels.WarmUp(ctx, needs, func(p kernel.Progress) {
		fmt.Fprintf(os.Stderr, "%d of %d: %v in %v\n", p.Done, p.Of, p.Origin, p.Took) // 7 of 50: compiled in 5.3ms
		total = p.Done
	})

	check(err)
	fmt.Println("prepared", total, "compiled", kernels.Stats().Compiled)
	check(kernels.Close())
	check(c.Close())
	check(dev.Close())
	// Output: prepared 2 compiled 2
}

// Measured variants are kept as text, which a later process reads.
func ExampleKernel_Tune() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	folder := must(os.MkdirTemp("", "tables"))
	file := filepath.Join(folder, "kernels.txt")

	kernels := must(kernel.NewCompiler(c, kernel.WithTuning(kernel.Tuning{RotateBytes: 1 << 12, Rounds: 1})))
	check(tensor.Scoped(c, func(s *tensor.Scope) error {
		square := must(kernels.Elementwise(expr.Input(0, tensor.Float32).Square()))
		x := must(tensor.From(s, []float32{1, 2, 3}))
		rows := must(square.Tune(context.Background(), []*tensor.Tensor{x}, x))
		fmt.Println("verified:", rows[0].State == tune.Verified)
		return square.Run(s, []*tensor.Tensor{x}, x)
	}))
	check(os.WriteFile(file, []byte(kernels.Tuned().String()), 0o600))
	check(c.Synchronize(context.Background()))
	check(kernels.Close())

	mine := must(tune.Parse(string(must(os.ReadFile(file)))))
	kernels = must(kernel.NewCompiler(c, kernel.WithTables(mine, tables.Default())))

	fmt.Println("keys:", len(mine.Keys(mine.Devices()[0])))
	check(kernels.Close())
	check(c.Close())
	check(dev.Close())
	check(os.RemoveAll(folder))
	// Output:
	// verified: true
	// keys: 1
}
