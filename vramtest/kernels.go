package vramtest

import (
	"io"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// KernelConfig says how kernels are executed.
type KernelConfig struct {
	Ignore          []interp.Kind // mistakes that are not looked for; see interp.Launch
	MaxInstructions int64         // that one warp executes; 0: interp.DefaultMaxInstructions
	// Strict finds more races: between .volatile accesses, and where a fence after an atomic access is missing; see
	// interp.Launch.
	Strict bool
	// Cooperative executes each launch as cuLaunchCooperativeKernel does: its blocks may wait for each other, as in grid.sync.
	Cooperative bool
	// Pointers lets kernels touch every live buffer: they find some through addresses in memory. Otherwise a kernel may
	// touch only those whose addresses are among its parameters, so that a step over the end of one is found also where
	// another one follows.
	Pointers bool
	// Output receives the output of kernels' printf, under the lock of the simulated driver: it calls no device. nil: the test's log, where
	// T has one.
	Output io.Writer
}

// Kernels has the device execute kernels from PTX on real bytes. A mistake of a kernel fails the test, with the line
// and the thread; with Expected the test looks at Device.Faults itself.
func Kernels(config ...KernelConfig) Option {
	return func(s *settings) {
		s.kernels = &KernelConfig{}
		for _, c := range config {
			*s.kernels = c
		}
	}
}

// execute gives the machine an executor.
func (s *settings) execute(d *Device) {
	if s.kernels == nil {
		return
	}
	owners := ptxrun.NewBuffers(s.kernels.Pointers)
	output := s.kernels.Output
	if output == nil {
		d.printed = &lines{t: d.t}
		output = d.printed
	}
	d.kernels = ptxrun.New(ptxrun.Config{Ignore: s.kernels.Ignore, MaxInstructions: s.kernels.MaxInstructions, Strict: s.kernels.Strict, Cooperative: s.kernels.Cooperative, Owners: owners, Helpers: d.helpers, Output: output, Reported: !s.expected})
	s.machine.Bytes, s.machine.Executor = true, d.kernels
	if s.libraries != nil {
		s.machine.Executor = &librarian{d.kernels, s.libraries, d.helpers}
	}
	s.config.Observer = tell(owners, s.config.Observer)
}

// Faults returns the mistakes of kernels so far. Each wraps an *interp.Fault, or is a *LibraryError. Without the options Kernels
// and Library there are none.
func (d *Device) Faults() []error {
	if d == nil || d.kernels == nil {
		return nil
	}
	return d.kernels.Faults()
}

// tell returns an observer that tells of buffers, and calls the functions of another one.
func tell(buffers cudadrv.BufferObserver, also vram.Observer) vram.Observer {
	event := func(e vram.BufferEvent) cudadrv.BufferEvent {
		return cudadrv.BufferEvent{Ptr: e.Ptr, Bytes: e.Bytes, Tag: e.Tag, Place: e.Place}
	}
	told := also
	told.Allocated = func(e vram.BufferEvent) {
		buffers.BufferAllocated(event(e))
		if also.Allocated != nil {
			also.Allocated(e)
		}
	}
	told.Freed = func(e vram.BufferEvent) {
		buffers.BufferFreed(event(e))
		if also.Freed != nil {
			also.Freed(e)
		}
	}
	return told
}
