package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/heap"
)

// fit finds the free run of at least n pages that the strategy takes of those that the client may use: about the
// shortest, or the one at the lowest page. Of equally short runs the client's own is taken.
func (p *pages) fit(c Client, n uint32) (first uint32, ok bool) {
	p.searches++
	best := p.clean.find(p.links, n)
	if d := p.tagged[c]; d != nil {
		if own := d.find(p.links, n); own != heap.None && (best == heap.None || p.before(own, best)) {
			best = own
		}
	}
	return uint32(best), best != heap.None
}

func (d *domain) find(links []heap.Link, n uint32) (i int32) {
	if d.tree != nil {
		i, _ = d.tree.First(n)
	} else {
		i, _ = d.bins.Fit(links, n)
	}
	return i
}

// before says which of two runs the strategy prefers.
func (p *pages) before(own, clean int32) bool {
	if p.search == heap.FirstFit {
		return own < clean
	}
	return p.table[own].run <= p.table[clean].run
}

// setStrategy rebuilds the indexes of the free runs. It visits them all.
func (p *pages) setStrategy(s heap.Strategy) {
	if p.search == s {
		return
	}
	p.search = s
	rebuild := func(d *domain) {
		d.plant(s)
		if d.tree == nil {
			return
		}
		d.bins.Each(p.links, 1, func(i int32) bool {
			d.tree.Insert(i, uint32(i), p.table[i].run)
			return true
		})
	}
	rebuild(p.clean)
	for _, d := range p.tagged {
		rebuild(d)
	}
}

// checkTree holds a domain's tree, if the strategy needs one, against the table.
func (p *pages) checkTree(c Client, d *domain) error {
	if (d.tree != nil) != (p.search == heap.FirstFit) {
		return fmt.Errorf("pool: the runs of client %d are in a tree: %t, the strategy is %d", c, d.tree != nil, p.search)
	}
	if d.tree == nil {
		return nil
	}
	if d.tree.Count() != d.bins.Count() {
		return fmt.Errorf("pool: %d runs of client %d in the tree, %d in the bins", d.tree.Count(), c, d.bins.Count())
	}
	return d.tree.Check(func(i int32, key, length uint32) error {
		if t := p.table[i]; uint32(i) != key || t.state != free || t.run != length || t.client != c {
			return fmt.Errorf("pool: the tree of client %d has %d pages at page %d, the table %+v", c, length, i, t)
		}
		return nil
	})
}
