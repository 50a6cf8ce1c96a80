package interp

// newBlock makes the state of a block, which all blocks of a run use one after the other.
func (r *run) newBlock() *block {
	l := r.launch
	bytes := r.kernel.staticSharedBytes + l.SharedBytes
	words := (bytes + 63) / 64 //nolint:mnd // bits of a word
	b := &block{
		run: r, kernel: r.kernel, threads: int(l.Block.count()), //nolint:gosec // at most 1024
		shared: make([]byte, bytes), initialised: make([]uint64, words), inFlight: make([]uint64, words),
		cells: make([]cell, bytes/r.kernel.granuleBytes[0]+1), memo: make([]memo, len(r.kernel.code)),
	}
	for n := 0; n*warpThreads < b.threads; n++ {
		b.warps = append(b.warps, newWarp(b, n))
	}
	if r.kernel.wgmma {
		b.reading = make([]uint16, bytes/chunkBytes+1)
		b.warpgroups = make([][]issue, (b.threads+warpgroupThreads-1)/warpgroupThreads)
	}
	return b
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
