package interp

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// The blocks of a launch run on several goroutines as if they ran one after the other. Each worker executes some blocks
// on memory as it was before the launch, and keeps its stores in pages of its own. Where one worker has stored to a cell that
// another one has touched, or a block has a fault, all that is dropped, and the launch runs again, one block after the
// other, so that its results and its faults do not depend on a schedule. Else the launch writes the stores to its memory,
// and atomic operations whose results nobody reads follow in the order of their blocks. Kernels that may pass a
// value from block to block in another way do not run so: see Kernel.alone.

// apart is a page of a worker: until all end, other workers see none of its stores.
type apart struct {
	copied                  bool // the bytes, and which of them are written
	loaded, stored, reduced marks
}

// marks has a bit for each cell of a page.
type marks [pageCells / wordBits]uint64

func (m *marks) set(first, count uint64) {
	for n := first; n < first+count; n++ {
		m[n>>6] |= 1 << (n & 63) //nolint:mnd // bits of a word
	}
}

func (a *apart) mark(first, count uint64, write bool) {
	if write {
		a.stored.set(first, count)
		return
	}
	a.loaded.set(first, count)
}

// note marks an access, and copies the page before its first store.
func (p *page) note(a *access, at uint64, shift uint) {
	first := at >> shift
	count := (at+uint64(a.bytes)-1)>>shift - first + 1 //nolint:gosec // few bytes
	switch {
	case a.deferred:
		p.apart.reduced.set(first, count)
		return
	case a.write && !p.apart.copied:
		p.bytes, p.written, p.apart.copied = slices.Clone(p.bytes), slices.Clone(p.written), true
	}
	p.apart.mark(first, count, a.write)
}

// later is an atomic operation that follows when all blocks have ended.
type later struct {
	block         uint64
	address       uint64
	bytes         int
	fn            func3
	second, third uint64
}

// crew is the workers of a launch.
type crew struct {
	calls   chan struct{} // of the launch's functions: it has room for one
	next    atomic.Uint64
	failed  atomic.Bool
	stopped atomic.Bool
	workers []*worker
}

// worker executes some blocks of a launch.
type worker struct {
	crew  *crew
	run   *run
	later []later
	ended bool // it has executed all its blocks
}

// call makes a call of a function of the launch, while no other worker makes one.
func (c *crew) call(fn func()) {
	c.calls <- struct{}{}
	defer func() { <-c.calls }()
	fn()
}

var errCrew = errors.New("interp: the launch runs one block after the other")

// The fewest threads for which goroutines are worth it, and how many parts the blocks of a worker have.
const (
	crewThreads = 1 << 11
	crewParts   = 8
)

// goroutines returns how many goroutines execute the blocks from first to last.
func (r *run) goroutines(blocks uint64) int {
	n := r.launch.Goroutines
	if n == 0 && blocks*r.launch.Block.count() >= crewThreads && !r.kernel.met.Load() {
		n = runtime.GOMAXPROCS(0)
	}
	if r.kernel.alone || r.ignored[GlobalRace] || r.ignored[NonCoherent] {
		return 1
	}
	return int(min(uint64(max(n, 1)), blocks)) //nolint:gosec // not negative
}

// apart executes blocks on several goroutines. It reports false, and has changed nothing, where the blocks must run one
// after the other.
func (r *run) apart(goroutines int, first, last uint64) (done bool, err error) {
	c := &crew{calls: make(chan struct{}, 1)}
	part := max((last-first)/uint64(goroutines*crewParts), 1) //nolint:gosec // positive
	c.next.Store(first + uint64(goroutines)*part)             //nolint:gosec // positive
	var all sync.WaitGroup
	for n := range uint64(goroutines) { //nolint:gosec // positive
		w := &worker{crew: c}
		w.run = &run{
			kernel: r.kernel, launch: r.launch, globals: r.globals, own: r.own, shift: r.shift, limit: r.limit, grid: r.grid, ignored: r.ignored,
			clock: 1, orders: map[uint64]*order{}, crowds: crowds{of: map[*cell]*crowd{}}, worker: w,
		}
		c.workers = append(c.workers, w)
		all.Go(func() { w.execute(first+n*part, last, part) })
	}
	all.Wait()
	switch {
	case c.stopped.Load():
		return true, ErrStopped
	case c.failed.Load() || slices.ContainsFunc(c.workers, func(w *worker) bool { return !w.ended }):
		return false, nil
	}
	pages, ok := c.pages()
	if !ok || met(pages) {
		r.kernel.met.Store(true)
		return false, nil
	}
	c.commit(r, pages)
	return true, nil
}

// execute executes a part of the blocks from start on, and takes further parts until there are none. A panic of the
// launch's functions ends it: they are called again.
func (w *worker) execute(start, last, part uint64) {
	defer func() {
		if !w.ended {
			_ = recover()
			w.crew.failed.Store(true)
		}
	}()
	b := w.run.newBlock()
	defer b.free()
	for ; start < last && !w.crew.failed.Load() && !w.crew.stopped.Load(); start = w.crew.next.Add(part) - part {
		err := w.run.execute(b, start, min(start+part, last))
		if errors.Is(err, ErrStopped) {
			w.crew.stopped.Store(true)
		}
		if err != nil {
			return
		}
	}
	w.ended = true
}

// pageKey names a page.
type pageKey struct{ start, number uint64 }

// pagesOf are the pages of all workers at one place.
type pagesOf struct {
	region *region
	pages  []*page
}

// pages returns the pages of all workers. It reports false where they do not agree on the regions.
func (c *crew) pages() (map[pageKey]*pagesOf, bool) {
	all, regions := map[pageKey]*pagesOf{}, map[uint64]uint64{}
	for _, w := range c.workers {
		for _, g := range w.run.regions {
			if end, known := regions[g.Start]; known && end != g.Start+uint64(len(g.Bytes)) {
				return nil, false
			}
			regions[g.Start] = g.Start + uint64(len(g.Bytes))
			for n, p := range g.pages {
				if p == nil {
					continue
				}
				key := pageKey{g.Start, uint64(n)} //nolint:gosec // not negative
				if all[key] == nil {
					all[key] = &pagesOf{region: g}
				}
				all[key].pages = append(all[key].pages, p)
			}
		}
	}
	for start := range regions {
		for other, end := range regions {
			if other < start && start < end {
				return nil, false
			}
		}
	}
	return all, true
}

// met reports whether a worker has stored to a cell that another one has touched, or anyone has touched a cell of an
// atomic operation that is still to come.
func met(pages map[pageKey]*pagesOf) bool {
	for _, of := range pages {
		for n := range len(of.pages[0].apart.stored) {
			var loaded, stored, reduced, both uint64
			for _, p := range of.pages {
				both |= p.apart.stored[n]&(stored|loaded) | p.apart.loaded[n]&stored
				loaded, stored, reduced = loaded|p.apart.loaded[n], stored|p.apart.stored[n], reduced|p.apart.reduced[n]
			}
			if both|reduced&(loaded|stored) != 0 {
				return true
			}
		}
	}
	return false
}

// commit writes the stores of the workers to the memory of the launch, and executes the operations that follow.
func (c *crew) commit(r *run, pages map[pageKey]*pagesOf) {
	shift := r.shift[1]
	for key, of := range pages {
		to := of.region.Bytes[key.number<<(shift+pageBits):]
		for _, p := range of.pages {
			if p.apart.copied {
				p.apart.stored.copy(to, p.bytes, shift)
				if p.written != nil {
					written := of.region.Initialised[key.number<<(shift+pageBits)/wordBits:]
					for n, word := range p.written {
						written[n] |= word
					}
				}
			}
		}
	}
	var rest []later
	for _, w := range c.workers {
		rest = append(rest, w.later...)
	}
	slices.SortStableFunc(rest, func(a, b later) int { return int(a.block) - int(b.block) }) //nolint:gosec // blocks of one grid
	for _, l := range rest {
		g, err := c.workers[0].run.find(&access{address: l.address, bytes: l.bytes, write: true})
		if err != nil {
			continue // a worker has found it: Memory forgets nothing while a launch runs
		}
		offset := l.address - g.Start
		at := g.Bytes[offset:]
		store(at, l.bytes, l.fn(load(at, l.bytes), l.second, l.third))
		if g.Initialised != nil {
			g.Initialised[offset/wordBits] |= mask(l.bytes) << (offset % wordBits)
		}
	}
}

// copy copies the marked cells.
func (m *marks) copy(to, from []byte, shift uint) {
	for n, word := range m {
		start := uint64(n*wordBits) << shift //nolint:gosec // not negative
		if word == ^uint64(0) && start+wordBits<<shift <= uint64(min(len(to), len(from))) {
			copy(to[start:start+wordBits<<shift], from[start:])
			continue
		}
		for k := uint64(0); word != 0; k, word = k+1, word>>1 {
			if word&1 != 0 {
				at := start + k<<shift
				copy(to[at:min(at+1<<shift, uint64(len(to)))], from[at:])
			}
		}
	}
}
