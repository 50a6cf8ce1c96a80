package host

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
)

// pageBytes is the least alignment of page-locked memory: whole pages of the host are locked.
const pageBytes = 4096

// PageLockedMemory is a source of page-locked memory of a driver: each Alloc and each Free is a
// driver call, and Free waits for the device. Programs want a Pool around it: NewPageLocked.
type PageLockedMemory struct {
	owner  *Owner
	memory cudadrv.HostMemory
	counts counters
	closed atomic.Bool
}

// PageLockedSource makes a source of a device's page-locked memory, without a cache. The device is
// the caller's, and stays open until all blocks were freed. Error: *CapabilityError.
func PageLockedSource(d cudadrv.Device) (*PageLockedMemory, error) {
	if d == nil {
		return nil, &ConfigError{Field: "Device", Value: d, Want: "an opened device"}
	}
	memory, ok := d.(cudadrv.HostMemory)
	if !ok || !d.Info().Capabilities.Has(cudadrv.PinnedHost) {
		return nil, &CapabilityError{Device: d.Info().Name, Want: cudadrv.PinnedHost}
	}
	p := &PageLockedMemory{memory: memory}
	p.owner = NewOwner(p)
	return p, nil
}

// NewPageLocked makes a cache of a device's page-locked memory: a Pool around a PageLockedSource. It
// makes no driver call. cfg.Device is set to d. Errors: *CapabilityError, *ConfigError.
func NewPageLocked(d cudadrv.Device, cfg PoolConfig) (*Pool, error) {
	source, err := PageLockedSource(d)
	if err != nil {
		return nil, err
	}
	cfg.Device = d
	return Pooled(source, cfg)
}

// Alloc makes a block by a driver call. Errors: *SizeError, *AlignError, ErrClosed, *MemoryError
// where the driver has no memory, and the driver's.
func (p *PageLockedMemory) Alloc(bytes, align int64) (Block, error) {
	if p == nil {
		return Block{}, notOpen()
	}
	if err := p.counts.admit(bytes, align, PageLocked, &p.closed); err != nil || bytes == 0 {
		return Block{}, err
	}
	if p.memory == nil {
		return Block{}, notOpen()
	}
	b, err := p.make(bytes, align)
	if err != nil {
		p.counts.refusals.Add(1)
		return Block{}, err
	}
	p.counts.alloc(bytes)
	return b, nil
}

func (p *PageLockedMemory) make(bytes, align int64) (b Block, err error) {
	length := bytes
	if align > pageBytes {
		length += align - pageBytes
	}
	memory, err := p.memory.MemHostAlloc(length)
	if errors.Is(err, cudadrv.OutOfMemory) {
		return Block{}, &MemoryError{RequestedBytes: bytes, Err: err}
	}
	if err != nil {
		return Block{}, err
	}
	kept := false
	defer func() {
		if !kept { // also after a panic of the driver
			err = errors.Join(err, p.memory.MemFreeHost(memory))
		}
	}()
	base := unsafe.Pointer(unsafe.SliceData(memory))
	offset := lead(uint64(uintptr(base)), align)
	if offset+bytes > int64(len(memory)) { // less aligned than a page: no driver is known to do that
		return Block{}, &AlignError{Align: align, Limit: int64(uintptr(base) & -uintptr(base))}
	}
	ptr, err := p.memory.MemHostGetDevicePointer(memory)
	if err != nil {
		return Block{}, err
	}
	kept = true
	at := &lockedPages{memory: memory}
	at.slot.where, at.slot.data, at.slot.ptr, at.slot.offset = at, base, ptr, offset
	return Block{owner: p.owner, slot: &at.slot, bytes: bytes}, nil
}

// lockedPages is one allocation of the driver.
type lockedPages struct {
	waitless

	slot   slot
	memory []byte
}

// AllocZeroed is Alloc, and clears the memory.
func (p *PageLockedMemory) AllocZeroed(bytes, align int64) (Block, error) {
	b, err := p.Alloc(bytes, align)
	clear(b.Bytes())
	return b, err
}

// Free is a driver call, which waits for all queued work of the device. If the driver refuses, the
// block is live.
func (p *PageLockedMemory) Free(b Block) error {
	if p == nil {
		return notOpen()
	}
	b, err := b.reown(p.owner, p.owner)
	if b.slot == nil { // also with an error
		return err
	}
	if err := b.slot.end(b.word); err != nil {
		return err
	}
	done := false
	defer func() { // also after a panic of the driver
		if !done {
			b.slot.revive(b.word)
		}
	}()
	if err := p.memory.MemFreeHost(b.slot.where.(*lockedPages).memory); err != nil { //nolint:forcetypeassert // this source makes all of its slots
		return err
	}
	done = true
	p.counts.free(b.bytes)
	return nil
}

// Owner returns the allocator's identity.
func (p *PageLockedMemory) Owner() *Owner {
	if p == nil {
		return nil
	}
	return p.owner
}

// Kind is PageLocked.
func (p *PageLockedMemory) Kind() Kind { return PageLocked }

// Stats counts blocks and requested bytes.
func (p *PageLockedMemory) Stats() Stats {
	if p == nil {
		return Stats{}
	}
	return p.counts.stats()
}

// Close refuses further requests. It does not wait, nor close the device. Error: *LeakError; the
// blocks stay valid.
func (p *PageLockedMemory) Close(ctx context.Context) error {
	if p == nil {
		return notOpen()
	}
	if ctx == nil {
		return ErrNilContext
	}
	p.closed.Store(true)
	return leak(PageLocked, p.Stats())
}
