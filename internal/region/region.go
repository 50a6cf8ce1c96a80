// Package region marks slow paths: a program that wants to trace them sets a function that is called at the
// begin of each. Without one a region costs an atomic load.
//
// # Concurrency properties
//
// All functions may be called from any goroutine. A region ends on the goroutine that began it.
package region

import "sync/atomic"

// The names of regions.
const (
	Wait      = "vram wait"       // a goroutine waits for the answer to a request
	Growth    = "vram growth"     // a driver job that takes memory from the driver
	DriverJob = "vram driver job" // any other driver job
)

var begin atomic.Pointer[func(name string) (end func())] //nolint:gochecknoglobals // the process is watched: its trace is one

// Set sets the function that is called at the begin of each region; its result is called at the end. Nil:
// none.
func Set(f func(name string) (end func())) {
	if f == nil {
		begin.Store(nil)
		return
	}
	begin.Store(&f)
}

// Begin begins a region; the result ends it.
func Begin(name string) (end func()) {
	if f := begin.Load(); f != nil {
		return (*f)(name)
	}
	return nothing
}

func nothing() {}
