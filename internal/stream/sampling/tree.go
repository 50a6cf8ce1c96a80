package sampling

import (
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv/site"
)

// tree has the sites of a register by their hashes: each level takes two bits. Sites are entered and never
// removed; a sweep makes another tree.
type tree struct {
	root   node
	count  atomic.Int32
	frozen atomic.Bool // a sweep reads it, or has read it
}

// node is a site in a tree; the root has none.
type node struct {
	below [4]atomic.Pointer[node]
	site  *Site
}

// find returns the site of a place, nil if there is none.
func (t *tree) find(labels *Labels, stack site.Stack) *Site {
	n := &t.root
	for h := hash(labels, stack); ; h >>= 2 { // equal hashes share a list, by their last bits: 0
		if n = n.below[h&3].Load(); n == nil {
			return nil
		}
		if n.site.isOf(labels, stack) {
			return n.site
		}
	}
}

// enter adds a site, and returns it, or the existing site of the same place.
func (t *tree) enter(s *Site) *Site {
	n := &t.root
	for h := hash(&s.labels, s.stack); ; h >>= 2 {
		at := &n.below[h&3]
		if n = at.Load(); n == nil {
			if at.CompareAndSwap(nil, &node{site: s}) {
				t.count.Add(1)
				return s
			}
			n = at.Load()
		}
		if n.site.isOf(&s.labels, s.stack) {
			return n.site
		}
	}
}

// all appends the sites.
func (t *tree) all(sites []*Site) []*Site {
	if t == nil {
		return sites
	}
	return t.root.all(sites)
}

func (n *node) all(sites []*Site) []*Site {
	for i := range n.below {
		if below := n.below[i].Load(); below != nil {
			sites = below.all(append(sites, below.site))
		}
	}
	return sites
}

func (s *Site) isOf(labels *Labels, stack site.Stack) bool {
	return s.labels == *labels && slices.Equal(s.stack, stack)
}

// sweepAfter is how many samples without room trigger a sweep. Not fewer: a sweep takes some 200
// microseconds, and frees nothing if all sites have live samples. Not more: the places of these samples are
// unknown.
const sweepAfter = SiteLimit / 8

// gatheredLimit bounds the sites of stacks without labels. Not more: sites with live samples need room.
const gatheredLimit = SiteLimit / 2

// sweep makes room in a tree that is full: it replaces the tree by one without the sites that have no live
// samples. It returns the newer tree; nil if there is no room, or another goroutine sweeps.
func (r *Register) sweep(full *tree) *tree {
	if n := r.turnedAway.Add(1); n%sweepAfter != 1 || !r.sweeping.CompareAndSwap(false, true) {
		return nil
	}
	defer r.sweeping.Store(false)
	if t := r.tree.Load(); t != full {
		return t
	}
	full.frozen.Store(true)
	next := new(tree)
	var retired []*Site
	for _, s := range full.all(nil) {
		if s.live.CompareAndSwap(0, -1) {
			retired = append(retired, s)
		} else {
			next.enter(s)
		}
	}
	var rest []*Site // without room for their stacks
	for _, s := range retired {
		at := next.find(&Labels{}, s.stack)
		if at == nil {
			if next.count.Load() >= gatheredLimit {
				rest = append(rest, s)
				continue
			}
			at = next.enter(&Site{stack: s.stack, other: &r.other})
		}
		at.gather(s)
	}
	r.tree.Store(next)
	for _, s := range rest {
		r.other.gather(s)
	}
	if next.count.Load() >= SiteLimit {
		return nil
	}
	r.turnedAway.Store(0)
	return next
}

// gather adds the totals of a retired site.
func (s *Site) gather(retired *Site) {
	for i := range s.totals {
		s.totals[i].Add(retired.totals[i].Load())
	}
}
