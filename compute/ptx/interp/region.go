package interp

import (
	"errors"
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

// region finds global memory around an access.
func (w *warp) region(a *access) *region {
	m := &w.block.memo[w.at]
	if r := m.region; r != nil && a.address >= r.Start && a.address-r.Start+uint64(a.bytes) <= uint64(len(r.Bytes)) { //nolint:gosec // few bytes
		return r
	}
	r, err := w.block.run.find(a)
	if err != nil {
		kind := OutOfBounds
		if errors.Is(err, ErrNotLive) {
			kind = NotLive
		}
		w.fail(&Fault{Kind: kind, Space: a.space, Address: a.address, Bytes: a.bytes, Err: err}, a.thread)
		return nil
	}
	m.region = r
	return r
}

var errNoMemory = errors.New("the launch has no global memory")

// find asks those who know memory.
func (r *run) find(a *access) (*region, error) {
	for _, known := range r.regions {
		if a.address >= known.Start && a.address-known.Start+uint64(a.bytes) <= uint64(len(known.Bytes)) { //nolint:gosec // few bytes
			return known, nil
		}
	}
	found, err := r.ask(a)
	if err != nil {
		return nil, err
	}
	if a.address < found.Start || a.address-found.Start+uint64(a.bytes) > uint64(len(found.Bytes)) { //nolint:gosec // few bytes
		return nil, fmt.Errorf("the access is not inside the %d bytes at %#x", len(found.Bytes), found.Start)
	}
	known := &region{Region: found}
	if len(found.Declared) > 0 {
		known.stored = make([]uint64, (len(found.Bytes)+63)/64) //nolint:mnd // bits of a word
	}
	r.regions = append(r.regions, known)
	return known, nil
}

func (r *run) ask(a *access) (Region, error) {
	for _, own := range r.own {
		if a.address >= own.Start && a.address-own.Start < uint64(len(own.Bytes)) {
			return own, nil
		}
	}
	if r.launch.Memory == nil {
		return Region{}, errNoMemory
	}
	found, err := r.launch.Memory.Range(a.address, a.bytes, a.write)
	if err == nil && found.Owner == nil {
		if v := r.variableAt(found.Start); v != nil {
			found.Owner = variableOwner{v}
		}
	}
	return found, err
}

// variableOwner names a variable of the module as the owner of memory.
type variableOwner struct{ variable *ptx.Variable }

// String is the variable's name.
func (o variableOwner) String() string { return "variable " + o.variable.Name }

// variableAt is the variable of the module that begins at an address, or nil.
func (r *run) variableAt(start uint64) *ptx.Variable {
	for v, address := range r.globals {
		if address == start && InitialBytes(v) > 0 {
			return v
		}
	}
	return nil
}

// cells are those of an access.
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

// reach finds the bytes of an access and checks it. It returns nil after a fault.
func (w *warp) reach(a *access) []byte {
	if a.space == ptx.Generic {
		a.space = spaceAt(a.address)
		if a.space != ptx.Global {
			a.address &= 1<<windowShift - 1
		}
	}
	if a.address&uint64(a.bytes-1) != 0 && a.space != ptx.Param { //nolint:gosec // a power of two
		w.fail(&Fault{Kind: Misaligned, Space: a.space, Address: a.address, Bytes: a.bytes}, a.thread)
		return nil
	}
	switch a.space {
	case ptx.Shared:
		return w.reachShared(a)
	case ptx.Local:
		return w.reachLocal(a)
	case ptx.Param:
		return w.reachParam(a)
	case ptx.Generic, ptx.Global, ptx.Const:
	}
	return w.reachGlobal(a)
}

func (w *warp) reachGlobal(a *access) []byte {
	g := w.region(a)
	if g == nil {
		return nil
	}
	if a.write && a.space == ptx.Const {
		return w.refuse(a, ReadOnly, "")
	}
	offset := a.address - g.Start
	now := g.Bytes[offset : offset+uint64(a.bytes)] //nolint:gosec // few bytes
	if g.Declared != nil && !w.declared(a, g, offset) {
		return nil
	}
	if g.Initialised != nil && !w.contents(a, g, offset) {
		return nil
	}
	cells := g.cells(offset, uint64(a.bytes), w.block.run.shift[1]) //nolint:gosec // few bytes
	if !w.check(a, cells, GlobalRace, now) {
		return nil
	}
	return now
}

// initialised reports whether all bytes of a load were written; a store writes them.
func (w *warp) initialised(a *access, written []uint64, offset uint64) bool {
	field := mask(a.bytes) << (offset & 63) //nolint:mnd // an aligned access is in one word
	word := &written[offset>>6]
	switch {
	case a.read && *word&field != field && !w.block.run.ignored[Uninitialised]:
		return w.unwritten(a)
	case a.write:
		*word |= field
	}
	return true
}

// unwritten reports a load. One of shared memory may turn out to be too early, so that it waits for a verdict.
func (w *warp) unwritten(a *access) bool {
	w.refuse(a, Uninitialised, "the memory was not written")
	if a.space != ptx.Shared {
		return false
	}
	f, ok := w.fault.(*Fault) //nolint:errorlint // not wrapped
	if w.fault = nil; ok && w.block.suspect == nil {
		w.block.suspect = f
	}
	return true
}

// refuse reports an access.
func (w *warp) refuse(a *access, kind Kind, detail string) []byte {
	w.fail(&Fault{Kind: kind, Space: a.space, Address: a.address, Bytes: a.bytes, Detail: detail}, a.thread)
	return nil
}

func (w *warp) reachShared(a *access) []byte {
	b := w.block
	if a.address >= uint64(len(b.shared)) || uint64(len(b.shared))-a.address < uint64(a.bytes) { //nolint:gosec // few bytes
		return w.refuse(a, OutOfBounds, fmt.Sprintf("the block has %d bytes of shared memory", len(b.shared)))
	}
	if b.asyncs > 0 && !w.arrived(a) {
		return nil
	}
	now := b.shared[a.address : a.address+uint64(a.bytes)]                                  //nolint:gosec // few bytes
	first, last := a.address>>b.run.shift[0], (a.address+uint64(a.bytes)-1)>>b.run.shift[0] //nolint:gosec // few bytes
	if !w.check(a, b.cells[first:last+1], SharedRace, now) || !w.initialised(a, b.initialised, a.address) {
		return nil
	}
	return now
}

func (w *warp) reachLocal(a *access) []byte {
	l, f := &w.local[a.thread], w.frame
	end := f.base + f.fn.localBytes
	if a.address >= uint64(end) || uint64(end)-a.address < uint64(a.bytes) { //nolint:gosec // not negative
		return w.refuse(a, OutOfBounds, fmt.Sprintf("the thread has %d bytes of local memory", end))
	}
	l.grow(end)
	start := int(a.address) //nolint:gosec // below the end
	if a.write {
		l.mark(start, a.bytes)
	}
	return l.bytes[start : start+a.bytes]
}

func (w *warp) reachParam(a *access) []byte {
	params := w.block.run.launch.Params
	switch {
	case a.write:
		return w.refuse(a, ReadOnly, "")
	case a.address >= uint64(len(params)) || uint64(len(params))-a.address < uint64(a.bytes): //nolint:gosec // few bytes
		return w.refuse(a, OutOfBounds, fmt.Sprintf("the kernel has %d bytes of parameters", len(params)))
	}
	return params[a.address : a.address+uint64(a.bytes)] //nolint:gosec // few bytes
}
