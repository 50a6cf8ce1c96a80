package interp

func (o *warpOrder) begin() {
	pairs := o.pairs
	*o = warpOrder{site: o.site, clock: o.block.run.tick()}
	if pairs != nil {
		*pairs = [warpThreads][warpThreads]uint32{}
		o.pairs = pairs
	}
}

// sees reports whether an access happened before the next one of a thread of the warp.
func (o *warpOrder) sees(t touch, thread int) bool {
	clock, by := t.clock(), t.thread()
	if b := o.block; b.run.turns.past(clock) {
		if turn := b.run.turns.at(clock); b.run.turns.blocks[turn] != b.number {
			return b.seenTurns.has(turn)
		}
	}
	if by == thread {
		return true
	}
	if by/warpThreads != o.index {
		return clock <= o.seen[by/warpThreads]
	}
	n, m := thread%warpThreads, by%warpThreads
	return clock <= o.together || clock <= o.alone[n] || o.pairs != nil && clock <= o.pairs[n][m]
}

// release ends the warp's clock: its accesses so far are seen by those that join the clocks that release returns.
func (o *warpOrder) release() (c clocks) {
	c = o.seen
	c[o.index] = o.clock
	o.clock = o.block.run.tick()
	return c
}

// joinThreads orders the threads of a mask among each other.
func (o *warpOrder) joinThreads(m uint32) {
	now := o.clock
	o.clock = o.block.run.tick()
	if m == o.live {
		o.together = now
		o.settle()
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

// see orders accesses of the block's warps before the next ones of the warp.
func (o *warpOrder) see(c *clocks) {
	o.seen.join(c)
	o.settle()
}

// settle notes up to where every thread of the warp sees the warps of the block.
func (o *warpOrder) settle() {
	o.settled = o.seen
	o.settled[o.index] = o.together
}

// fence orders the warp's earlier accesses before its later ones, for other threads that see an atomic variable.
func (o *warpOrder) fence(m uint32) {
	o.see(&o.acquired)
	o.block.seenTurns.addAll(o.turns)
	for rest := m; rest != 0; rest &= rest - 1 {
		n := next(rest)
		o.alone[n] = max(o.alone[n], o.acquired[o.index])
	}
	o.fencedAt = o.release()
	o.fenced = true
}

// synchronise is a strong access to a variable: a write publishes the clocks of the last fence, a read acquires the
// published clocks.
func (o *warpOrder) synchronise(key uint64, read, write, acquires, releases bool) {
	r := o.block.run
	if !r.kernel.fences {
		return
	}
	v := r.orders[key]
	if v == nil {
		v = &order{block: o.block.number}
		r.orders[key] = v
	}
	if r.launch.Cooperative {
		v.of(o.block.number, true)
	}
	if read && v.block == o.block.number {
		o.acquired.join(&v.seen)
	}
	if read {
		o.turns.addAll(v.turns)
	}
	if acquires {
		o.fence(o.group)
	}
	if !write {
		return
	}
	if releases && !acquires {
		o.fence(o.group)
	}
	v.of(o.block.number, false)
	if o.fenced || releases {
		v.seen.join(&o.fencedAt)
		v.turns.add(r.turns.now())
		v.turns.addAll(o.block.seenTurns)
		o.released()
	}
}

// maxTurns bounds the turns that begin at releases.
const maxTurns = 1 << 14

// released begins another turn after a release of a warp, so that blocks which acquire do not see later accesses.
func (o *warpOrder) released() {
	r := o.block.run
	if !r.launch.Cooperative || len(r.turns.starts) > maxTurns {
		return
	}
	r.resume(o.block)
	o.clock = r.tick()
}
