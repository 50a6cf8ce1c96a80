package vram_test

import (
	"context"
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

func Example() {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	s, err := dev.NewStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := s.Alloc(64 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("x has", x.Bytes()>>20, "MiB")
	next := s.AllocAsync(context.Background(), 128<<20) // arrives while the kernel runs
	// launch(kernel, s.Handle(), x.Ptr(), x.Bytes())
	if err := x.Free(); err != nil { // stream-ordered: reusable on s at once
		fmt.Println(err)
		return
	}
	y, err := next.Await(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("y has", y.Bytes()>>20, "MiB")
	fmt.Println(y.Free(), dev.Close())
	// Output:
	// x has 64 MiB
	// y has 128 MiB
	// <nil> <nil>
}
