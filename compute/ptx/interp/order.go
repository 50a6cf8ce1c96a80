package interp

// maxWarps is the number of warps of a block.
const maxWarps = maxBlockThreads / warpThreads

// clocks are the times of the warps of a block up to which their accesses are seen.
type clocks [maxWarps]uint32

func (c *clocks) join(other *clocks) {
	for n := range c {
		c[n] = max(c[n], other[n])
	}
}

// warpOrder is a warp's part in the order of accesses. Time is counted in events that order memory: clock is that of the
// warp's next access, and an earlier access is seen by the warps whose seen has its clock.
type warpOrder struct {
	clock    uint32
	seen     clocks
	together uint32                            // the threads of the warp see each other up to here
	alone    [warpThreads]uint32               // one thread sees all of the warp up to here
	pairs    *[warpThreads][warpThreads]uint32 // one thread sees another one up to here; nil without a sync of some threads
	released clocks                            // at the last fence
	acquired clocks                            // by atomics, to be seen from the next fence on
	turns    bitset                            // likewise: turns of other blocks
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

// order is the order that an atomic variable passes on between threads.
type order struct {
	block  uint64 // whose warps seen is about
	seen   clocks
	turns  bitset
	others map[uint64]clocks // of a cooperative launch: seen, of other blocks
}

// of makes seen that of a block.
func (v *order) of(block uint64, cooperative bool) {
	if v.block == block {
		return
	}
	if !cooperative {
		v.block, v.seen = block, clocks{}
		return
	}
	if v.others == nil {
		v.others = map[uint64]clocks{}
	}
	v.others[v.block] = v.seen
	v.block, v.seen = block, v.others[block]
}

// release ends the warp's clock: its accesses so far are seen by those that join the clocks that release returns.
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

// fence orders the warp's accesses before it behind those after it, for other threads that see an atomic variable.
func (w *warp) fence(m uint32) {
	o := &w.order
	o.seen.join(&o.acquired)
	w.block.seenTurns.addAll(o.turns)
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		o.alone[n] = max(o.alone[n], o.acquired[w.index])
	}
	o.released = w.release()
	o.fenced = true
}

// synchronise is a strong access to a variable: it passes on the clocks of the last fence, and gets those of others.
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
	if r.launch.Cooperative {
		v.of(w.block.number, true)
	}
	if read && v.block == w.block.number {
		o.acquired.join(&v.seen)
	}
	if read {
		o.turns.addAll(v.turns)
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
	v.of(w.block.number, false)
	if o.fenced || releases {
		v.seen.join(&o.released)
		v.turns.add(r.turns.now())
		v.turns.addAll(w.block.seenTurns)
		w.released()
	}
}
