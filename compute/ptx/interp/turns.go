package interp

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// turns are the stretches of a run in which one block executes: one for each block, but in a cooperative launch, where blocks take turns.
// Every access is of a turn by its clock.
type turns struct {
	starts []uint32 // the clock when each turn began: its accesses are later, those of earlier turns are not
	blocks []uint64 // the block of each turn, by its number
}

// begin begins a turn of a block.
func (t *turns) begin(clock uint32, block uint64) {
	t.starts, t.blocks = append(t.starts, clock), append(t.blocks, block)
}

// now is the number of the current turn.
func (t *turns) now() uint64 { return uint64(len(t.starts) - 1) }

// past reports whether an access is of an earlier turn than the current one.
func (t *turns) past(clock uint32) bool { return clock <= t.starts[len(t.starts)-1] }

// at is the turn that an access is of. The clock at the start of a turn is the last time of the turn before it.
func (t *turns) at(clock uint32) uint64 {
	n, _ := slices.BinarySearch(t.starts, clock)
	return uint64(n - 1) //nolint:gosec // every access is later than the first start
}

// blockAt is the number of the block that an access is of.
func (t *turns) blockAt(clock uint32) uint64 { return t.blocks[t.at(clock)] }

// Limits of cooperative launches.
const (
	multiprocessorThreads = 2048
	multiprocessorBlocks  = 32
	cooperativeSlice      = 1 << 10 // instructions of a warp in a turn: a thread that waits for another block wastes the rest of it
	maxTurns              = 1 << 14 // that begin at releases, so that later accesses are told from earlier ones
	gridWindow            = uint64(5) << windowShift
	workspaceBytes        = 16
)

// cooperates is the error of a launch whose blocks cannot all run at once.
func (l *Launch) cooperates(k *Kernel) error {
	if !l.Cooperative {
		return nil
	}
	most := min(multiprocessorThreads/l.Block.count(), multiprocessorBlocks)
	if shared := uint64(k.staticSharedBytes + l.SharedBytes); shared > 0 { //nolint:gosec // not negative
		most = min(most, max(maxSharedBytes/shared, 1))
	}
	switch {
	case l.First > 0 || l.Blocks > 0:
		return fmt.Errorf("%w: a part of a cooperative launch", ErrLaunch)
	case l.Grid.count() > most*multiprocessors:
		return fmt.Errorf("%w: %d blocks of a cooperative launch, and %d run at once", ErrLaunch, l.Grid.count(), most*multiprocessors)
	}
	return nil
}

// workspace makes the memory in which the blocks of a cooperative launch meet: %envreg1 and %envreg2 are its address.
func (r *run) workspace() {
	if r.launch.Cooperative {
		r.own = append(r.own, Region{Start: gridWindow, Bytes: make([]byte, workspaceBytes), Owner: workspaceOwner{}})
	}
}

// workspaceOwner names the workspace.
type workspaceOwner struct{}

// String names it.
func (workspaceOwner) String() string { return "the workspace of the grid" }

// environment is a register that the driver fills: 0 but for those of a cooperative launch.
func (l *Launch) environment(s ptx.Special) uint64 {
	if l.Cooperative && s.String() == "%envreg1" {
		return gridWindow >> 32 //nolint:mnd // the upper half
	}
	return 0 // also the lower half
}

// together executes the blocks of a cooperative launch in turns, so that they may wait for each other.
func (r *run) together() error {
	var waiting []*block
	for n := range r.grid {
		b := r.newBlock()
		r.turns.begin(r.clock, n)
		b.begin(n)
		b.seenTurns.add(r.turns.now())
		waiting = append(waiting, b)
	}
	for len(waiting) > 0 {
		kept := waiting[:0]
		for _, b := range waiting {
			r.resume(b)
			if err := b.round(cooperativeSlice); err != nil {
				return err
			}
			if b.live > 0 {
				kept = append(kept, b)
			} else if err := b.end(); err != nil {
				return err
			}
		}
		waiting = kept
	}
	return nil
}

// resume begins another turn of a block.
func (r *run) resume(b *block) {
	r.turns.begin(r.clock, b.number)
	b.seenTurns.add(r.turns.now())
}

// released begins another turn after a release of a warp, so that blocks which acquire do not see later accesses.
func (w *warp) released() {
	r := w.block.run
	if !r.launch.Cooperative || len(r.turns.starts) > maxTurns {
		return
	}
	r.resume(w.block)
	w.order.clock = r.tick()
}
