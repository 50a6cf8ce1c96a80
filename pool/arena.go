package pool

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pool/memory"
)

const (
	// arenaBytes bounds the pages that a pool can name. Not larger: offsets are counted in units of
	// 512 bytes in 32 bits, and in an arena of this length the last page is never lent: see
	// heap.MostPages. Not smaller: holes of recycled windows need room, and reserving costs
	// nothing.
	arenaBytes = 2 << 40
	// plainPageBytes is the page where the driver has no granularity of its own. Not larger: memory
	// is lent in whole pages. Not smaller: cuMemAlloc aligns multiples of it to it, as measured on
	// an H200.
	plainPageBytes = 2 << 20
	// plainShare is how many times the device's memory a pool of plain segments can name. Not
	// smaller: between segments there are holes, and segments of another length need new numbers.
	// Not larger: each number costs eight bytes once it was used.
	plainShare = 4
)

// errMisaligned reports a driver that breaks a rule of the conformance suite.
var errMisaligned = errors.New("pool: a plain allocation of whole pages does not begin at a multiple of one")

// arena maps page numbers to addresses.
type arena struct {
	base      cudadrv.Ptr // of the reservation; 0 with plain segments
	bytes     int64
	pageBytes int64
	// places are the addresses of the pages of plain segments, by number; nil with virtual memory.
	// The driver goroutine writes an entry before the page is granted; the entry stays until the
	// page was returned and its segment freed.
	places []cudadrv.Ptr
}

// PageBytes returns the page of a device: the driver's granularity, or the alignment of plain segments.
func PageBytes(info cudadrv.Info, plain bool) int64 {
	if plain {
		return plainPageBytes
	}
	return info.GranularityBytes
}

// openArena reserves address space, or makes the table of places for plain segments.
func openArena(device cudadrv.Device, plain bool) (arena, error) {
	info := device.Info()
	total := max(info.TotalBytes, 1<<30)
	plain = plain || !info.Capabilities.Has(cudadrv.VirtualMemory)
	page := PageBytes(info, plain)
	if plain {
		pages := min(arenaBytes, plainShare*total) / page
		return arena{bytes: pages * page, pageBytes: page, places: make([]cudadrv.Ptr, pages)}, nil
	}
	// Twice the limit is enough for any window between live memory; more lets holes rest.
	size := min(arenaBytes, 16*total) / page * page
	base, err := device.MemAddressReserve(size)
	if err != nil {
		return arena{}, fmt.Errorf("pool: %w", err)
	}
	return arena{base: base, bytes: size, pageBytes: page}, nil
}

// freeArena releases the address space.
func (a *arena) freeArena(device cudadrv.Device) error {
	if a.places != nil {
		return nil
	}
	if err := device.MemAddressFree(a.base, a.bytes); err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	return nil
}

// PageBytes returns the unit in which memory is lent.
func (a *arena) PageBytes() int64 { return a.pageBytes }

// Base returns the address of page 0; 0 where pages have Places.
func (a *arena) Base() cudadrv.Ptr { return a.base }

// Places returns the addresses of plain pages by number: consecutive numbers in one run have
// consecutive addresses. A client may read the entries of the pages that it was granted. Nil with
// virtual memory: the address is Base plus the number times PageBytes.
func (a *arena) Places() []cudadrv.Ptr { return a.places }

// pagesFor returns the number of pages for so many bytes: at most one more than the arena has, which no
// request gets. 0 for a negative number.
func (a *arena) pagesFor(bytes int64) uint32 {
	if bytes > a.bytes {
		return uint32(a.bytes/a.pageBytes) + 1 //nolint:gosec // pages of one arena
	}
	return uint32((max(0, bytes) + a.pageBytes - 1) / a.pageBytes) //nolint:gosec // pages of one arena
}

// at returns the address of a mapped page.
func (a *arena) at(page uint32) cudadrv.Ptr {
	if a.places != nil {
		return a.places[page]
	}
	return a.base + cudadrv.Ptr(page)*cudadrv.Ptr(a.pageBytes)
}

// alloc makes a plain segment and enters its places.
func (d *driver) alloc(op *memory.Op) error {
	p := d.pool
	at, err := p.device.MemAlloc(int64(op.Run.Pages) * p.pageBytes)
	if err != nil {
		return err
	}
	if at%cudadrv.Ptr(p.pageBytes) != 0 {
		return errors.Join(fmt.Errorf("%w: %#x", errMisaligned, uint64(at)), p.device.MemFree(at))
	}
	op.Address = at
	for i := range op.Run.Pages {
		p.places[op.Run.First+i] = at + cudadrv.Ptr(i)*cudadrv.Ptr(p.pageBytes)
	}
	return nil
}
