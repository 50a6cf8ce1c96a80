package sim

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// pin is a range of page-locked host memory. It has an address in the GPU's own space, since host addresses may equal reserved
// ones.
type pin struct {
	host      []byte
	start     cudadrv.Ptr
	spanBytes int64
	owned     bool // by the GPU: of MemHostAlloc
}

// pinned is the page-locked memory of a GPU. Ranges do not overlap.
type pinned struct {
	byHost byAddress[*pin]
	byPtr  byAddress[*pin]
}

// hostPtr returns the host address of b's first byte, also where b has a capacity only.
func hostPtr(b []byte) cudadrv.Ptr { return cudadrv.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// around returns the range that has all of the device addresses [p, p+bytes), nil if there is none.
func (t *pinned) around(p cudadrv.Ptr, bytes int64) *pin {
	if _, m, ok := t.byPtr.floor(p); ok && m.contains(p-m.start, bytes) {
		return m
	}
	return nil
}

// aroundHost returns the range that has all of b, nil if there is none.
func (t *pinned) aroundHost(b []byte) *pin {
	p := hostPtr(b)
	if start, m, ok := t.byHost.floor(p); ok && m.contains(p-start, int64(len(b))) {
		return m
	}
	return nil
}

// contains reports whether the bytes from an offset on are inside, without overflow.
func (m *pin) contains(offset cudadrv.Ptr, bytes int64) bool {
	length := int64(len(m.host))
	return bytes >= 0 && bytes <= length && uint64(offset) <= uint64(length-bytes)
}

// overlapping returns the last range that has a byte of b, which has some, nil if there is none.
func (t *pinned) overlapping(b []byte) *pin {
	p := hostPtr(b)
	if start, m, ok := t.byHost.floor(p + cudadrv.Ptr(len(b)) - 1); ok && start+cudadrv.Ptr(len(m.host)) > p {
		return m
	}
	return nil
}

// check reports an inconsistency of the bookkeeping.
func (t *pinned) check() error {
	err := errors.Join(t.byHost.check(), t.byPtr.check())
	if t.byHost.count != t.byPtr.count {
		err = errors.Join(err, fmt.Errorf("%d ranges of page-locked memory have %d addresses", t.byHost.count, t.byPtr.count))
	}
	for p, m := range t.byHost.from(0) {
		if found, ok := t.byPtr.at(m.start); p != hostPtr(m.host) || !ok || found != m {
			err = errors.Join(err, fmt.Errorf("page-locked memory at %#x is in the books at %#x and %#x", hostPtr(m.host), p, m.start))
		}
	}
	return err
}

// pin page-locks host memory and finds it an address.
func (g *gpu) pin(c call.Call, host []byte, owned bool) error {
	start, spanBytes, ok := g.driver.space.take(int64(len(host)))
	if !ok {
		return fail(c, cudadrv.OutOfMemory, "no %d bytes of address space side by side", len(host))
	}
	m := &pin{host: host, start: start, spanBytes: spanBytes, owned: owned}
	g.pinned.byHost.put(hostPtr(host), m)
	g.pinned.byPtr.put(start, m)
	return nil
}

// unpin forgets page-locked memory and releases the GPU's resources for it.
func (g *gpu) unpin(c call.Call, m *pin) error {
	g.pinned.byHost.drop(hostPtr(m.host))
	g.pinned.byPtr.drop(m.start)
	g.driver.space.give(m.start, m.spanBytes)
	if !m.owned {
		return nil
	}
	host := m.host
	m.host = nil
	return hostFailed(c, g.backing.release(unsafe.Pointer(unsafe.SliceData(host)), int64(len(host))))
}
