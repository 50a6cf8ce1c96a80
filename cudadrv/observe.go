package cudadrv

import "github.com/go-vram/vram/cudadrv/site"

// BufferEvent is a buffer of the allocator on a device of a driver.
type BufferEvent struct {
	Ptr   Ptr        `json:"ptr"`
	Bytes int64      `json:"bytes"` // requested
	Tag   string     `json:"tag"`
	Place site.Stack `json:"place"` // of the request, or of the free
}

// BufferObserver is implemented by drivers that name buffers in their errors (package cpu), also where another
// driver wraps them: see BufferObserverOf. The allocator calls both methods on
// the goroutine of the request or the free: they make no driver call.
type BufferObserver interface {
	// BufferAllocated is called before the caller gets the buffer.
	BufferAllocated(e BufferEvent)
	// BufferFreed is called before the buffer's memory can be allocated again.
	BufferFreed(e BufferEvent)
}

// BufferObserverOf returns the BufferObserver that a driver is, or that it wraps, as the drivers of packages fault and hazard do by a
// method Unwrap() Driver; nil if there is none.
func BufferObserverOf(d Driver) BufferObserver {
	for d != nil {
		if o, ok := d.(BufferObserver); ok {
			return o
		}
		outer, ok := d.(interface{ Unwrap() Driver })
		if !ok {
			return nil
		}
		d = outer.Unwrap()
	}
	return nil
}
