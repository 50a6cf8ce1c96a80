package interp

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// region finds global memory around an access.
func (mem *memory) region(a *access) *region {
	m := &mem.block.memo[mem.at]
	if r := m.region; r != nil && a.address >= r.Start && a.address-r.Start+uint64(a.bytes) <= uint64(len(r.Bytes)) { //nolint:gosec // few bytes
		return r
	}
	r, err := mem.block.run.find(a)
	if err != nil {
		kind := OutOfBounds
		if errors.Is(err, ErrNotLive) {
			kind = NotLive
		}
		mem.fail(&Fault{Kind: kind, Space: a.space, Address: a.address, Bytes: a.bytes, Err: err}, a.thread)
		return nil
	}
	m.region = r
	return r
}

// reach finds the bytes of an access and checks it. It returns nil after a fault.
func (mem *memory) reach(a *access) []byte {
	if a.space == ptx.Generic {
		a.space = spaceAt(a.address)
		if a.space != ptx.Global {
			a.address &= 1<<windowShift - 1
		}
	}
	if a.address&uint64(a.bytes-1) != 0 && a.space != ptx.Param { //nolint:gosec // a power of two
		mem.fail(&Fault{Kind: Misaligned, Space: a.space, Address: a.address, Bytes: a.bytes}, a.thread)
		return nil
	}
	switch a.space {
	case ptx.Shared:
		return mem.reachShared(a)
	case ptx.Local:
		return mem.reachLocal(a)
	case ptx.Param:
		return mem.reachParam(a)
	case ptx.Generic, ptx.Global, ptx.Const:
	}
	return mem.reachGlobal(a)
}

func (mem *memory) reachGlobal(a *access) []byte {
	g := mem.region(a)
	if g == nil {
		return nil
	}
	if a.write && a.space == ptx.Const {
		return mem.refuse(a, ReadOnly, "")
	}
	offset := a.address - g.Start
	p, at := g.page(offset, mem.block.run)
	if g.Declared != nil && !mem.declared(a, g, p, at) {
		return nil
	}
	if p.apart != nil {
		p.note(a, at, mem.block.run.shift[1])
	}
	if g.Initialised != nil && !mem.contents(a, g, p, at) {
		return nil
	}
	now := p.bytes[at : at+uint64(a.bytes)]                         //nolint:gosec // few bytes
	cells := p.cellsOf(at, uint64(a.bytes), mem.block.run.shift[1]) //nolint:gosec // few bytes
	if mem.block.kernel.constants && !mem.coherent(a, p, at, cells) || !mem.check(a, cells, GlobalRace, now) {
		return nil
	}
	return now
}

// initialised reports whether all bytes of a load were written; a store writes them.
func (mem *memory) initialised(a *access, written []uint64, offset uint64) bool {
	switch word, field := a.field(written, offset); {
	case a.read && *word&field != field && !mem.ignores(Uninitialised):
		return mem.unwritten(a)
	case a.write:
		*word |= field
	}
	return true
}

// unwritten reports a load. One of shared memory may turn out to be too early, so that it waits for a verdict.
func (mem *memory) unwritten(a *access) bool {
	mem.refuse(a, Uninitialised, "the memory was not written")
	if a.space != ptx.Shared {
		return false
	}
	f, ok := mem.fault.(*Fault) //nolint:errorlint // not wrapped
	if mem.fault = nil; ok && mem.block.suspect == nil {
		mem.block.suspect = f
	}
	return true
}

func (mem *memory) reachShared(a *access) []byte {
	b := mem.block
	if a.address >= uint64(len(b.shared)) || uint64(len(b.shared))-a.address < uint64(a.bytes) { //nolint:gosec // few bytes
		return mem.refuse(a, OutOfBounds, fmt.Sprintf("the block has %d bytes of shared memory", len(b.shared)))
	}
	if b.asyncs > 0 && !mem.arrived(a) {
		return nil
	}
	now := b.shared[a.address : a.address+uint64(a.bytes)]                                  //nolint:gosec // few bytes
	first, last := a.address>>b.run.shift[0], (a.address+uint64(a.bytes)-1)>>b.run.shift[0] //nolint:gosec // few bytes
	cells := b.cells[first : last+1]
	if !mem.repeats(a, cells) && !mem.check(a, cells, SharedRace, now) || !mem.initialised(a, b.initialised, a.address) {
		return nil
	}
	return now
}

func (mem *memory) reachLocal(a *access) []byte {
	l, f := &mem.local[a.thread], mem.frame
	end := f.base + f.fn.localBytes
	if a.address >= uint64(end) || uint64(end)-a.address < uint64(a.bytes) { //nolint:gosec // not negative
		return mem.refuse(a, OutOfBounds, fmt.Sprintf("the thread has %d bytes of local memory", end))
	}
	l.grow(end)
	start := int(a.address) //nolint:gosec // below the end
	if a.write {
		l.mark(start, a.bytes)
	}
	return l.bytes[start : start+a.bytes]
}

func (mem *memory) reachParam(a *access) []byte {
	params := mem.block.run.launch.Params
	switch {
	case a.write:
		return mem.refuse(a, ReadOnly, "")
	case a.address >= uint64(len(params)) || uint64(len(params))-a.address < uint64(a.bytes): //nolint:gosec // few bytes
		return mem.refuse(a, OutOfBounds, fmt.Sprintf("the kernel has %d bytes of parameters", len(params)))
	}
	return params[a.address : a.address+uint64(a.bytes)] //nolint:gosec // few bytes
}

// contents reports whether all bytes of a load from global memory were written; a store writes them.
func (mem *memory) contents(a *access, g *region, p *page, in uint64) bool {
	word, field := a.field(p.written, in)
	switch missing := field &^ *word; {
	case a.read && missing != 0 && !mem.ignores(Uninitialised):
		at := (a.address-g.Start)&^63 + uint64(bits.TrailingZeros64(missing)) //nolint:gosec,mnd // not negative
		mem.refuse(a, Uninitialised, fmt.Sprintf("nothing has written byte %d%s", at, g.owner()))
		return false
	case a.write && !a.deferred:
		*word |= field
	}
	return true
}

// declared reports whether the launch declares such an access. Bytes that the launch has written may also be read.
func (mem *memory) declared(a *access, g *region, p *page, at uint64) bool {
	offset := a.address - g.Start
	word, field := a.field(p.stored, at)
	switch {
	case mem.ignores(Undeclared):
	case a.read && field&^*word != 0 && !g.declares(a, false):
		return mem.undeclared(a, g, offset, "as write-only, and the kernel reads bytes that it has not written")
	case a.write && !g.declares(a, true):
		return mem.undeclared(a, g, offset, "as read-only, and the kernel writes there")
	}
	if a.write {
		*word |= field
	}
	return true
}

// undeclared reports an access, with the parameter whose part it is in.
func (mem *memory) undeclared(a *access, g *region, offset uint64, how string) bool {
	at := fmt.Sprintf("byte %d%s", offset, g.owner())
	for _, d := range g.Declared {
		if a.address < d.Start || a.address-d.Start >= d.Bytes {
			continue
		}
		if index, name := mem.block.run.parameterWith(d.Start); name != "" {
			mem.refuse(a, Undeclared, fmt.Sprintf("the launch declares parameter %d, %s, %s: %s", index, name, how, at))
		} else {
			mem.refuse(a, Undeclared, fmt.Sprintf("the launch declares the memory %s: %s", how, at))
		}
		return false
	}
	mem.refuse(a, Undeclared, "the access is outside the parts of the buffer that the launch declares: "+at)
	return false
}

// peek returns the memory from a generic address to the end of its owner's.
func (mem *memory) peek(address uint64, thread int) (from []byte, space ptx.Space, err error) {
	space = spaceAt(address)
	offset := address & (1<<windowShift - 1)
	switch space {
	case ptx.Shared:
		from = mem.block.shared
	case ptx.Local:
		from = mem.local[thread].bytes
	case ptx.Param:
		from = mem.block.run.launch.Params
	default:
		g, err := mem.block.run.find(&access{space: space, address: address, bytes: 1, thread: thread})
		if err != nil {
			return nil, space, err
		}
		from, offset = g.Bytes, address-g.Start
	}
	if offset >= uint64(len(from)) {
		return nil, space, fmt.Errorf("the address is past the end of %d bytes", len(from))
	}
	return from[offset:], space, nil
}

// arrived reports whether an access to shared memory touches no copy that is on its way.
func (mem *memory) arrived(a *access) bool {
	b := mem.block
	if a.write && b.reading != nil && !mem.unread(a) {
		return false
	}
	field := mask(a.bytes) << (a.address & 63)
	if b.inFlight[a.address>>6]&field == 0 || mem.ignores(AsyncInFlight) {
		return true
	}
	if c := b.bulkOver(a); c != nil {
		other := b.place(c.pc, c.thread)
		mem.fail(&Fault{
			Kind: AsyncInFlight, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
			Detail: "the bytes of the bulk copy have not arrived: no thread has waited at their mbarrier",
		}, a.thread)
		return false
	}
	for _, v := range b.warps {
		for thread := range v.copies.of {
			for _, c := range v.copies.of[thread].copies {
				if c.to < a.address+uint64(a.bytes) && a.address < c.to+uint64(c.bytes) { //nolint:gosec // few bytes
					other := b.place(c.pc, v.index*warpThreads+thread)
					mem.fail(&Fault{
						Kind: AsyncInFlight, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
						Detail: "the copy has not arrived: its thread has not waited for it",
					}, a.thread)
					return false
				}
			}
		}
	}
	return true
}

// unread reports whether no product on its way reads the memory that is stored to.
func (mem *memory) unread(a *access) bool {
	b := mem.block
	chunk := uint16(a.address / chunkBytes) //nolint:gosec // of at most 227 KiB
	if b.reading[chunk] == 0 || mem.ignores(SharedRace) {
		return true
	}
	for _, v := range b.warps {
		for _, q := range v.products.all() {
			if slices.Contains(q.chunks, chunk) {
				other := b.place(q.pc, v.index*warpThreads)
				mem.fail(&Fault{
					Kind: SharedRace, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
					Detail: "the product may not have read its matrices: its warp has not waited for it",
				}, a.thread)
				return false
			}
		}
	}
	return true
}

// all returns the products whose results have not arrived.
func (s *products) all() []*product { return append(slices.Concat(s.groups...), s.open...) }
