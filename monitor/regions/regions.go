// Package regions shows the allocator's slow paths in the execution trace of package runtime/trace:
// a region for each wait for an answer ("vram wait"), for each driver job that takes memory from the
// driver ("vram growth") and for each other driver job ("vram driver job"). go tool trace lists them
// under "User-defined regions", with the goroutines that they ran on.
//
//	regions.Enable()
//	defer regions.Disable()
//
// A program that does not import this package is not linked with runtime/trace by it. Where no trace
// is being recorded, a region costs some nanoseconds; the fast paths have none.
//
// # Concurrency properties
//
// Both functions may be called from any goroutine, and hold for all devices of the process. A region
// that has begun ends as it began.
package regions

import (
	"context"
	"runtime/trace"

	"github.com/go-vram/vram/internal/region"
)

// Enable marks the slow paths from now on.
func Enable() {
	region.Set(func(name string) (end func()) { return trace.StartRegion(context.Background(), name).End })
}

// Disable undoes Enable.
func Disable() { region.Set(nil) }
