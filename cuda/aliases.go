package cuda

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// Stream and Buffer are types of package vram.
type (
	// Stream is vram.Stream.
	Stream = streams.Stream
	// Buffer is vram.Buffer.
	Buffer = streams.Buffer
)

// Geometry is the shape of a launch: grid, block and dynamic shared memory.
type Geometry = cudadrv.Geometry

// Dim3 is a size in three directions.
type Dim3 = cudadrv.Dim3

// CaptureMode says which driver calls may be made during a capture. Calls of vram are always made: they exchange the mode of
// their thread.
type CaptureMode = cudadrv.CaptureMode

// The modes of a capture.
const (
	// Relaxed forbids nothing. Capture uses it.
	Relaxed = cudadrv.CaptureRelaxed
	// ThreadLocal refuses calls of the capturing thread that a graph cannot have, as an allocation past vram, which would
	// otherwise be made once, at the capture.
	ThreadLocal = cudadrv.CaptureThreadLocal
	// Global refuses them from any thread.
	Global = cudadrv.CaptureGlobal
)

// OrderError reports that a copy between two devices was submitted, but that the source's stream could not be made to wait for
// it.
type OrderError = streams.OrderError

// FrozenError refuses a write to a buffer that is frozen: see Context.Freeze.
type FrozenError = streams.FrozenError
