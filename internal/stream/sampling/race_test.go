package sampling

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
)

// together runs functions on goroutines that begin at the same moment.
func together(fns ...func()) {
	var all sync.WaitGroup
	var ready atomic.Int32
	for _, fn := range fns {
		all.Go(func() {
			ready.Add(1)
			for spins := 0; ready.Load() < int32(len(fns)); spins++ { //nolint:gosec // a few
				if spins > 1000 {
					runtime.Gosched()
				}
			}
			fn()
		})
	}
	all.Wait()
}

// counted returns how many samples the register has.
func (r *Register) counted() (samples int64) {
	for _, s := range r.tree.Load().all([]*Site{&r.other}) {
		samples += s.totals[0].Load()
	}
	return samples
}

// Goroutines that take the first samples of a register at once lose none.
func TestFirstPlacesAmongGoroutines(t *testing.T) {
	for range 2000 {
		var r Register
		enter := func(i uintptr) func() {
			return func() { r.Site(Labels{}, site.Stack{i}).Allocated(0, 1, all, all) }
		}
		together(enter(1), enter(2))
		require.EqualValues(t, 2, r.counted())
	}
}

// A sample whose place is entered during a sweep is counted, at the place or with the others. The stack is so long that the search for
// the place takes much longer than the sweep, which comes sooner or later in it.
func TestPlacesMeetASweep(t *testing.T) {
	const steps = 16
	long := make(site.Stack, 1<<14)
	for i := range 20 * steps {
		var r Register
		r.Site(Labels{}, site.Stack{1}).Allocated(0, 1, all, all)
		tree := r.tree.Load()
		together(func() {
			r.Site(Labels{Stream: 1}, long).Allocated(0, 1, all, all)
		}, func() {
			for range 2 { // the other's way is twice as long: it searches, and then enters
				_ = hash(&Labels{}, long[:len(long)/steps*(i%steps)])
			}
			r.sweep(tree)
		})
		require.EqualValues(t, 2, r.counted(), "%d", i)
	}
}
