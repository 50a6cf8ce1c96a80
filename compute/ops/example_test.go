package ops_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// A layer of a network and its loss. vram.Config{} is the first GPU; here the simulated device executes the kernels.
func Example() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	o := must(ops.New(c))

	check(tensor.Scoped(c, func(s *tensor.Scope) error {
		x := must(tensor.From(s, []float32{1, 2, 3, -1, 0, 1}, 2, 3))
		weight := must(tensor.From(s, []float32{1, 0, 0, 1, 1, 1}, 3, 2))
		bias := must(tensor.From(s, []float32{-1, 0.5}))
		targets := must(tensor.From(s, []int64{0, 1}))

		product, _, err := o.Matmul(s, x, weight, ops.Product{})
		check(err)
		logits := must(o.Add(s, product, bias)) // broadcast
		check(o.ReluInto(s, logits, logits))    // in place
		fmt.Println(must(tensor.Read[float32](logits)))

		loss := must(o.Mean(s, must(o.CrossEntropy(s, logits, targets)), false))
		fmt.Printf("%.4f\n", must(tensor.Item[float32](loss)))
		fmt.Println(must(tensor.Read[int64](must(o.ArgMax(s, logits, false, -1)))))
		return nil
	}))

	check(c.Synchronize(context.Background()))
	check(o.Close())
	check(c.Close())
	check(dev.Close())
	// Output:
	// [3 5.5 0 1.5]
	// 1.3902
	// [1 1]
}

// step is the work of a service.
func step(o ops.Ops, s *tensor.Scope) error {
	x, err := o.Fill(s, tensor.Float32, 2, 8, 8)
	if err != nil {
		return err
	}
	_, err = o.Softmax(s, x, -1)
	return err
}

// A service runs its work once, which compiles all kernels, and compiles nothing after that.
func Example_freeze() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	o := must(ops.New(c))

	check(tensor.Scoped(c, func(s *tensor.Scope) error {
		x := must(tensor.Zeros(s, tensor.Float32, 8))
		check(step(o, s)) // all calls, with the shapes that will be used
		o.Kernels().Freeze()
		check(step(o, s))
		_, err := o.Exp(s, x) // was not run: kernel.ErrNotPrepared
		fmt.Println(errors.Is(err, kernel.ErrNotPrepared))
		return nil
	}))

	check(c.Synchronize(context.Background()))
	check(o.Close())
	check(c.Close())
	check(dev.Close())
	// Output: true
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
