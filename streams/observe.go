package streams

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/stream/sampling"
	"github.com/go-vram/vram/pool"
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
	// Found is called by Device.Observe for each buffer that is live already: its Bytes are the block's
	// length, and its Place is unknown, unless it was sampled.
	Found func(BufferEvent)
	// Reserved is called when memory was taken from the driver, or released to it: by how much, and how
	// much is held afterwards.
	Reserved func(changeBytes, reservedBytes int64)
	// Mapped is called when memory of that many bytes was mapped at an address, or, if they are negative, unmapped:
	// when the device takes memory from the driver, releases it, or moves it to other addresses. It is called in that
	// order, and before Reserved.
	Mapped func(at cudadrv.Ptr, changeBytes int64)
	// Denied is called when the pool refused a request: see Events.OutOfMemory.
	Denied func(*pool.OutOfMemoryError)
	// Closed is called when a device is closed: all buffers have ended, and their memory is about
	// to be released.
	Closed func()
}

// Observes reports whether any function is set that is called without Device.Observe.
func (o *Observer) Observes() bool {
	if o == nil {
		return false
	}
	return o.Allocated != nil || o.Freed != nil || o.Closed != nil || o.Reserved != nil || o.Mapped != nil || o.Denied != nil
}

// Observers has a device's observers: one that calls all, or nil, and the list of all.
type Observers struct {
	p   atomic.Pointer[Observer]
	all atomic.Pointer[[]*Observer] // replaced, never changed
}

// Load returns the observer that calls all; nil if there is none.
func (o *Observers) Load() *Observer { return o.p.Load() }

// Store sets the observer before any stream is open.
func (o *Observers) Store(first *Observer) { o.p.Store(first) }

// CompareAndSwap replaces the observer.
func (o *Observers) CompareAndSwap(old, next *Observer) bool {
	return o.p.CompareAndSwap(old, next)
}

// All returns the observers that EditAll has listed.
func (o *Observers) All() []*Observer {
	if all := o.all.Load(); all != nil {
		return *all
	}
	return nil
}

// EditAll replaces the list by an edited copy.
func (o *Observers) EditAll(edit func([]*Observer) []*Observer) {
	for {
		old, next := o.all.Load(), edit(slices.Clone(o.All()))
		if o.all.CompareAndSwap(old, &next) {
			return
		}
	}
}

// BufferEvent is a buffer that was allocated or freed.
type BufferEvent struct {
	Stream uint32         `json:"stream"` // Stream.ID
	Handle cudadrv.Stream `json:"handle"` // the same as a CUDA stream
	Ptr    cudadrv.Ptr    `json:"ptr"`
	Bytes  int64          `json:"bytes"` // requested
	Tag    string         `json:"tag"`
	Tenant string         `json:"tenant"` // by its name; "": none
	Place  site.Stack     `json:"place"`  // of the request, or of the free
}

// longWaitAfter is the age at which a waiting request is reported. Not less: Request.Wait is for
// such waits. Not more: a deadlock should not go unnoticed.
const longWaitAfter = time.Second

// LongWait is a request that has waited for memory for a second, or a little longer: ticks report
// it, once.
type LongWait struct {
	Stream   uint32        `json:"stream"`
	Bytes    int64         `json:"bytes"` // requested; of a batch, the sum
	Waited   time.Duration `json:"-"`     // so far
	Priority int           `json:"priority"`
	Tag      string        `json:"tag"`       // of the request
	Tenant   string        `json:"tenant"`    // "": none
	ForQuota bool          `json:"for_quota"` // for its tenant's own frees, and not yet for memory
}

// Profile counts the sampled buffers of a device by place.
type Profile struct {
	sampling.Register
	share atomic.Uint32
}

// SetShare sets the share of the buffers that count among those that the streams sample.
func (p *Profile) SetShare(share magazine.Share) { p.share.Store(uint32(share)) }

// SampledBuffer is a live buffer with a sample in the profile.
type SampledBuffer struct {
	Stream    uint32      `json:"stream"` // by its ID
	Ptr       cudadrv.Ptr `json:"ptr"`
	Bytes     int64       `json:"bytes"` // requested
	Tag       string      `json:"tag"`
	Tenant    string      `json:"tenant"` // by its name; "": none
	Stack     site.Stack  `json:"stack"`
	Allocated time.Time   `json:"allocated"`
	Weight    float64     `json:"weight"` // the number of similar buffers that it represents
}

// sampler reports the sampled buffers of a stream to the Observer and the profile, and keeps their call
// stacks. A sampled buffer has a flag by which its free is reported. Nothing else differs for it.
type sampler struct {
	home      *magazine.Home
	stream    uint32
	handle    cudadrv.Stream
	observers *Observers // of the device; nil: none
	profile   *Profile
	helpers   *site.Helpers // left out of the call stacks; nil: none
	claims    atomic.Uint64 // number of claims that were drawn for
	taken     atomic.Uint32 // samples since the last tick
}

const (
	// wholeSamples is the number of samples that a stream takes between two ticks at its whole share, and
	// halfSamples the number of further ones after which the share is halved, each time. So a stream that
	// allocates n long blocks in a tick takes about wholeSamples + halfSamples * log2(n/wholeSamples)
	// samples: 700 of the three million that one goroutine allocates in 100 ms, which is 1 % of its time.
	// Fewer at the whole share would lose buffers of programs that have kernels between allocations, more
	// would cost 1 % each thousand.
	wholeSamples, halfSamples = 256, 32
)

// limit lowers the share of the stream, if it has taken many samples since the last tick.
func (w *sampler) limit(taken uint32) {
	if taken >= wholeSamples && taken%halfSamples == 0 {
		w.home.LowerShare((taken-wholeSamples)/halfSamples + 1)
	}
}

// tick ends the limit.
func (w *sampler) tick() {
	if w.taken.Swap(0) >= wholeSamples {
		w.home.LowerShare(0)
	}
}

func (w *sampler) init(home *magazine.Home, stream uint32, handle cudadrv.Stream, observers *Observers, profile *Profile, helpers *site.Helpers) {
	w.home, w.stream, w.handle, w.observers, w.profile, w.helpers = home, stream, handle, observers, profile, helpers
	home.SetWatcher((*freedWatcher)(w))
}

// here returns the call stack of the caller's caller, or nil if nothing is sampled.
func (w *sampler) here() site.Stack {
	if w.home.Share() == 0 {
		return nil
	}
	return w.callStack()
}

// callStack returns the present call stack.
func (w *sampler) callStack() site.Stack { return w.helpers.Here(2) }

// drawn decides whether the buffer of a claim is sampled, before the claim has it, on its caller's goroutine:
// from is nil if it is not.
func (w *sampler) drawn(bytes int64) (chance uint32, from site.Stack) {
	if w.home.Share() == 0 {
		return 0, nil
	}
	draw := magazine.DrawClaim(w.stream, w.claims.Add(1))
	chance, is := w.decide(draw, sizeclass.Units(max(bytes, 1)))
	if is {
		from = w.callStack()
	}
	return chance, from
}

// decide reports whether an allocation of that many units is sampled, and returns the probability, in
// magazine.Everything, that the profile counts it. 0: the profile does not count it.
func (w *sampler) decide(draw uint32, units uint64) (chance uint32, is bool) {
	if share := w.home.Share(); share != magazine.Everything {
		chance = share.Threshold(units)
		return chance, draw < chance
	}
	if w.profile != nil {
		chance = magazine.Share(w.profile.share.Load()).Threshold(units)
	}
	if draw >= chance {
		chance = 0
	}
	return chance, true
}

// sampled reports a buffer that its caller is about to get, if it is sampled.
func (w *sampler) sampled(b Buffer, tag string, t *pool.Tenant) {
	if chance, is := w.decide(b.slot.Draw(b.word), uint64(b.slot.Magazine().UnitsOf(b.slot))); is {
		w.allocated(b, tag, t, chance, w.callStack())
	}
}

// allSampled reports the sampled buffers of a batch that was requested at from.
func (w *sampler) allSampled(all []Buffer, tag string, t *pool.Tenant, from site.Stack) {
	if from == nil {
		return
	}
	for _, b := range all {
		if chance, is := w.decide(b.slot.Draw(b.word), uint64(b.slot.Magazine().UnitsOf(b.slot))); is {
			w.allocated(b, tag, t, chance, from)
		}
	}
}

// allocated reports a sampled buffer before its caller gets it. The profile counts it with that chance, unless it is 0.
func (w *sampler) allocated(b Buffer, tag string, t *pool.Tenant, chance uint32, from site.Stack) {
	now := time.Now()
	h := &magazine.History{Bytes: b.bytes, Tag: tag, Tenant: t.Name(), At: now, Allocated: from}
	if chance > 0 && w.profile != nil {
		at := w.profile.Site(sampling.Labels{Stream: w.stream, Tag: tag, Tenant: h.Tenant}, from)
		h.Sample = at.Allocated(now.UnixNano(), b.bytes, chance, uint32(magazine.Everything))
		w.limit(w.taken.Add(1))
	}
	b.slot.Watch(b.word, h)
	w.tell(h, from, false)
}

// freedWatcher is the sampler as the magazines call it.
type freedWatcher sampler

// Helpers are left out of the places of frees.
func (f *freedWatcher) Helpers() *site.Helpers { return f.helpers }

// Freed reports the free of a sampled buffer.
func (f *freedWatcher) Freed(h *magazine.History) {
	h.Sample.End()
	w := (*sampler)(f)
	w.tell(h, h.Freed, true)
}

func (w *sampler) tell(h *magazine.History, from site.Stack, freed bool) {
	if w.observers == nil {
		return
	}
	o := w.observers.Load()
	if o == nil {
		return
	}
	f := o.Allocated
	if freed {
		f = o.Freed
	}
	if f != nil {
		f(w.event(h, from))
	}
}

func (w *sampler) event(h *magazine.History, from site.Stack) BufferEvent {
	return BufferEvent{w.stream, w.handle, h.Address, h.Bytes, h.Tag, h.Tenant, from}
}

// found watches a live buffer that was allocated before everything was sampled. The owner of the slot
// calls it. False: the buffer was freed before.
func (w *sampler) found(slot *magazine.Slot, word uint64, bytes int64) (e BufferEvent, live bool) {
	h := slot.Adopt(word, bytes)
	if h == nil {
		return e, false
	}
	return w.event(h, h.Allocated), true
}
