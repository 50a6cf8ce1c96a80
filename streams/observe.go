package streams

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/streams/magazine"
)

// Observer is functions that are told of every buffer; nil ones are left out. They are called on the goroutine that
// allocates or frees, or inside the stream's turn, so they must not wait, use the device or panic. It
// costs every request a turn of its stream and every free a note of its place.
type Observer struct {
	// Allocated is called before anybody has the buffer.
	Allocated func(BufferEvent)
	// Freed is called before the buffer's memory can be had again. After the device was closed frees are told, too.
	Freed func(BufferEvent)
	// Closed is called when a device is closed: all buffers have ended, and their memory is about to go.
	Closed func()
}

// BufferEvent is a buffer that was allocated or freed.
type BufferEvent struct {
	Stream uint32         // the number by which reports name the stream
	Handle cudadrv.Stream // the same as a CUDA stream
	Ptr    cudadrv.Ptr
	Bytes  int64 // that were asked for
	Tag    string
	Place  site.Stack // of the request, or of the free
}

// longWaitAfter is how long a request waits for memory until it is told of. Not less: such waits are what Request.Wait is for. Not
// more: somebody who looks for a deadlock should not have to guess.
const longWaitAfter = time.Second

// LongWait is a request that has waited for memory for a second, or a little longer: it is seen at a tick, once.
type LongWait struct {
	Stream   uint32
	Bytes    int64         // that are wanted; of a batch, all
	Waited   time.Duration // so far
	Priority int
	Tag      string // of the request
	Tenant   string // "": none
	ForQuota bool   // for its tenant's own frees, and not yet for memory
}

// witness is what a stream does for Debug and an Observer: no magazine serves callers without a turn, and every buffer is handed
// out with a flag that has its free told. The turn serves from magazines as ever, and the free goes the way that it would have
// gone. Of a stream that is not watched it is nil.
type reporter struct {
	stream   uint32
	handle   cudadrv.Stream
	observer Observer
}

// here is the place of the caller's caller; unknown on a stream that is not watched.
func (w *reporter) here() site.Stack {
	if w == nil {
		return nil
	}
	return site.Here(1)
}

// allocated tells of a buffer that its caller is about to get.
func (w *reporter) allocated(b Buffer, tag string, from site.Stack) {
	if w != nil {
		w.tell(w.observer.Allocated, b.slot.Watch(b.word, b.bytes, tag, from), from)
	}
}

// allAllocated tells of the buffers of a batch.
func (w *reporter) allAllocated(all []Buffer, from site.Stack) {
	if w == nil {
		return
	}
	for _, b := range all {
		w.allocated(b, "", from)
	}
}

// freedWatcher is the witness as the magazines see it.
type freedWatcher reporter

// Freed implements magazine.Watcher.
func (f *freedWatcher) Freed(h *magazine.History) {
	w := (*reporter)(f)
	w.tell(w.observer.Freed, h, h.Freed)
}

func (w *reporter) tell(f func(BufferEvent), h *magazine.History, from site.Stack) {
	if f != nil {
		f(BufferEvent{w.stream, w.handle, h.Address, h.Bytes, h.Tag, from})
	}
}
