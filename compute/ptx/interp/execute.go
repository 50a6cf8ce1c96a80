package interp

// newBlock makes the state of a block, which all blocks of a run use one after the other. It takes the memory of an earlier launch.
func (r *run) newBlock() *block {
	b := r.kernel.spares.take()
	if b == nil {
		b = &block{}
	}
	l := r.launch
	bytes := r.kernel.staticSharedBytes + l.SharedBytes
	words := (bytes + wordBits - 1) / wordBits
	b.run, b.kernel, b.threads = r, r.kernel, int(l.Block.count()) //nolint:gosec // at most 1024
	b.shared, b.initialised, b.inFlight = zeros(b.shared, bytes), zeros(b.initialised, words), zeros(b.inFlight, words)
	b.cells, b.memo = zeros(b.cells, bytes/r.kernel.granuleBytes[0]+1), zeros(b.memo, len(r.kernel.code))
	warps := (b.threads + warpThreads - 1) / warpThreads
	for len(b.warps) < warps {
		b.warps = append(b.warps, &warp{})
	}
	b.warps = b.warps[:warps]
	for n, w := range b.warps {
		w.start(b, n)
	}
	if r.kernel.wgmma {
		b.reading = zeros(b.reading, bytes/chunkBytes+1)
		b.warpgroups = make([][]issue, (b.threads+warpgroupThreads-1)/warpgroupThreads)
	}
	return b
}

// zeros returns so many zeros, in the memory of a slice if it has room.
func zeros[T any](in []T, count int) []T {
	if cap(in) < count {
		return make([]T, count)
	}
	clear(in[:count])
	return in[:count]
}

// free leaves the memory of the block to a further launch.
func (b *block) free() {
	k := b.kernel
	clear(b.memo)
	*b = block{
		warps: b.warps, shared: b.shared, initialised: b.initialised, inFlight: b.inFlight, cells: b.cells, memo: b.memo, reading: b.reading,
	}
	k.spares.put(b)
}

// begin makes everything ready for a block of the grid.
func (b *block) begin(number uint64) {
	b.number, b.index, b.live = number, b.run.launch.Grid.at(number), b.threads
	clear(b.shared)
	clear(b.initialised)
	clear(b.inFlight)
	b.asyncs, b.suspect, b.settled = 0, nil, false
	clear(b.guesses.open)
	b.bulk = b.bulk[:0]
	if b.reading != nil {
		clear(b.reading)
		for n := range b.warpgroups {
			b.warpgroups[n] = b.warpgroups[n][:0]
		}
		b.asyncs = 1
	}
	b.seenTurns, b.began = b.seenTurns[:0], b.run.clock
	for n := range b.barriers {
		if b.barriers[n].open { // some threads have arrived, and no more have come
			b.barriers[n] = barrierState{}
		}
	}
	clear(b.mbarriers)
	for _, w := range b.warps {
		w.begin()
	}
}

// slice is how many instructions a warp executes before the next one has its turn.
const slice = 1 << 14

// execute runs the warps in turn until all threads have ended.
func (b *block) execute() error {
	for b.live > 0 {
		if err := b.round(slice); err != nil {
			return err
		}
	}
	return b.end()
}

// round executes some instructions of each warp.
func (b *block) round(instructions int64) error {
	progress := false
	for _, w := range b.warps {
		if w.runnable() == 0 {
			continue
		}
		progress = true
		w.advance(instructions)
		if err := b.verdict(w.fault); err != nil {
			return err
		}
	}
	if !progress {
		return b.verdict(b.deadlock())
	}
	if b.run.stopped() {
		return ErrStopped
	}
	return nil
}

// stopped asks the launch whether the run is to end.
func (r *run) stopped() bool {
	if r.launch.Stop == nil || r.worker == nil {
		return r.launch.Stop != nil && r.launch.Stop()
	}
	var stop bool
	r.worker.crew.call(func() { stop = r.launch.Stop() })
	return stop
}

// end returns the verdict on a block whose threads have all ended.
func (b *block) end() error {
	b.settled = true
	if err := b.verdict(b.lonely()); err != nil {
		return err
	}
	if err := b.verdict(b.unfinished()); err != nil {
		return err
	}
	return b.guesses.wrong()
}

// verdict returns the fault of the block: the warp's fault, or the suspect if it is the cause. A race of the suspect's
// own load is the cause itself: without a barrier the load was too early for one thread, and raced with the store of
// another.
func (b *block) verdict(err error) error {
	s := b.suspect
	if s == nil || err == nil && !b.settled {
		return err
	}
	if f, ok := err.(*Fault); ok && f.Kind == SharedRace && (f.Line == s.Line || f.Other != nil && f.Other.Line == s.Line) { //nolint:errorlint // not wrapped
		return err
	}
	return s
}
