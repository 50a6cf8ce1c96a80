package interp

// maxWarps is the number of warps of a block.
const maxWarps = maxBlockThreads / warpThreads

// clocks are the times of the warps of a block up to which somebody has seen what they did.
type clocks [maxWarps]uint32

func (c *clocks) join(other *clocks) {
	for n := range c {
		c[n] = max(c[n], other[n])
	}
}

// warpOrder is what a warp knows of the order of accesses. Time is counted in events that order memory: clock is that of what the
// warp does now, and an access of it at an earlier one is seen by those whose seen says so.
type warpOrder struct {
	clock    uint32
	seen     clocks
	together uint32                            // the threads of the warp see each other up to here
	alone    [warpThreads]uint32               // one thread sees all of the warp up to here
	pairs    *[warpThreads][warpThreads]uint32 // one thread sees another one up to here; nil without a sync of some threads
	released clocks                            // at the last fence
	acquired clocks                            // by atomics, to be seen from the next fence on
	blocks   bitset                            // likewise: blocks
	fenced   bool                              // in this block
}

func (o *warpOrder) begin(w *warp) {
	pairs := o.pairs
	*o = warpOrder{clock: w.block.run.tick()}
	if pairs != nil {
		*pairs = [warpThreads][warpThreads]uint32{}
		o.pairs = pairs
	}
}

// order is what an atomic variable passes on between threads.
type order struct {
	block  uint64 // whose warps seen is about
	seen   clocks
	blocks bitset
}

// release ends the warp's clock: what it did is seen by those who get what release returns.
func (w *warp) release() (c clocks) {
	c = w.order.seen
	c[w.index] = w.order.clock
	w.order.clock = w.block.run.tick()
	return c
}

// joinThreads orders the threads of a mask among each other.
func (w *warp) joinThreads(m uint32) {
	o := &w.order
	now := o.clock
	o.clock = w.block.run.tick()
	if m == w.live {
		o.together = now
		return
	}
	if o.pairs == nil {
		o.pairs = new([warpThreads][warpThreads]uint32)
	}
	var all [warpThreads]uint32
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		for k, seen := range o.pairs[n] {
			all[k] = max(all[k], seen)
		}
	}
	for rest := m; rest != 0; rest &= rest - 1 {
		all[next(rest)] = now
	}
	for rest := m; rest != 0; rest &= rest - 1 {
		o.pairs[next(rest)] = all
	}
}

// fence orders what the warp did before behind what it does next, for other threads that see an atomic variable.
func (w *warp) fence(m uint32) {
	o := &w.order
	o.seen.join(&o.acquired)
	w.block.seenBlocks.addAll(o.blocks)
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		o.alone[n] = max(o.alone[n], o.acquired[w.index])
	}
	o.released = w.release()
	o.fenced = true
}

// synchronise is a strong access to a variable: it passes on what was released, and gets what others did.
func (w *warp) synchronise(key uint64, read, write, acquires, releases bool) {
	r, o := w.block.run, &w.order
	if !r.kernel.fences {
		return
	}
	v := r.orders[key]
	if v == nil {
		v = &order{block: w.block.number}
		r.orders[key] = v
	}
	if read && v.block == w.block.number {
		o.acquired.join(&v.seen)
	}
	if read {
		o.blocks.addAll(v.blocks)
	}
	if acquires {
		w.fence(w.group)
	}
	if !write {
		return
	}
	if releases && !acquires {
		w.fence(w.group)
	}
	if v.block != w.block.number {
		v.block, v.seen = w.block.number, clocks{}
	}
	if o.fenced || releases {
		v.seen.join(&o.released)
		v.blocks.add(w.block.number)
		v.blocks.addAll(w.block.seenBlocks)
	}
}
