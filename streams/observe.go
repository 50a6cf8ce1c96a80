package streams

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/streams/magazine"
)

// Observer has functions that are called for every buffer; nil ones are not called. They run on the
// goroutine that allocates or frees, or inside the stream's turn, so they must not wait, use the
// device or panic. With an observer every request takes a turn of its stream, and every free
// records its call stack.
type Observer struct {
	// Allocated is called before the caller gets the buffer.
	Allocated func(BufferEvent)
	// Freed is called before the buffer's memory can be allocated again. It is also called for
	// frees after the device was closed.
	Freed func(BufferEvent)
	// Closed is called when a device is closed: all buffers have ended, and their memory is about
	// to be released.
	Closed func()
}

// BufferEvent is a buffer that was allocated or freed.
type BufferEvent struct {
	Stream uint32         // Stream.ID
	Handle cudadrv.Stream // the same as a CUDA stream
	Ptr    cudadrv.Ptr
	Bytes  int64 // requested
	Tag    string
	Place  site.Stack // of the request, or of the free
}

// longWaitAfter is the age at which a waiting request is reported. Not less: Request.Wait is for
// such waits. Not more: a deadlock should not go unnoticed.
const longWaitAfter = time.Second

// LongWait is a request that has waited for memory for a second, or a little longer: ticks report
// it, once.
type LongWait struct {
	Stream   uint32
	Bytes    int64         // requested; of a batch, the sum
	Waited   time.Duration // so far
	Priority int
	Tag      string // of the request
	Tenant   string // "": none
	ForQuota bool   // for its tenant's own frees, and not yet for memory
}

// reporter calls the Observer, and keeps call stacks for Debug. With a reporter no magazine serves
// callers without a turn, and every buffer has a flag that has its free reported; the turn serves
// from magazines, and frees work, as without one. A stream that is not watched has none.
type reporter struct {
	stream   uint32
	handle   cudadrv.Stream
	observer Observer
}

// here is the call stack of the caller's caller; unknown without a reporter.
func (w *reporter) here() site.Stack {
	if w == nil {
		return nil
	}
	return site.Here(1)
}

// allocated reports a buffer before its caller gets it.
func (w *reporter) allocated(b Buffer, tag string, from site.Stack) {
	if w != nil {
		w.tell(w.observer.Allocated, b.slot.Watch(b.word, b.bytes, tag, time.Now(), from), from)
	}
}

// allAllocated reports the buffers of a batch.
func (w *reporter) allAllocated(all []Buffer, tag string, from site.Stack) {
	if w == nil {
		return
	}
	for _, b := range all {
		w.allocated(b, tag, from)
	}
}

// freedWatcher is the reporter as the magazines call it.
type freedWatcher reporter

// Freed reports the free of a watched buffer.
func (f *freedWatcher) Freed(h *magazine.History) {
	w := (*reporter)(f)
	w.tell(w.observer.Freed, h, h.Freed)
}

func (w *reporter) tell(f func(BufferEvent), h *magazine.History, from site.Stack) {
	if f != nil {
		f(BufferEvent{w.stream, w.handle, h.Address, h.Bytes, h.Tag, from})
	}
}
