package vramtest

import (
	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/site"
)

// Watch puts a checker around config.Driver, for code that opens its own devices and wants a configuration. An
// Observer that config has is told as well. The program's own work goes through the devices of the driver that is
// returned. Code that opens one driver for both its allocator and its own work gets that driver in config.Driver:
// then waits of the allocator order the program's work, too, and a missing wait may go unseen.
func Watch(config vram.Config) (watched vram.Config, program *hazard.Driver) {
	program = hazard.Wrap(config.Driver)
	checker, also := program.Checker(config.Ordinal), config.Observer
	helpers := site.NewHelpers(config.Helpers)
	program.SetHelpers(helpers)
	config.Driver = program.Allocator()
	config.Observer.Allocated = func(e vram.BufferEvent) {
		checker.Allocated(hazard.Buffer{Ptr: e.Ptr, Bytes: e.Bytes, Stream: e.Handle, StreamID: e.Stream, Tag: e.Tag, Allocated: e.Place})
		if also.Allocated != nil {
			also.Allocated(e)
		}
	}
	config.Observer.Freed = func(e vram.BufferEvent) {
		checker.Freed(e.Ptr, e.Place)
		if also.Freed != nil {
			also.Freed(e)
		}
	}
	config.Observer.Closed = func() {
		checker.Closed(helpers.Here(0))
		if also.Closed != nil {
			also.Closed()
		}
	}
	return config, program
}
