// Package expvars publishes a device's statistics under expvar: only where a program asks for it.
//
//	err := expvars.Publish("vram", device)
//
// Importing this package imports expvar, which registers GET /debug/vars with http.DefaultServeMux.
//
// # Concurrency properties
//
// Publish may be called from any goroutine; two calls at once with one name may panic, as
// expvar.Publish does. Reading the variable calls Device.Stats.
package expvars

import (
	"errors"
	"expvar"
	"fmt"

	"github.com/go-vram/vram"
)

// ErrPublished refuses a name that another variable has.
var ErrPublished = errors.New("expvars: the name is in use")

// Publish makes the statistics of a device a variable of that name: Stats as JSON, read whenever the
// variable is. A variable stays for the life of the process; after Device.Close it has the last
// figures. Its error is ErrPublished.
func Publish(name string, device *vram.Device) error {
	if expvar.Get(name) != nil {
		return fmt.Errorf("%w: %q", ErrPublished, name)
	}
	expvar.Publish(name, expvar.Func(func() any { return device.Stats() }))
	return nil
}
