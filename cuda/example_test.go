package cuda_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	_ "github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/sim"
)

const ptxOfScale = `.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n) {
	.reg .pred %p; .reg .f32 %f<3>; .reg .b32 %r<5>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [x]; ld.param.f32 %f1, [by]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %d2, %r2, 4;
	add.u64 %d1, %d1, %d2;
	ld.global.f32 %f2, [%d1];
	mul.f32 %f2, %f2, %f1;
	st.global.f32 [%d1], %f2;
	ret;
}`

// A kernel from PTX is launched on a buffer. This device computes without a GPU.
func Example() {
	values := []float32{1, 2, 3}
	n := len(values)

	c := must(cuda.Open(vram.Config{DriverName: "cpu"})) // a device, a stream and a context; vram.Config{} is the first GPU
	scale := must(c.Kernel(ptxOfScale, "scale"))         // (float *x, float by, unsigned n); the driver compiles the text
	x := must(cuda.From(c, values))                      // a vram.Buffer
	check(c.Launch(scale, cuda.Cover(n), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(n))))
	values = must(cuda.Load[float32](c, cuda.Whole(x), n)) // waits
	check(x.Free())
	fmt.Println(values)

	err := c.Launch(scale, cuda.Cover(n), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(n)))
	fmt.Println(errors.Is(err, cuda.ErrNotLive)) // its text has the argument, and where the buffer was freed
	check(c.Close())
	// Output:
	// [2 4 6]
	// true
}

// The calls of a queue return no error: the first one is kept, and nothing is submitted after it.
func ExampleQueue() {
	c := must(cuda.Open(vram.Config{DriverName: "cpu"}))
	values := []float32{1, 2, 3}
	q := c.NewQueue()
	x := cuda.Push(q, values)
	scale := q.Kernel(ptxOfScale, "scale")
	q.Launch(scale, cuda.Cover(3), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(3)))
	cuda.Read(q, values, cuda.Whole(x))
	q.Launch(scale, cuda.Cover(3), cuda.InOut(x)) // arguments are missing
	q.Fill8(cuda.Whole(x), 1)                     // not submitted
	fmt.Println(values, errors.Is(q.Err(), cuda.ErrArgumentCount))
	_ = q.Close() // frees x; it returns the error of Err
	check(c.Close())
	// Output:
	// [2 4 6] true
}

// A graph is captured once and launched many times. It keeps the memory that it touches until it is closed.
func ExampleContext_Capture() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))
	c := must(cuda.NewContext(must(dev.NewStream())))
	in, out := must(c.Alloc(4096)), must(c.Alloc(4096))

	g, err := c.Capture(func() error {
		tmp, err := c.Alloc(4096) // from the graph's hold
		if err != nil {
			return err
		}
		if err := c.Copy(cuda.Whole(tmp), cuda.Whole(in)); err != nil {
			return err
		}
		if err := c.Copy(cuda.Whole(out), cuda.Whole(tmp)); err != nil {
			return err
		}
		return tmp.Free() // and back to it
	})
	check(err)
	for value := range uint8(3) {
		check(c.Fill8(cuda.Whole(in), value))
		check(g.Launch(c))
		result := make([]uint8, 1)
		check(cuda.CopyOut(c, result, out))
		fmt.Println(result[0])
	}
	check(g.Close())

	check(in.Free())
	check(out.Free())
	check(c.Close())
	check(dev.Close())
	// Output:
	// 0
	// 1
	// 2
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
