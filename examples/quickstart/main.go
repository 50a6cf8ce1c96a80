// Command quickstart is the smallest program that uses vram: it opens a GPU, or the simulated device if there is none, prints
// the device, and allocates on a stream, at once and as a future.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-vram/vram"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	driver, err := vram.DriverNamed("auto")
	if err != nil {
		return err
	}
	dev, err := vram.Open(vram.Config{Driver: driver})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }() // an *InUseError lists buffers that nobody freed
	if _, err := fmt.Fprintf(out, "device: %s, driver %s\n", dev.Info().Name, dev.Info().Driver); err != nil {
		return err
	}

	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	x, err := s.Alloc(64 << 20)
	if err != nil {
		return err
	}
	next := s.AllocAsync(ctx, vram.Request{Bytes: 128 << 20}) // arrives while a kernel on s.Handle() uses x.Ptr()
	if err := x.Free(); err != nil {                          // stream-ordered: reusable on s at once
		return err
	}
	y, err := next.Await(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "buffers of %d and %d bytes\n", x.Bytes(), y.Bytes()); err != nil {
		return err
	}
	return y.Free()
}
