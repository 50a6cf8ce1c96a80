package sampling

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/together"
)

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
		together.Funcs(enter(1), enter(2))
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
		together.Funcs(func() {
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

// Places that goroutines enter at the same time are counted once each, also those that several enter.
func TestPlacesAreCountedAmongGoroutines(t *testing.T) {
	const own, shared = 60, 30
	for range 4 {
		var tr tree
		enters := func(first uintptr) func() {
			return func() {
				for i := range uintptr(own) {
					tr.enter(&Site{stack: site.Stack{first + i}})
					tr.enter(&Site{stack: site.Stack{1 + i%shared}})
				}
			}
		}
		together.Funcs(enters(1000), enters(2000), enters(3000), enters(4000))
		require.EqualValues(t, 4*own+shared, tr.count.Load())
		require.Len(t, tr.all(nil), 4*own+shared)
	}
}

// Totals that a sweep gathers at a place are added to the totals of samples that come at the same time.
func TestSamplesMeetGathers(t *testing.T) {
	const rounds = 200
	var other Site
	at, retired := &Site{other: &other}, &Site{other: &other}
	retired.Allocated(0, 3, all, all)
	together.Funcs(func() {
		for range rounds {
			at.gather(retired)
		}
	}, func() {
		for range rounds {
			x := at.Allocated(0, 5, all, all)
			x.End()
		}
	})
	allocated, freed := totalsOf(at.sums(0)), totalsOf(at.sums(totalCount))
	require.EqualValues(t, 2*rounds, allocated.Count)
	require.EqualValues(t, (3+5)*rounds, allocated.Bytes)
	require.EqualValues(t, rounds, freed.Count)
	require.EqualValues(t, 5*rounds, freed.Bytes)
	require.Zero(t, at.live.Load())
}
