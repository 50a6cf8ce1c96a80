package sampling

import (
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv/site"
)

const (
	// SiteLimit bounds the sites of a register; concurrent goroutines may each exceed it by one. Not fewer: a
	// large program has a thousand places, some with several tags. Not more: each takes some 450 bytes.
	SiteLimit = 4096
	// weightOne is the weight 1 in sums of weights, which are counted in whole parts of it.
	weightOne = 1 << 16
)

// Labels distinguish samples of one place.
type Labels struct {
	Stream uint32 // ID
	Tag    string
	Tenant string
}

// Register counts samples. The zero value is ready.
type Register struct {
	tree       atomic.Pointer[tree] // nil: there are no sites
	other      Site
	turnedAway atomic.Int64 // samples without room since the last sweep
	sweeping   atomic.Bool
}

// Site is a place, and the totals of its samples.
//
//	live n   --Allocated: CAS--> live n+1 --End--> live n
//	live 0   --sweep: CAS--> retired: its totals go to the site of its stack without labels
type Site struct {
	labels Labels
	stack  site.Stack
	totals [2 * totalCount]atomic.Int64 // of the allocations, then of their frees
	live   atomic.Int64                 // samples that were not freed; negative: retired
	other  *Site                        // takes the samples of a retired site; nil: it is never retired
}

const totalCount = 4 // number, bytes, weights, and bytes multiplied by the weights

// Site returns the site of a place, and enters it if it is new.
func (r *Register) Site(labels Labels, stack site.Stack) *Site {
	t := r.tree.Load()
	if t == nil {
		r.tree.CompareAndSwap(nil, new(tree))
		t = r.tree.Load()
	}
	if s := t.find(&labels, stack); s != nil {
		return s
	}
	if t.count.Load() >= SiteLimit {
		if t = r.sweep(t); t == nil {
			return &r.other
		}
	}
	s := t.enter(&Site{labels: labels, stack: stack, other: &r.other})
	if t.frozen.Load() { // the sweep may not have seen it
		return &r.other
	}
	return s
}

// hash is FNV-1a, of words.
func hash(labels *Labels, stack site.Stack) uint64 {
	const prime = 1099511628211
	h := (14695981039346656037 ^ uint64(labels.Stream)) * prime
	for _, pc := range stack {
		h = (h ^ uint64(pc)) * prime
	}
	for _, c := range []byte(labels.Tag + labels.Tenant) {
		h = (h ^ uint64(c)) * prime
	}
	return h ^ h>>32
}

// Sample is a sampled allocation; the zero Sample is none. It is immutable.
type Sample struct {
	At     int64 // nanoseconds since 1970
	Chance uint32
	All    uint32
	of     *Site
	bytes  int64
}

// Allocated counts an allocation of that many bytes, which was sampled with the probability chance of all.
// Preconditions: 0 < chance and chance <= all; where it is less, bytes*all fits an int64.
func (s *Site) Allocated(at, bytes int64, chance, all uint32) Sample {
	if !s.claim() {
		s = s.other
	}
	x := Sample{At: at, Chance: chance, All: all, of: s, bytes: bytes}
	x.count(0)
	return x
}

// Counts reports whether there is a sample.
func (x *Sample) Counts() bool { return x.of != nil }

// End counts the free of the allocation, if there is a sample. It is called once.
func (x *Sample) End() {
	if x.of != nil {
		x.count(totalCount)
		if x.of.other != nil {
			x.of.live.Add(-1) // last: the totals of a site without live samples are complete
		}
	}
}

// claim adds a live sample, unless the site is retired.
func (s *Site) claim() bool {
	if s.other == nil {
		return true
	}
	for {
		n := s.live.Load()
		if n < 0 {
			return false
		}
		if s.live.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// count adds the same for the free as for the allocation. It is not inlined, to save code.
//
//go:noinline
func (x *Sample) count(first int) {
	weight, weightedBytes := int64(weightOne), x.bytes
	if chance, all := int64(x.Chance), int64(x.All); chance < all {
		weight, weightedBytes = (weight*all+chance/2)/chance, (weightedBytes*all+chance/2)/chance
	}
	for i, n := range [totalCount]int64{1, x.bytes, weight, weightedBytes} {
		x.of.totals[first+i].Add(n)
	}
}

// Weight returns how many similar allocations the sample represents.
func (x *Sample) Weight() float64 { return float64(x.All) / float64(x.Chance) }
