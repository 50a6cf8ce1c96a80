package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// page is one granule of address space in the dumb model of virtual memory.
type page struct {
	reservation int            // which reservation it belongs to
	mapped      cudadrv.Handle // 0: nothing
	part        int64          // which granule of the handle
	accessible  bool
}

// body is a physical allocation in the model.
type body struct {
	granules int64
	released bool
}

// pageMap is the dumb reference: a page for each reserved granule, a body for each handle. Everything is
// found by looking at all of it.
type pageMap struct {
	t        *rapid.T
	dev      *sim.Device
	capacity int64 // granules
	pages    map[cudadrv.Ptr]*page
	starts   map[int]cudadrv.Ptr // reservations
	granules map[int]int64
	bodies   map[cudadrv.Handle]*body
	plain    map[cudadrv.Ptr]int64
	next     int
}

const modelGranule = 512

func (m *pageMap) mappings(h cudadrv.Handle) (count int64) {
	for _, pg := range m.pages {
		if pg.mapped == h {
			count++
		}
	}
	return count
}

func (m *pageMap) used() (granules int64) {
	for h, b := range m.bodies {
		if !b.released || m.mappings(h) > 0 {
			granules += b.granules
		}
	}
	for _, n := range m.plain {
		granules += n
	}
	return granules
}

// expect asserts that a call came out as the model wants it.
func (m *pageMap) expect(want cudadrv.Result, err error, what string) {
	m.t.Helper()
	if want == cudadrv.Success {
		require.NoError(m.t, err, what)
		return
	}
	require.ErrorIs(m.t, err, want, what)
}

// address draws an address that is likely to matter: around a reservation's pages, sometimes misaligned.
func (m *pageMap) address() cudadrv.Ptr {
	keys := slices.Sorted(maps.Keys(m.pages))
	if len(keys) == 0 {
		return cudadrv.Ptr(rapid.Uint64().Draw(m.t, "wild"))
	}
	p := rapid.SampledFrom(keys).Draw(m.t, "page")
	switch rapid.IntRange(0, 19).Draw(m.t, "off") {
	case 0:
		return p + modelGranule
	case 1:
		return p - modelGranule
	case 2:
		return p + 1
	}
	return p
}

func (m *pageMap) handle() cudadrv.Handle {
	keys := slices.Sorted(maps.Keys(m.bodies))
	if len(keys) == 0 {
		return 0
	}
	return rapid.SampledFrom(keys).Draw(m.t, "handle")
}

func (m *pageMap) reserve(*rapid.T) {
	n := rapid.Int64Range(-1, 12).Draw(m.t, "granules")
	p, err := m.dev.MemAddressReserve(n * modelGranule)
	if n <= 0 {
		m.expect(cudadrv.InvalidValue, err, "reserve")
		return
	}
	m.expect(cudadrv.Success, err, "reserve")
	m.next++
	for i := range n {
		at := p + cudadrv.Ptr(i*modelGranule)
		require.NotContains(m.t, m.pages, at, "reservations overlap")
		require.NotContains(m.t, m.plain, at, "reserved where a plain allocation is")
		m.pages[at] = &page{reservation: m.next}
	}
	m.starts[m.next], m.granules[m.next] = p, n
}

func (m *pageMap) addressFree(*rapid.T) {
	p, n := m.address(), rapid.Int64Range(0, 12).Draw(m.t, "granules")
	want, which := cudadrv.InvalidValue, 0
	for id, start := range m.starts {
		if start == p && rapid.Bool().Draw(m.t, "exact") {
			n = m.granules[id]
		}
		if start == p && m.granules[id] == n {
			want, which = cudadrv.Success, id
		}
	}
	for _, pg := range m.pages {
		if pg.reservation == which && pg.mapped != 0 {
			want = cudadrv.InvalidValue
		}
	}
	m.expect(want, m.dev.MemAddressFree(p, n*modelGranule), "address free")
	if want == cudadrv.Success {
		maps.DeleteFunc(m.pages, func(_ cudadrv.Ptr, pg *page) bool { return pg.reservation == which })
		delete(m.starts, which)
		delete(m.granules, which)
	}
}

func (m *pageMap) create(*rapid.T) {
	n := rapid.Int64Range(0, 5).Draw(m.t, "granules")
	h, err := m.dev.MemCreate(n * modelGranule)
	switch {
	case n == 0:
		m.expect(cudadrv.InvalidValue, err, "create")
	case m.used()+n > m.capacity:
		m.expect(cudadrv.OutOfMemory, err, "create")
	default:
		m.expect(cudadrv.Success, err, "create")
		require.NotContains(m.t, m.bodies, h)
		m.bodies[h] = &body{granules: n}
	}
}

func (m *pageMap) release(*rapid.T) {
	h := m.handle()
	b := m.bodies[h]
	if b == nil || b.released {
		m.expect(cudadrv.InvalidValue, m.dev.MemRelease(h), "release")
		return
	}
	m.expect(cudadrv.Success, m.dev.MemRelease(h), "release")
	b.released = true
}

func (m *pageMap) mapHandle(*rapid.T) {
	p, h := m.address(), m.handle()
	n := int64(1)
	if b := m.bodies[h]; b != nil {
		n = b.granules
	}
	if rapid.IntRange(0, 9).Draw(m.t, "resize") == 0 {
		n++
	}
	want := m.mapResult(p, n, h)
	m.expect(want, m.dev.MemMap(p, n*modelGranule, h), fmt.Sprintf("map %d granules at %#x", n, p))
	if want == cudadrv.Success {
		for i := range n {
			*m.pages[p+cudadrv.Ptr(i*modelGranule)] = page{
				reservation: m.pages[p].reservation, mapped: h, part: i,
			}
		}
	}
}

func (m *pageMap) mapResult(p cudadrv.Ptr, n int64, h cudadrv.Handle) cudadrv.Result {
	b := m.bodies[h]
	if b == nil || b.released {
		return cudadrv.InvalidValue
	}
	if b.granules != n {
		return cudadrv.NotSupported
	}
	want := cudadrv.Success
	for i := range n {
		pg, first := m.pages[p+cudadrv.Ptr(i*modelGranule)], m.pages[p]
		if pg == nil || pg.reservation != first.reservation {
			return cudadrv.InvalidValue
		}
		if pg.mapped != 0 {
			want = cudadrv.AlreadyMapped
		}
	}
	return want
}

// tiles says whether n granules from p on are whole mappings of one reservation.
func (m *pageMap) tiles(p cudadrv.Ptr, n int64, hole cudadrv.Result) cudadrv.Result {
	first := m.pages[p]
	if n <= 0 || first == nil {
		return cudadrv.InvalidValue
	}
	for i := range n {
		if pg := m.pages[p+cudadrv.Ptr(i*modelGranule)]; pg == nil || pg.reservation != first.reservation {
			return cudadrv.InvalidValue
		}
	}
	for i := range n {
		pg := m.pages[p+cudadrv.Ptr(i*modelGranule)]
		if pg.mapped == 0 {
			return hole
		}
		if i == 0 && pg.part != 0 {
			return cudadrv.InvalidValue
		}
		// The mapping at i must end inside as well.
		if i-pg.part+m.bodies[pg.mapped].granules > n {
			return cudadrv.InvalidValue
		}
	}
	return cudadrv.Success
}

func (m *pageMap) setAccess(*rapid.T) {
	p, n := m.address(), rapid.Int64Range(0, 8).Draw(m.t, "granules")
	want := m.tiles(p, n, cudadrv.InvalidValue)
	m.expect(want, m.dev.MemSetAccess(p, n*modelGranule), fmt.Sprintf("access to %d granules at %#x", n, p))
	if want == cudadrv.Success {
		for i := range n {
			m.pages[p+cudadrv.Ptr(i*modelGranule)].accessible = true
		}
	}
}

func (m *pageMap) unmap(*rapid.T) {
	p, n := m.address(), rapid.Int64Range(0, 8).Draw(m.t, "granules")
	want := m.tiles(p, n, cudadrv.NotMapped)
	m.expect(want, m.dev.MemUnmap(p, n*modelGranule), fmt.Sprintf("unmap %d granules at %#x", n, p))
	if want == cudadrv.Success {
		for i := range n {
			at := p + cudadrv.Ptr(i*modelGranule)
			*m.pages[at] = page{reservation: m.pages[at].reservation}
		}
	}
}

func (m *pageMap) memset(*rapid.T) {
	p := m.address()
	bytes := rapid.Int64Range(1, 6*modelGranule).Draw(m.t, "bytes")
	want, start := cudadrv.Success, p&^(modelGranule-1)
	first := m.pages[start]
	for i := range (int64(p-start)+bytes-1)/modelGranule + 1 {
		if pg := m.pages[start+cudadrv.Ptr(i*modelGranule)]; first == nil || pg == nil || !pg.accessible || pg.reservation != first.reservation {
			want = cudadrv.IllegalAddress
		}
	}
	m.expect(want, m.dev.MemsetD8Async(p, 0, bytes, 0), fmt.Sprintf("memset of %d bytes at %#x", bytes, p))
}

func (m *pageMap) alloc(*rapid.T) {
	n := rapid.Int64Range(0, 4).Draw(m.t, "granules")
	p, err := m.dev.MemAlloc(n * modelGranule)
	switch {
	case n == 0:
		m.expect(cudadrv.InvalidValue, err, "alloc")
	case m.used()+n > m.capacity:
		m.expect(cudadrv.OutOfMemory, err, "alloc")
	default:
		m.expect(cudadrv.Success, err, "alloc")
		for i := range n {
			require.NotContains(m.t, m.pages, p+cudadrv.Ptr(i*modelGranule))
		}
		m.plain[p] = n
	}
}

func (m *pageMap) free(*rapid.T) {
	p := m.address()
	if keys := slices.Sorted(maps.Keys(m.plain)); len(keys) > 0 && rapid.Bool().Draw(m.t, "live") {
		p = rapid.SampledFrom(keys).Draw(m.t, "plain")
	}
	if p == 0 { // frees nothing and is no mistake
		m.expect(cudadrv.Success, m.dev.MemFree(p), "free")
		return
	}
	if m.plain[p] == 0 {
		m.expect(cudadrv.InvalidValue, m.dev.MemFree(p), "free")
		return
	}
	m.expect(cudadrv.Success, m.dev.MemFree(p), "free")
	delete(m.plain, p)
}

// check compares the books after each step.
func (m *pageMap) check(*rapid.T) {
	require.NoError(m.t, m.dev.Audit())
	freeBytes, _, err := m.dev.MemGetInfo()
	require.NoError(m.t, err)
	require.Equal(m.t, (m.capacity-m.used())*modelGranule, freeBytes)
}

func TestVirtualMemoryAgainstAPageMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 24
		drv := sim.New(sim.Config{GranularityBytes: modelGranule, TotalBytes: capacity * modelGranule})
		dev, err := drv.Open(0)
		require.NoError(t, err)
		m := &pageMap{
			t: t, dev: drv.Device(0), capacity: capacity,
			pages: map[cudadrv.Ptr]*page{}, starts: map[int]cudadrv.Ptr{}, granules: map[int]int64{},
			bodies: map[cudadrv.Handle]*body{}, plain: map[cudadrv.Ptr]int64{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": m.reserve, "address free": m.addressFree, "create": m.create, "release": m.release,
			"map": m.mapHandle, "map more": m.mapHandle, "access": m.setAccess, "unmap": m.unmap,
			"memset": m.memset, "alloc": m.alloc, "free": m.free, "": m.check,
		})
		require.NoError(t, dev.Close())
	})
}
