package interp

import "fmt"

// Limits of cooperative launches.
const (
	multiprocessorThreads = 2048
	multiprocessorBlocks  = 32
	cooperativeSlice      = 1 << 10 // instructions of a warp in a turn: a thread that waits for another block wastes the rest of it
	workspaceBytes        = 16
)

// cooperates returns the error of a launch whose blocks cannot all run at once.
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
