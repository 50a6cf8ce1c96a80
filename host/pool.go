package host

import (
	"context"
	"errors"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
)

// DefaultKeepBytes is the bound of a Pool that names none: 256 MiB, some batches of a training step,
// and a small part of any host's memory.
const DefaultKeepBytes = 256 << 20

// PoolConfig is the settings of a Pool.
type PoolConfig struct {
	// KeepBytes bounds the free memory that is kept. 0: DefaultKeepBytes.
	KeepBytes int64
	// Device records the events of announced uses. Page-locked memory needs it; a pool of pageable
	// memory without it ignores uses, one of a stream's memory without it refuses those on others,
	// also around a pool that has it.
	// It is the caller's, and stays open until the pool was closed without error.
	Device cudadrv.Device
}

// Pool is a wrapper that keeps freed blocks for requests of similar size: see the package comment.
type Pool struct {
	inner      Allocator
	owner      *Owner
	kind       Kind
	leastBytes int64                  // of the smallest blocks
	events     *fence.Events          // nil: no uses are kept
	captures   cudadrv.CaptureQueries // nil: the device cannot tell
	classes    [classCount]class
	bound      bound
	closed     atomic.Bool

	pending       stack // freed, with uses
	pendingBlocks atomic.Int64
	pendingBytes  atomic.Int64
	lookAtBytes   atomic.Int64 // of pending memory: a Free looks, too
	stampCount    atomic.Uint64

	queue           stack        // to be released by the goroutine
	queued          atomic.Int64 // slots in queue, and the one that the goroutine releases
	refused         stack        // the source did not take them
	refusal         atomic.Pointer[error]
	round           atomic.Pointer[round] // nil: there is no goroutine
	releasingBlocks atomic.Int64          // in queue, in refused, and on the way
	releasingBytes  atomic.Int64
	releasedBytes   atomic.Int64 // in all
	panics          recovered.Log
	roundEnds       func() // tests only: called when the goroutine has found the queue empty, before it ends

	misses, refusals, releases, releaseFailures, lookFailures atomic.Uint64
}

// Pooled puts a cache before an allocator. It makes no driver call. Errors: *ConfigError for a
// negative bound, for nil, and for page-locked memory without a device.
func Pooled(inner Allocator, cfg PoolConfig) (*Pool, error) {
	switch {
	case inner == nil:
		return nil, noInner()
	case cfg.KeepBytes < 0:
		return nil, &ConfigError{Field: "KeepBytes", Value: cfg.KeepBytes, Want: "0 or more"}
	case cfg.Device == nil && inner.Kind() == PageLocked:
		return nil, &ConfigError{Field: "Device", Value: nil, Want: "the device whose streams use the page-locked memory"}
	case cfg.KeepBytes == 0:
		cfg.KeepBytes = DefaultKeepBytes
	}
	p := &Pool{inner: inner, kind: inner.Kind()}
	p.owner = NewOwner(p)
	p.leastBytes = leastBytes(p.kind)
	p.bound.keep.Store(cfg.KeepBytes)
	p.lookAtBytes.Store(cfg.KeepBytes)
	if d := cfg.Device; d != nil {
		p.events = fence.NewEvents(d)
		if q, ok := d.(cudadrv.CaptureQueries); ok && d.Info().Capabilities.Has(cudadrv.CaptureInformation) {
			p.captures = q
		}
	}
	return p, nil
}

// Alloc serves a request from the free blocks, from pending ones whose uses have passed, or from the
// allocator inside. If that has no memory, or a limit, all free blocks are released and it is asked
// once more. Errors: *SizeError, *AlignError, ErrClosed, and those inside.
func (p *Pool) Alloc(bytes, align int64) (Block, error) {
	if p == nil {
		return Block{}, notOpen()
	}
	if uint64(bytes-1) < maxBytes && uint64(align) <= pageBytes && align&(align-1) == 0 { // nearly all requests
		if s := p.classes[classOf(max(bytes, align, p.leastBytes))].take(); s != nil && p.serves(s) {
			s.offset = 0
			return Block{owner: p.owner, slot: &s.slot, word: s.word.Load(), bytes: bytes}, nil
		}
	} else if b, ok := p.hit(bytes, align); ok {
		return b, nil
	}
	return p.miss(bytes, align, false)
}

// AllocZeroed is Alloc with contents of zeros. Memory of the host is cleared; device memory is
// always the allocator's inside, since only that can clear it.
func (p *Pool) AllocZeroed(bytes, align int64) (Block, error) {
	if p == nil {
		return Block{}, notOpen()
	}
	if p.kind != Device {
		if b, ok := p.hit(bytes, align); ok {
			clear(b.Bytes())
			return b, nil
		}
	}
	return p.miss(bytes, align, true)
}

// hit serves a request from a free slot. After Close there is none.
func (p *Pool) hit(bytes, align int64) (Block, bool) {
	if bytes <= 0 || checkRequest(bytes, align) != nil {
		return Block{}, false
	}
	number := p.class(bytes, align)
	if number >= classCount {
		return Block{}, false
	}
	s := p.classes[number].take()
	if s == nil || !p.serves(s) {
		return Block{}, false
	}
	return p.handOut(s, bytes, align), true
}

// serves reports whether a slot that was taken may serve a request. After Close it may not, and goes back: a late Free has made it free, and not
// come to its release yet.
func (p *Pool) serves(s *pooled) bool {
	if !p.closed.Load() {
		return true
	}
	p.makeFree(s)
	return false
}

// class returns the class that serves a request; classCount if it is too long for any, with its
// alignment.
func (p *Pool) class(bytes, align int64) int {
	if need := span(bytes, align); need <= maxBytes {
		return classOf(max(need, p.leastBytes))
	}
	return classCount
}

// handOut makes a block of a slot that the caller has taken.
func (p *Pool) handOut(s *pooled, bytes, align int64) Block {
	s.offset = 0
	if align > pageBytes { // else the block is aligned as it is: see span
		s.offset = lead(s.address(), align)
	}
	return Block{owner: p.owner, slot: &s.slot, word: s.word.Load(), bytes: bytes}
}

// miss serves a request that no free slot has served.
func (p *Pool) miss(bytes, align int64, zero bool) (Block, error) {
	b, err := p.seek(bytes, align, zero)
	if err != nil {
		p.refusals.Add(1)
	}
	return b, err
}

func (p *Pool) seek(bytes, align int64, zero bool) (Block, error) {
	if err := checkRequest(bytes, align); err != nil {
		return Block{}, err
	}
	if p.inner == nil {
		return Block{}, notOpen()
	}
	if p.closed.Load() {
		return Block{}, closed(p.kind)
	}
	if bytes == 0 {
		return Block{}, nil
	}
	number := p.class(bytes, align)
	if number >= classCount {
		return Block{}, &SizeError{RequestedBytes: bytes, LimitBytes: maxBytes - align + pageBytes}
	}
	p.look()
	if b, ok := p.reuse(number, bytes, align, zero); ok {
		return b, nil
	}
	p.misses.Add(1)
	b, err := p.fill(number, bytes, align, zero)
	if !errors.Is(err, ErrOutOfMemory) && !errors.Is(err, ErrLimit) {
		return b, err
	}
	p.look()
	if b, ok := p.reuse(number, bytes, align, zero); ok {
		return b, nil
	}
	p.sweep()
	_ = p.awaitReleases(context.Background()) // which does not end
	return p.fill(number, bytes, align, zero)
}

// reuse serves a request from a slot that became free since the first look, or that waits to be released.
func (p *Pool) reuse(number int, bytes, align int64, zero bool) (Block, bool) {
	if zero && p.kind == Device { // only the allocator inside can clear it
		return Block{}, false
	}
	s := p.classes[number].take()
	if s == nil {
		s = p.unqueue(&p.classes[number])
	}
	if s == nil || !p.serves(s) {
		return Block{}, false
	}
	b := p.handOut(s, bytes, align)
	if zero {
		clear(b.Bytes())
	}
	return b, true
}

// fill requests a block inside for a vacant slot.
func (p *Pool) fill(number int, bytes, align int64, zero bool) (Block, error) {
	blockBytes := classBytes(number)
	s := p.classes[number].vacate(p, blockBytes)
	filled := false
	defer func() { // also after a panic inside
		if !filled {
			s.shelf.vacant.Or(s.bit)
		}
	}()
	request := p.inner.Alloc
	if zero {
		request = p.inner.AllocZeroed
	}
	inner, err := request(blockBytes, blockAlign(blockBytes))
	if err != nil {
		return Block{}, err
	}
	s.inner, filled = inner, true
	s.inside.Store(inner.slot)
	s.data, s.ptr = unsafe.Pointer(unsafe.SliceData(inner.Bytes())), inner.Ptr()
	return p.handOut(s, bytes, align), nil
}

// blockAlign returns the alignment of blocks of a class: their length, if that is a power of two below a
// page, or a page.
func blockAlign(blockBytes int64) int64 { return min(blockBytes, pageBytes) }

// Free keeps the block for later requests, or releases it where it would exceed the bound. It does
// not wait, unless the allocator inside waits in Free: for page-locked memory a goroutine does that.
// Errors: ErrDoubleFree, ErrStale, ErrForeign; with announced uses *CaptureError, and the driver's.
func (p *Pool) Free(b Block) error { return p.freeIn(b, nil) }

func (p *Pool) freeIn(b Block, shared *batch) error {
	if p == nil {
		return notOpen()
	}
	if b.slot == nil {
		return nil
	}
	if b.owner != p.owner {
		return b.foreign()
	}
	s := b.slot.where.(*pooled) //nolint:forcetypeassert // the pool's blocks have no other slots
	if err := s.end(b.word); err != nil {
		return err
	}
	if s.noted() {
		var few [4]cudadrv.Stream // most blocks have no more
		if streams := s.streams(few[:0], b.word); len(streams) > 0 {
			return p.freeUsed(s, b.word, streams, shared)
		}
		s.forget()
	}
	p.makeFree(s)
	return nil
}

// makeFree makes a slot free. It sets the bit before it reads the allowance: see the package comment.
func (p *Pool) makeFree(s *pooled) {
	sh, bit := s.shelf, s.bit
	if c := sh.class; c.last.Load() != sh {
		c.last.Store(sh)
	}
	sh.free.Or(bit)
	p.bound.between()
	if !sh.within() {
		p.settle(s, sh, bit)
	}
}

// settle raises the allowance of a shelf, or takes a slot out of it that was just put there.
func (p *Pool) settle(s *pooled, sh *shelf, bit uint64) {
	for !sh.within() {
		granted := p.bound.grant(sh, p.shelves)
		if p.closed.Load() { // Close may have taken all allowances before this one, or before grant gave one back to another shelf
			p.empty()
			return
		}
		if !granted {
			if sh.takeBit(bit) {
				p.release(s)
			}
			return
		}
	}
}

// shelves calls a function for each shelf until it returns false.
func (p *Pool) shelves(yield func(*shelf) bool) {
	for i := range p.classes {
		for _, sh := range p.classes[i].list() {
			if !yield(sh) {
				return
			}
		}
	}
}

// Owner returns the allocator's identity.
func (p *Pool) Owner() *Owner {
	if p == nil {
		return nil
	}
	return p.owner
}

// Kind returns the kind of the wrapped allocator.
func (p *Pool) Kind() Kind {
	if p == nil {
		return NoMemory
	}
	return p.kind
}

// Stats counts blocks by state. LiveBytes counts whole blocks: Tracked counts the requested bytes. It visits every slot.
func (p *Pool) Stats() Stats {
	if p == nil {
		return Stats{}
	}
	s := Stats{
		PendingBytes: p.pendingBytes.Load(), ReleasingBytes: p.releasingBytes.Load(),
		Refusals: p.refusals.Load(), Misses: p.misses.Load(), Releases: p.releases.Load(),
		ReleaseFailures: p.releaseFailures.Load(), LookFailures: p.lookFailures.Load(),
		LiveBlocks: -p.pendingBlocks.Load() - p.releasingBlocks.Load(),
	}
	s.LiveBytes = -s.PendingBytes - s.ReleasingBytes
	for sh := range p.shelves {
		free := int64(bits.OnesCount64(sh.free.Load()))
		taken := shelfSlots - free - int64(bits.OnesCount64(sh.vacant.Load()))
		s.KeptBytes += free * sh.bytes
		s.LiveBlocks += taken
		s.LiveBytes += taken * sh.bytes
		for i := range sh.slots {
			s.Frees += sh.slots[i].word.Load()
		}
	}
	s.LiveBlocks, s.LiveBytes = max(s.LiveBlocks, 0), max(s.LiveBytes, 0)
	s.Allocs = s.Frees + uint64(s.LiveBlocks)
	return s
}
