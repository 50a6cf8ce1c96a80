// Command hello opens the first GPU, allocates and frees. It is the shortest program that uses what vram is for, and is
// built to be weighed.
package main

import (
	"fmt"
	"os"

	"github.com/go-vram/vram"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	device, err := vram.Open(vram.Config{})
	if err != nil {
		return err
	}
	defer func() {
		if closed := device.Close(); err == nil {
			err = closed
		}
	}()
	stream, err := device.NewStream()
	if err != nil {
		return err
	}
	buffer, err := stream.Alloc(1 << 20)
	if err != nil {
		return err
	}
	return buffer.Free()
}
