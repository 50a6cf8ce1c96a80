package core

import "github.com/go-vram/vram/cudadrv"

// buried is a range that was unmapped.
type buried struct {
	start, end cudadrv.Ptr
	buffer     *buffer // that had it last
	use        *Use    // the unmapping
}

// past is the last ranges that were unmapped: a ring.
type past struct {
	ring []buried
	next int
}

// pastLimit bounds it. Not smaller: one trim may unmap hundreds of handles with as many buffers' memory. Not larger:
// it is searched one by one, and keeps the places of buffers.
const pastLimit = 4096

func (p *past) add(b buried) {
	if len(p.ring) < pastLimit {
		p.ring = append(p.ring, b)
		return
	}
	p.ring[p.next] = b
	p.next = (p.next + 1) % pastLimit
}

// last returns the newest that shares an address with a range; nil for none.
func (p *past) last(start, end cudadrv.Ptr) *buried {
	for i := range p.ring {
		b := &p.ring[(p.next+len(p.ring)-1-i)%len(p.ring)]
		if b.start < end && start < b.end {
			return b
		}
	}
	return nil
}
