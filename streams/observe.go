package streams

import (
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/sampling"
)

// Observer has functions that are called for every buffer; nil ones are not called. They run on the
// goroutine that allocates or frees, or inside the stream's turn, several at once, so they must not
// wait, use the device or panic. With an observer every allocation and every free records its call
// stack.
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

// Profile counts the sampled buffers of a device by place.
type Profile struct {
	sampling.Register
	share atomic.Uint32
}

// SetShare sets which of the buffers count that the streams sample.
func (p *Profile) SetShare(share magazine.Share) { p.share.Store(uint32(share)) }

// SampledBuffer is a live buffer that the profile has a sample of.
type SampledBuffer struct {
	Stream    uint32 // by its ID
	Ptr       cudadrv.Ptr
	Bytes     int64 // requested
	Tag       string
	Tenant    string // by its name; "": none
	Stack     site.Stack
	Allocated time.Time
	Weight    float64 // for how many buffers alike it stands
}

// sampler tells the Observer and the profile of the sampled buffers of a stream, and keeps their call
// stacks. A sampled buffer has a flag that has its free told; all else is as if it were not sampled.
type sampler struct {
	home     *magazine.Home
	stream   uint32
	handle   cudadrv.Stream
	observer Observer
	profile  *Profile
	claims   atomic.Uint64 // number of claims that were drawn for
}

func (w *sampler) init(cfg *Config, home *magazine.Home) {
	w.home, w.stream, w.handle, w.observer, w.profile = home, cfg.ID, cfg.Handle, cfg.Observer, cfg.Profile
	home.SetWatcher((*freedWatcher)(w))
	home.KeepPlaces(cfg.Places)
}

// here is the call stack of the caller's caller; nil if nothing is sampled.
func (w *sampler) here() site.Stack {
	if w.home.Share() == 0 {
		return nil
	}
	return site.Here(1)
}

// drawn decides about a claim before it has a buffer, on its caller's goroutine: from is nil if the
// buffer is not to be sampled.
func (w *sampler) drawn(bytes int64) (draw uint32, from site.Stack) {
	share := w.home.Share()
	if share == 0 {
		return 0, nil
	}
	draw = magazine.Draw(cudadrv.Ptr(w.stream), w.claims.Add(1))
	if draw < share.Threshold(sizeclass.Units(max(bytes, 1))) {
		from = site.Here(1)
	}
	return draw, from
}

// sampled tells a buffer that its caller is about to get, if it is sampled.
func (w *sampler) sampled(b Buffer, tag string, t *pool.Tenant) {
	if b.slot.IsSampled(b.word, w.home.Share()) {
		w.allocated(b, tag, t, magazine.Draw(b.slot.Address(), b.word), site.Here(1))
	}
}

// allSampled tells the sampled buffers of a batch that was requested from there.
func (w *sampler) allSampled(all []Buffer, tag string, t *pool.Tenant, from site.Stack) {
	if from == nil {
		return
	}
	for _, b := range all {
		if b.slot.IsSampled(b.word, w.home.Share()) {
			w.allocated(b, tag, t, magazine.Draw(b.slot.Address(), b.word), from)
		}
	}
}

// allocated tells a sampled buffer before its caller gets it.
func (w *sampler) allocated(b Buffer, tag string, t *pool.Tenant, draw uint32, from site.Stack) {
	now := time.Now()
	h := &magazine.History{Bytes: b.bytes, Tag: tag, Tenant: t.Name(), At: now, Allocated: from}
	if p := w.profile; p != nil {
		chance := magazine.Share(p.share.Load()).Threshold(uint64(b.slot.Magazine().UnitsOf(b.slot)))
		if draw < chance {
			at := p.Site(sampling.Labels{Stream: w.stream, Tag: tag, Tenant: h.Tenant}, from)
			h.Sample = at.Allocated(now.UnixNano(), b.bytes, chance, uint32(magazine.Everything))
		}
	}
	b.slot.Watch(b.word, h)
	w.tell(w.observer.Allocated, h, from)
}

// freedWatcher is the sampler as the magazines call it.
type freedWatcher sampler

// Freed reports the free of a sampled buffer.
func (f *freedWatcher) Freed(h *magazine.History) {
	h.Sample.End()
	w := (*sampler)(f)
	w.tell(w.observer.Freed, h, h.Freed)
}

func (w *sampler) tell(f func(BufferEvent), h *magazine.History, from site.Stack) {
	if f != nil {
		f(BufferEvent{w.stream, w.handle, h.Address, h.Bytes, h.Tag, from})
	}
}
