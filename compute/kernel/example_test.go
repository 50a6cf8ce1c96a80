package kernel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// Expressions become one kernel each: an element-wise one, a softmax of rows, and a sum. vram.Config{} is the first GPU; here the
// simulated device executes the kernels.
func Example() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})}))
	c := must(cuda.NewContext(must(dev.NewStream())))

	kernels := must(kernel.NewCompiler(c))
	a, b := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
	scale := must(kernels.Elementwise(a.Mul(b).Add(a).Relu())) // relu(a*b+a)
	softmax := must(kernels.Reduction([]int{-1}, a.Softmax())) // of each row
	total := must(kernels.Reduction(plan.All, a.Sum()))        // of all elements

	check(tensor.Scoped(c, func(s *tensor.Scope) error {
		x := must(tensor.From(s, []float32{1, -2, 3, 4, -5, 6}, 2, 3))
		weights := must(tensor.From(s, []float32{0, 1, 2})) // for each row
		y, sum := must(tensor.New(s, tensor.Float32, 2, 3)), must(tensor.New(s, tensor.Float32))
		check(scale.Run(s, []*tensor.Tensor{y}, x, weights))
		fmt.Println(must(tensor.Read[float32](y)))
		check(softmax.Run(s, []*tensor.Tensor{y}, y)) // in place
		check(total.Run(s, []*tensor.Tensor{sum}, y))
		fmt.Println(must(tensor.Item[float32](sum)))
		return nil
	}))

	check(c.Synchronize(context.Background()))
	check(kernels.Close())
	check(c.Close())
	check(dev.Close())
	// Output:
	// [1 0 9 4 0 18]
	// 2
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
