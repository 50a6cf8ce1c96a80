package interp

import (
	"fmt"

	"github.com/go-vram/vram/compute/ptx"
)

// region is memory that a run has found, with the accesses to it.
type region struct {
	Region

	chunks [][]cell // of chunkCells each, made when they are touched
	stored []uint64 // a bit for each byte that this run has written; nil where nobody asks: see Region.Declared
}

// chunkCells is how many cells are made at once.
const chunkCells = 1024

// memo is the region that an instruction touched last.
type memo struct{ region *region }

// cells returns the cells of an access.
func (g *region) cells(offset, bytes uint64, shift uint) []cell {
	first, last := offset>>shift, (offset+bytes-1)>>shift
	chunk := first / chunkCells
	if g.chunks == nil {
		g.chunks = make([][]cell, uint64(len(g.Bytes))>>shift/chunkCells+1)
	}
	if g.chunks[chunk] == nil {
		g.chunks[chunk] = make([]cell, chunkCells)
	}
	at := first % chunkCells
	return g.chunks[chunk][at:min(at+last-first+1, chunkCells)] // an aligned access is in one chunk
}

// owner names the owner of the region, to follow the number of a byte.
func (g *region) owner() string {
	if g.Owner == nil {
		return fmt.Sprintf(" of the %d at %#x", len(g.Bytes), g.Start)
	}
	return " of " + g.Owner.String()
}

// declares reports whether each byte of an access is in a part that is written, or read.
func (g *region) declares(a *access, write bool) bool {
	for at, end := a.address, a.address+uint64(a.bytes); at < end; { //nolint:gosec // few bytes
		next := at
		for _, d := range g.Declared {
			if d.Write == write && d.Start <= at && at-d.Start < d.Bytes {
				next = max(next, d.Start+d.Bytes)
			}
		}
		if next == at {
			return false
		}
		at = next
	}
	return true
}

// variableOwner names a variable of the module as the owner of memory.
type variableOwner struct{ variable *ptx.Variable }

// String returns the variable's name.
func (o variableOwner) String() string { return "variable " + o.variable.Name }
