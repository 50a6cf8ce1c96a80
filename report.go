package vram

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/internal/units"
)

// Report has, in several lines, the buffers that were not freed: the sums by tenant, tag, stream and
// place, the largest first, with the age of the oldest, and the largest buffers.
func (e *InUseError) Report() string {
	if e == nil {
		return ""
	}
	list := inventory.Of(slices.Clone(e.Buffers))
	var b strings.Builder
	fmt.Fprintf(&b, "leak: %s not freed before the device was closed, %s in all\n", units.Count(e.BufferCount, "buffer"), units.Bytes(e.Bytes))
	if more := e.BufferCount - uint64(len(e.Buffers)); more > 0 {
		fmt.Fprintf(&b, "the sums are of the largest %d of them\n", len(e.Buffers))
	}
	inventory.WriteGroups(&b, list)
	inventory.WriteLargest(&b, list.Largest(inventory.MaxListed))
	if len(e.Buffers) > 0 && e.placeless() {
		b.WriteString("to see where they were allocated: set SampleBytes, also at run time, for the large ones at little cost; or open the device with Config.Debug, for each\n")
	}
	return b.String()
}

// CloseInto closes a device and joins the error, if there is one, to that of the function which
// returns: for a deferred call, whose result would be lost otherwise.
//
//	func run() (err error) {
//		dev, err := vram.Open(vram.Config{})
//		if err != nil {
//			return err
//		}
//		defer vram.CloseInto(&err, dev)
//		...
//	}
//
// Anything with a Close can be passed: streams, lanes, contexts of package cuda.
func CloseInto(err *error, c io.Closer) { *err = joined(*err, c.Close()) }

// joined is errors.Join, but that an error which is alone stays as it is: encoding/json writes its fields then, and nothing of a joined one.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
