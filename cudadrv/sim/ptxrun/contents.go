package ptxrun

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// contents is which bytes of a buffer were written, since it was allocated. The zero value is none.
//
// It is one of three: nothing was written, and there are no bits; some were, and there is a bit for each byte; or all
// were, and there are no bits any more, so that fully written memory costs kernels nothing.
type contents struct {
	written []uint64
	all     bool
}

// bits returns the bits that a kernel reads and sets; nil where all bytes were written.
func (c *contents) bits(bytes int64) []uint64 {
	if c.written != nil && c.complete(bytes) {
		*c = contents{all: true}
	}
	return c.made(bytes)
}

// made makes the bits, if some bytes may not have been written.
func (c *contents) made(bytes int64) []uint64 {
	if !c.all && c.written == nil {
		c.written = make([]uint64, (bytes+63)/64) //nolint:mnd // bits of a word
	}
	return c.written
}

// complete reports whether all bytes have their bit.
func (c *contents) complete(bytes int64) bool {
	whole, rest := bytes/64, bytes%64 //nolint:mnd // bits of a word
	return !slices.ContainsFunc(c.written[:whole], func(word uint64) bool { return word != ^uint64(0) }) &&
		(rest == 0 || c.written[whole] == 1<<rest-1)
}

// write notes that bytes were written.
func (c *contents) write(from, bytes, of int64) {
	switch {
	case c.all:
	case from == 0 && bytes == of:
		*c = contents{all: true}
	default:
		c.each(from, bytes, of, func(word *uint64, field uint64) { *word |= field })
	}
}

// each calls f for the words that have the bits of a range.
func (c *contents) each(from, bytes, of int64, f func(word *uint64, field uint64)) {
	words := c.made(of)
	if words == nil {
		return
	}
	for at, end := from, from+bytes; at < end; {
		bits := min(64-at%64, end-at)                      //nolint:mnd // bits of a word
		f(&words[at/64], (^uint64(0)>>(64-bits))<<(at%64)) //nolint:mnd // likewise
		at += bits
	}
}

// copyFrom gives bytes the contents of their source: a copy of unwritten bytes leaves them unwritten.
func (c *contents) copyFrom(to, of int64, src *contents, from, srcOf, bytes int64) {
	words := src.bits(srcOf)
	if words == nil {
		c.write(to, bytes, of)
		return
	}
	written := make([]bool, bytes) // the ranges may overlap
	for n := range written {
		at := from + int64(n)
		written[n] = words[at/64]>>(at%64)&1 != 0 //nolint:mnd // bits of a word
	}
	if c.all && slices.Contains(written, false) {
		c.all = false
		c.each(0, of, of, func(word *uint64, field uint64) { *word |= field })
	}
	for n, yes := range written {
		c.each(to+int64(n), 1, of, func(word *uint64, field uint64) {
			if *word &^= field; yes {
				*word |= field
			}
		})
	}
}

// Queued implements Owners: it notes the buffers of a copy or memset, which live when it is queued.
func (o *Buffers) Queued(t sim.Transfer) (performed func()) {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var dst, src *owned
	if t.Dst != 0 {
		dst = o.at(t.Dst, o.event)
	}
	if dst == nil {
		return nil
	}
	if t.Src != 0 {
		src = o.at(t.Src, o.event)
	}
	return func() {
		for row := range t.Rows {
			dst.receive(t.Dst+cudadrv.Ptr(row*t.DstPitch), t.Bytes, src, t.Src+cudadrv.Ptr(row*t.SrcPitch)) //nolint:gosec // not negative
		}
	}
}

// receive notes that bytes were written, or copied from another buffer, nil for memory past the allocator.
func (o *owned) receive(p cudadrv.Ptr, bytes int64, src *owned, from cudadrv.Ptr) {
	to, bytes := o.inside(p, bytes)
	if src == nil {
		o.contents.write(to, bytes, o.event.Bytes)
		return
	}
	at, bytes := src.inside(from, bytes)
	o.contents.copyFrom(to, o.event.Bytes, &src.contents, at, src.event.Bytes, bytes)
}

// inside returns the part of a range that is the buffer's.
func (o *owned) inside(p cudadrv.Ptr, bytes int64) (offset, within int64) {
	offset = int64(p - o.event.Ptr) //nolint:gosec // contained
	return offset, max(min(bytes, o.event.Bytes-offset), 0)
}

// Claimed implements Owners: it notes memory that work outside of the simulation writes.
func (o *Buffers) Claimed(p cudadrv.Ptr, bytes int64) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.at(p, o.event); b != nil {
		b.receive(p, bytes, nil, 0)
	}
}
