package core

import "github.com/go-vram/vram/internal/heap"

// fit finds about the shortest free run of at least n pages of those that the client may use. Of equally short runs the
// client's own is taken.
func (p *pages) fit(c Client, n uint32) (first uint32, ok bool) {
	p.searches++
	best, _ := p.clean.bins.Fit(p.links, n)
	if d := p.tagged[c]; d != nil {
		if own, _ := d.bins.Fit(p.links, n); own != heap.None && (best == heap.None || p.table[own].run <= p.table[best].run) {
			best = own
		}
	}
	return uint32(best), best != heap.None
}
