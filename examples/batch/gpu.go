package main

import (
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/kernels"
)

// gpu is the program's own view of the device, for kernels and memsets.
type gpu struct{ *kernels.View }

// bytesPerSecond is the attainable bandwidth of an H200's memory, which bounds an optimizer.
const bytesPerSecond = 3e12

// touch queues a kernel that writes buffers and moves the given number of bytes.
func (g *gpu) touch(s *vram.Stream, bytes int64, written ...vram.Buffer) error {
	duration := time.Duration(float64(bytes) / bytesPerSecond * float64(time.Second))
	return g.Write(s.Handle(), duration, written...)
}
