package interp

import (
	"fmt"

	"github.com/go-vram/vram/compute/ptx"
)

// region is memory that a run has found, with the accesses to it.
type region struct {
	Region

	pages []*page // of pageCells cells each, made when they are touched
	ways  [2]way  // where the launch may read, and write
}

// way is a part of a region in which every access is allowed, as far as it is known.
type way struct{ start, bytes uint64 }

// page is the accesses to pageCells cells of a region, and their bytes.
type page struct {
	cells    []cell
	constant *[pageCells]touch // the first non-coherent load of each cell; nil without one
	bytes    []byte            // up to the end of the page, and of an access that begins there
	written  []uint64          // a bit for each byte that was written; nil: all were
	stored   []uint64          // likewise, that this run has written; nil where nobody asks: see Region.Declared
	apart    *apart            // nil where the bytes are the region's own
}

// pageCells is how many cells are made at once.
const pageCells = 1 << pageBits

const (
	pageBits  = 10
	wordBits  = 64
	overreach = 16 // bytes of an access that begins at the end of a page
)

// memo is the region that an instruction touched last.
type memo struct{ region *region }

// page returns the page around an offset, and the offset in it.
func (g *region) page(offset uint64, r *run) (p *page, at uint64) {
	shift := r.shift[1] + pageBits
	n := offset >> shift
	if g.pages == nil {
		g.pages = make([]*page, uint64(len(g.Bytes))>>shift+1)
	}
	if g.pages[n] == nil {
		g.pages[n] = g.newPage(n<<shift, 1<<shift, r)
	}
	return g.pages[n], offset & (1<<shift - 1)
}

// newPage makes the page from an offset on.
func (g *region) newPage(start, bytes uint64, r *run) *page {
	end := uint64(len(g.Bytes))
	p := &page{bytes: g.Bytes[start:min(start+bytes+overreach, end)]}
	p.cells = make([]cell, (min(bytes, end-start)-1)>>r.shift[1]+1)
	if g.Initialised != nil {
		p.written = g.Initialised[start/wordBits : min((start+bytes)/wordBits, uint64(len(g.Initialised)))]
	}
	if g.Declared != nil {
		p.stored = make([]uint64, bytes/wordBits)
	}
	if r.worker != nil {
		p.apart = &apart{}
	}
	return p
}

// cellsOf returns the cells of an access.
func (p *page) cellsOf(at, bytes uint64, shift uint) []cell {
	first, last := at>>shift, (at+bytes-1)>>shift
	return p.cells[first:min(last+1, uint64(len(p.cells)))] // an aligned access is in one page
}

// owner names the owner of the region, to follow the number of a byte.
func (g *region) owner() string {
	if g.Owner == nil {
		return fmt.Sprintf(" of the %d at %#x", len(g.Bytes), g.Start)
	}
	return " of " + g.Owner.String()
}

// declares reports whether each byte of an access is in a part that is written, or read. It remembers a part that has all.
func (g *region) declares(a *access, write bool) bool {
	for at, end := a.address, a.address+uint64(a.bytes); at < end; { //nolint:gosec // few bytes
		next := at
		for _, d := range g.Declared {
			if d.Write == write && d.Start <= at && at-d.Start < d.Bytes {
				next = max(next, d.Start+d.Bytes)
				if at == a.address && next >= end {
					g.allow(d, write)
				}
			}
		}
		if next == at {
			return false
		}
		at = next
	}
	return true
}

// allow remembers a declared part, as far as it is in the region.
func (g *region) allow(d Declared, write bool) {
	start := max(d.Start, g.Start)
	g.ways[index(write)] = way{start, min(d.Start+d.Bytes, g.Start+uint64(len(g.Bytes))) - start}
}

// index is 1 of a store.
func index(write bool) int {
	if write {
		return 1
	}
	return 0
}

// variableOwner names a variable of the module as the owner of memory.
type variableOwner struct{ variable *ptx.Variable }

// String returns the variable's name.
func (o variableOwner) String() string { return "variable " + o.variable.Name }
