package tensor_test

import (
	"fmt"
	"log"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A matrix is viewed and copied in a scope, which frees both.
func Example() {
	dev := ok(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))
	c := ok(cuda.NewContext(ok(dev.NewStream())))

	check(tensor.Scoped(c, func(s *tensor.Scope) error {
		x := ok(tensor.From(s, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
		columns := ok(x.Transpose(0, 1))       // a view: the same memory
		packed := ok(tensor.Clone(s, columns)) // contiguous, in memory of its own
		check(tensor.Fill(s, x, float32(0)))   // and columns with it
		fmt.Println(ok(tensor.Read[float32](packed)))
		fmt.Println(columns)                    // prints no values, and copies nothing
		return tensor.Fprint(os.Stdout, packed) // reads them
	}))

	check(c.Close())
	check(dev.Close())
	// Output:
	// [1 4 2 5 3 6]
	// float32[3 2] on GPU 0, a view
	// [[1. 4.]
	//  [2. 5.]
	//  [3. 6.]]
	// float32[3 2] on GPU 0
}

// A function makes its tensors in a scope of its own, and keeps the result for the caller's.
func ExampleScope_Keep() {
	dev := ok(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))
	c := ok(cuda.NewContext(ok(dev.NewStream())))

	// side by side has the columns of both.
	sideBySide := func(at tensor.Context, a, b *tensor.Tensor) (joined *tensor.Tensor, err error) {
		err = tensor.Scoped(at, func(s *tensor.Scope) error {
			joined, err = tensor.New(s, a.Type(), a.Dim(0), a.Dim(1)+b.Dim(1))
			if err != nil {
				return err
			}
			left, err := joined.Narrow(1, 0, a.Dim(1))
			if err != nil {
				return err
			}
			right, err := joined.Narrow(1, a.Dim(1), b.Dim(1))
			if err != nil {
				return err
			}
			if err := tensor.Copy(s, left, a); err != nil {
				return err
			}
			if err := tensor.Copy(s, right, b); err != nil {
				return err
			}
			return s.Keep(joined) // anything else that was made in s is freed
		})
		return joined, err
	}

	check(tensor.Scoped(c, func(s *tensor.Scope) error {
		a := ok(tensor.From(s, []int32{1, 2, 3, 4}, 2, 2))
		b := ok(tensor.From(s, []int32{5, 6}, 2, 1))
		return tensor.Fprint(os.Stdout, ok(sideBySide(s, a, b)))
	}))

	check(c.Close())
	check(dev.Close())
	// Output:
	// [[1 2 5]
	//  [3 4 6]]
	// int32[2 3] on GPU 0
}

// Each mistake is an error with the shapes.
func Example_errors() {
	dev := ok(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))
	c := ok(cuda.NewContext(ok(dev.NewStream())))

	x := ok(tensor.Zeros(c, tensor.Float32, 2, 3))
	columns := ok(x.Transpose(0, 1))
	_, err := columns.Reshape(6)
	fmt.Println(err)
	fmt.Println(tensor.Copy(c, x, columns))
	fmt.Println(columns.Free())
	check(x.Free())
	_, err = tensor.Read[float32](columns)
	fmt.Println(err)

	check(c.Close())
	check(dev.Close())
	// Output:
	// tensor: reshape [3 2] strides [1 3] offset 0 to [6]: no strides make this view, a copy is needed
	// tensor: copy [2 3] and [3 2]
	// tensor: free float32[3 2] on GPU 0, a view: a view does not own its storage
	// tensor: read float32[3 2] on GPU 0, a view, freed: the storage was freed
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ok[T any](value T, err error) T {
	check(err)
	return value
}
