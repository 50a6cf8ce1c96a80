package interp

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// Run executes the kernel as if block by block in the order of their numbers; the same launch on the same memory does the
// same. The error is a *Fault for a mistake of the kernel, wraps ErrLaunch for a launch that cannot be, and is
// ErrStopped where Stop ended it. After a fault memory is as the kernel left it.
func (k *Kernel) Run(l Launch) error {
	if err := l.check(k); err != nil {
		return err
	}
	r := &run{
		kernel: k, launch: &l, globals: map[*ptx.Variable]uint64{}, limit: l.MaxInstructions, grid: l.Grid.count(), clock: 1,
		orders: map[uint64]*order{}, crowds: crowds{of: map[*cell]*crowd{}},
		shift: [2]uint{uint(bits.TrailingZeros(uint(k.granuleBytes[0]))), uint(bits.TrailingZeros(uint(k.granuleBytes[1])))}, //nolint:gosec // 1 to 4
	}
	if r.limit <= 0 {
		r.limit = DefaultMaxInstructions
	}
	for kind := range kindCount {
		r.ignored[kind] = slices.Contains(l.Ignore, kind) && kind >= Uninitialised && kind <= Undeclared
	}
	r.ownGlobals()
	r.workspace()
	if l.Cooperative {
		return r.together()
	}
	return r.blocks()
}

// check returns the error of an impossible launch.
func (l *Launch) check(k *Kernel) error {
	threads := uint64(l.Block.X) * uint64(l.Block.Y) * uint64(l.Block.Z)
	switch {
	case threads == 0 || l.Block.X > maxBlockThreads || l.Block.Y > maxBlockThreads || l.Block.Z > maxBlockDepth || threads > maxBlockThreads:
		return fmt.Errorf("%w: block %v, want 1 to %d threads, at most %d deep", ErrLaunch, l.Block, maxBlockThreads, maxBlockDepth)
	case l.Grid.X < 1 || l.Grid.Y < 1 || l.Grid.Z < 1 || l.Grid.X > maxGridWidth || l.Grid.Y > maxGridHeight || l.Grid.Z > maxGridHeight:
		return fmt.Errorf("%w: grid %v", ErrLaunch, l.Grid)
	case l.SharedBytes < 0 || l.SharedBytes > maxSharedBytes-k.staticSharedBytes:
		return fmt.Errorf("%w: %d bytes of dynamic shared memory, and %s has %d of at most %d", ErrLaunch, l.SharedBytes, k.name, k.staticSharedBytes, maxSharedBytes)
	case len(l.Params) != k.paramBytes:
		return fmt.Errorf("%w: %d bytes of parameters, and %s has %d", ErrLaunch, len(l.Params), k.name, k.paramBytes)
	case k.maxThreads > 0 && threads > uint64(k.maxThreads): //nolint:gosec // positive
		return fmt.Errorf("%w: %d threads, and %s is for at most %d", ErrLaunch, threads, k.name, k.maxThreads)
	}
	return l.cooperates(k)
}

// blocks executes the blocks, on several goroutines where that gives the same result.
func (r *run) blocks() error {
	first, last := r.launch.First, r.grid
	if r.launch.Blocks > 0 && first+r.launch.Blocks < last {
		last = first + r.launch.Blocks
	}
	if first >= last {
		return nil
	}
	if n := r.goroutines(last - first); n > 1 {
		if done, err := r.apart(n, first, last); done {
			return err
		}
	}
	b := r.newBlock()
	defer b.free()
	return r.execute(b, first, last)
}

// execute executes one block after the other.
func (r *run) execute(b *block, first, last uint64) error {
	for n := first; n < last; n++ {
		r.turns.begin(r.clock, n)
		b.begin(n)
		if err := b.execute(); err != nil {
			return err
		}
	}
	return nil
}
