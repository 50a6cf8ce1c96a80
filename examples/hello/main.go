// Command hello allocates on the simulated device, and makes two mistakes that are caught.
package main

import (
	"fmt"
	"log"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

func main() {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{})})) // vram.Config{} is the first NVIDIA GPU
	s := must(dev.NewStream())
	x := must(s.Alloc(64 << 20)) // kernels on s.Handle() may use x.Ptr()
	fmt.Println("x:", x.Bytes(), "bytes")
	fmt.Println("free x:", x.Free()) // the last kernel that uses x has been submitted
	y := must(s.Alloc(64 << 20))     // the same memory again: three atomic operations, no call of the driver
	fmt.Println("free x again:", x.Free())
	fmt.Println("y:", y.Bytes(), "bytes")
	fmt.Println("close:", dev.Close())
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
