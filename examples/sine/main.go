// Command sine is the README's program: it computes the sine of three numbers on a GPU, or without one on the processor.
package main

import (
	"errors"
	"fmt"
	"log"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	_ "github.com/go-vram/vram/cudadrv/cpu" // the device without a GPU
)

const sine = `.version 7.0
.target sm_70
.address_size 64
.visible .entry sine(.param .u64 x) {
	.reg .b32 %i; .reg .b64 %p<3>; .reg .f32 %f;
	mov.u32 %i, %tid.x; mul.wide.u32 %p1, %i, 4; ld.param.u64 %p2, [x]; add.u64 %p1, %p1, %p2;
	ld.global.f32 %f, [%p1]; sin.approx.f32 %f, %f; st.global.f32 [%p1], %f; ret;
}`

func main() {
	c, err := cuda.Open(vram.Config{DriverName: "gpu-or-cpu"})
	if err != nil {
		log.Fatal(err)
	}
	values := []float32{1, 2, 3}
	q := c.NewQueue() // keeps the first error
	x := cuda.Push(q, values)
	q.Launch(q.Kernel(sine, "sine"), cuda.Cover(3, 3), cuda.InOut(x))
	cuda.Read(q, values, cuda.Whole(x))
	if err := errors.Join(q.Close(), c.Close()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f\n", values)
}
