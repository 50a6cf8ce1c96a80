//go:build gorgonia && cgo && linux && (amd64 || arm64)

// Command gorgonia allocates through vram in a program that uses gorgonia.org/cu: that package creates the context, the stream
// and the event, vram adopts the context and the stream, and calls of gorgonia.org/cu use vram's buffers. It is built with the
// tag gorgonia and needs a GPU, or the fake library of `make test-gorgonia`.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"gorgonia.org/cu"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/gorgonia"
)

// The program's work: a buffer of four blocks, each with a value of its own.
const (
	blockBytes = 1 << 20
	blockCount = 4
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gorgonia:", err)
		os.Exit(1)
	}
}

// run creates the objects of gorgonia.org/cu, and destroys them in reverse order. Its calls use the thread's context, so the
// goroutine stays on its thread; vram's calls set their own context.
func run(out io.Writer) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	device, err := cu.GetDevice(0)
	if err != nil {
		return err
	}
	context, err := device.MakeContext(cu.SchedAuto)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, context.Destroy()) }()
	stream, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Destroy()) }()
	return allocate(out, context, stream)
}

// allocate opens vram in the context and adopts the stream.
func allocate(out io.Writer, context cu.CUContext, stream cu.Stream) (err error) {
	dev, err := vram.Open(vram.Config{Driver: gorgonia.New(gorgonia.Config{Context: context})})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	s, err := dev.AdoptStream(gorgonia.FromStream(stream))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := fmt.Fprintf(out, "device: %s, driver %s\n", dev.Info().Name, dev.Info().Driver); err != nil {
		return err
	}
	return work(out, s, stream)
}

// work fills a buffer, copies it to a second one, and frees the first once the copy is submitted.
func work(out io.Writer, s *vram.Stream, stream cu.Stream) error {
	x, err := s.Alloc(blockCount * blockBytes)
	if err != nil {
		return err
	}
	y, err := s.Alloc(x.Bytes())
	if err != nil {
		return err
	}
	for i := range blockCount {
		block := gorgonia.ToPtr(x.Ptr()) + cu.DevicePtr(i*blockBytes)
		if err := cu.MemsetD8Async(block, byte(i+1), blockBytes, stream); err != nil {
			return err
		}
	}
	if err := cu.MemcpyDtoDAsync(gorgonia.ToPtr(y.Ptr()), gorgonia.ToPtr(x.Ptr()), x.Bytes(), stream); err != nil {
		return err
	}
	if err := x.Free(); err != nil { // stream-ordered: the copy still has it, and the next buffer of s may get it
		return err
	}
	if err := await(stream); err != nil {
		return err
	}
	values, err := blocks(y)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "a buffer of %d bytes, its blocks hold %v\n", y.Bytes(), values); err != nil {
		return err
	}
	return y.Free()
}

// await waits for the stream's work so far, by an event.
func await(stream cu.Stream) error {
	done, err := cu.MakeEvent(cu.DisableTiming)
	if err != nil {
		return err
	}
	err = done.Record(stream)
	if err == nil {
		err = done.Synchronize()
	}
	return errors.Join(err, cu.DestroyEvent(&done))
}
