package core

import (
	"math/bits"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
)

type pageState uint8

const (
	hole pageState = iota
	free
	lent
	busy
)

type page struct {
	handle int32  // that covers the page, or heap.None
	run    uint32 // length of the free run, valid at its first and its last page
	client Client // lent: whose; free: the tag, valid at the run's first page
	fence  Fence  // the tag's, valid at the run's first page; 0 is clean
	state  pageState
	home   Client // free: who returned it and may have it back; 0 for memory that nobody used yet
}

type handle struct {
	id    cudadrv.Handle
	at    cudadrv.Ptr // of a plain segment
	run   Run         // where it is mapped; First is meaningless if not mapped
	live  bool
	mapd  bool
	fresh bool // created or moved by the job in flight
	lost  bool // the driver would not take it back; Close tries again
}

// domain is the index of the free runs with one tag; that of client 0 is the clean ones.
type domain struct {
	bins  heap.Bins
	pages uint64
}

func newDomain() *domain {
	d := &domain{}
	d.bins.Reset()
	return d
}

// pages is the page table with the free runs.
type pages struct {
	table   []page      // up to the highest page ever used
	links   []heap.Link // of free runs, by first page
	clean   *domain
	tagged  map[Client]*domain
	idle    bitmap // free or hole
	mapped  bitmap // free
	counts  [4]uint64
	handles []handle
	spare   []int32 // unused entries of handles
	inserts uint64  // free runs that came, or changed

	searches uint64 // by fit, for the tests
}

func newPages() *pages {
	return &pages{clean: newDomain(), tagged: map[Client]*domain{}}
}

// extend makes the table reach up to that page.
func (p *pages) extend(end uint32) {
	p.makeRoom(int(end))
	for uint32(len(p.table)) < end {
		p.table = append(p.table, page{handle: heap.None})
		p.links = append(p.links, heap.Link{})
		p.counts[hole]++
		p.idle.set(uint32(len(p.table)-1), 1, true)
		p.mapped.set(uint32(len(p.table)-1), 1, false)
	}
}

// makeRoom has the tables grow to twice their room at least. Append adds a quarter each time, which copies a long table often.
func (p *pages) makeRoom(count int) {
	if count <= cap(p.table) {
		return
	}
	more := max(count, 2*cap(p.table)) - len(p.table)
	p.table = slices.Grow(p.table, more)
	p.links = slices.Grow(p.links, more)
}

func (p *pages) top() uint32 { return uint32(len(p.table)) }

func (p *pages) domain(c Client) *domain {
	if c == 0 {
		return p.clean
	}
	d := p.tagged[c]
	if d == nil {
		d = newDomain()
		p.tagged[c] = d
	}
	return d
}

// setState changes the state of pages that are all in the state from.
func (p *pages) setState(r Run, to pageState, c Client) {
	for i := r.First; i < r.First+r.Pages; i++ {
		t := &p.table[i]
		p.counts[t.state]--
		t.state, t.client, t.fence, t.run = to, c, 0, 0
		if to != free {
			t.home = 0
		}
	}
	p.counts[to] += uint64(r.Pages)
	p.idle.set(r.First, r.Pages, to == free || to == hole)
	p.mapped.set(r.First, r.Pages, to == free)
}

// addFree makes pages free with a tag and merges them with neighbours of the same tag. Two runs of
// the same client merge under the later fence.
func (p *pages) addFree(r Run, c Client, f Fence) {
	p.setState(r, free, 0)
	if r.First > 0 && p.table[r.First-1].state == free {
		left := r.First - p.table[r.First-1].run
		if t := p.table[left]; t.client == c {
			p.removeRun(left)
			r = Run{left, r.Pages + t.run}
			f = max(f, t.fence)
		}
	}
	if end := r.First + r.Pages; end < p.top() && p.table[end].state == free && p.table[end].client == c {
		t := p.table[end]
		p.removeRun(end)
		r.Pages += t.run
		f = max(f, t.fence)
	}
	p.insertRun(r, c, f)
}

func (p *pages) insertRun(r Run, c Client, f Fence) {
	first := &p.table[r.First]
	first.client, first.fence, first.run = c, f, r.Pages
	p.table[r.First+r.Pages-1].run = r.Pages
	p.inserts++
	d := p.domain(c)
	d.bins.Insert(p.links, int32(r.First), r.Pages)
	d.pages += uint64(r.Pages)
}

func (p *pages) removeRun(first uint32) {
	t := p.table[first]
	d := p.domain(t.client)
	d.bins.Remove(p.links, int32(first))
	d.pages -= uint64(t.run)
}

// takeFree changes pages that lie in one free run to another state; what is left of the run on either
// side keeps its tag.
func (p *pages) takeFree(runFirst uint32, r Run, to pageState, c Client) {
	t := p.table[runFirst]
	p.removeRun(runFirst)
	end, runEnd := r.First+r.Pages, runFirst+t.run
	p.setState(r, to, c)
	if runFirst < r.First {
		p.insertRun(Run{runFirst, r.First - runFirst}, t.client, t.fence)
	}
	if end < runEnd {
		p.insertRun(Run{end, runEnd - end}, t.client, t.fence)
	}
}

// bitmap is a set of pages.
type bitmap []uint64

func (b *bitmap) set(first, n uint32, on bool) {
	for end := first + n; uint32(len(*b))*64 < end; {
		*b = append(*b, 0)
	}
	for n > 0 {
		w, at := first>>6, first&63
		k := min(n, 64-at)
		mask := (^uint64(0) >> (64 - k)) << at
		if on {
			(*b)[w] |= mask
		} else {
			(*b)[w] &^= mask
		}
		first, n = first+k, n-k
	}
}

// next is the first page from that one on, below end, whose bit is want; end if there is none.
func (b bitmap) next(from, end uint32, want bool) uint32 {
	for from < end {
		w := b[from>>6]
		if !want {
			w = ^w
		}
		if w >>= from & 63; w != 0 {
			return min(end, from+uint32(bits.TrailingZeros64(w)))
		}
		from = (from | 63) + 1
	}
	return end
}

// count is the number of pages of the run in the set.
func (b bitmap) count(r Run) uint32 {
	var n int
	for first, left := r.First, r.Pages; left > 0; {
		if first>>6 >= uint32(len(b)) {
			break
		}
		at := first & 63
		k := min(left, 64-at)
		n += bits.OnesCount64(b[first>>6] & ((^uint64(0) >> (64 - k)) << at))
		first, left = first+k, left-k
	}
	return uint32(n)
}
