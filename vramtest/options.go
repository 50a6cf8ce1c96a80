package vramtest

import (
	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// T is the part of a *testing.T or *testing.B that this package needs. Fatalf does not return.
type T interface {
	// Helper leaves the caller out of the places that failures name.
	Helper()
	// Cleanup has f called at the end of the test.
	Cleanup(f func())
	// Errorf fails the test, which continues.
	Errorf(format string, args ...any)
	// Fatalf fails the test and ends it.
	Fatalf(format string, args ...any)
}

// settings holds the values of the options.
type settings struct {
	config   vram.Config
	machine  sim.Config
	wrap     func(cudadrv.Driver) cudadrv.Driver
	atOnce   bool
	expected bool
	kernels  *KernelConfig
	// libraries are functions that stand in for libraries, by name
	libraries map[string]func(*LibraryCall) error
}

// Option configures Open.
type Option func(*settings)

// Config returns the device's configuration: limits, footprint, events. Open sets Driver; an Observer is told as well.
func Config(c vram.Config) Option { return func(s *settings) { s.config = c } }

// Machine returns the simulated machine: memory, granularity, clock.
func Machine(c sim.Config) Option { return func(s *settings) { s.machine = c } }

// Wrap puts a wrapper around the driver that the allocator sees, such as fault.Wrap: its calls may fail, those on
// Device.GPU do not.
func Wrap(wrap func(cudadrv.Driver) cudadrv.Driver) Option {
	return func(s *settings) { s.wrap = wrap }
}

// AtOnce has a hazard fail the test in the moment when it shows, in place of the test's end.
func AtOnce() Option { return func(s *settings) { s.atOnce = true } }

// Expected has hazards fail nothing: the test looks at Device.Hazards itself.
func Expected() Option { return func(s *settings) { s.expected = true } }
