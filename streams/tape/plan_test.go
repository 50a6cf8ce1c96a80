package tape

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// packed is the plan of a step on one range that is long enough.
func packed(step []Request) *Plan {
	var sum uint32
	for _, r := range step {
		sum += r.Units
	}
	p := newPacker(step, []Range{{0, sum}})
	for !p.Run(1 << 20) {
	}
	return p.plan
}

// A step that repeats exactly finds every place free, wherever it begins.
func TestExactRepetitionIsPlacedWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := drawStep(t, 60)
		plan := packed(step)
		n := uint32(len(step))
		start := uint32(rapid.IntRange(0, int(n-1)).Draw(t, "start"))
		plan.lay(start)
		var todo []uint32
		ends := map[uint32][]uint32{} // by time
		for at := start; at < start+3*n; at++ {
			for _, i := range ends[at] {
				todo = plan.leave(i, todo)
			}
			i := at % n
			if step[i].Life == 0 {
				require.False(t, plan.take(i))
				todo = plan.skip(i, todo)
				continue
			}
			require.True(t, plan.take(i), "request %d of %d at %d", i, n, at)
			ends[at+step[i].Life] = append(ends[at+step[i].Life], i)
			require.NoError(t, plan.check())
		}
	})
}

// Whatever is taken, freed and skipped in whichever order: two places that are taken never overlap, and once all is
// freed and skipped round, every place can be taken again.
func TestNoOrderOfEventsBreaksThePromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := drawStep(t, 40)
		plan := packed(step)
		n := len(step)
		plan.lay(uint32(rapid.IntRange(0, n-1).Draw(t, "start")))
		var todo, live []uint32
		owner := map[uint32]uint32{} // by unit
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				i := uint32(rapid.IntRange(0, n-1).Draw(t, "request"))
				if !plan.take(i) {
					return
				}
				e := plan.entries[i]
				for u := e.first; u < e.first+e.units; u++ {
					_, taken := owner[u]
					require.False(t, taken, "unit %d", u)
					owner[u] = i
				}
				live = append(live, i)
			},
			"leave": func(t *rapid.T) {
				if len(live) == 0 {
					return
				}
				k := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				i := live[k]
				live = append(live[:k], live[k+1:]...)
				e := plan.entries[i]
				for u := e.first; u < e.first+e.units; u++ {
					delete(owner, u)
				}
				todo = plan.leave(i, todo)
				require.Empty(t, todo)
			},
			"skip": func(t *rapid.T) {
				todo = plan.skip(uint32(rapid.IntRange(0, n-1).Draw(t, "request")), todo)
			},
			"": func(t *rapid.T) { require.NoError(t, plan.check()) },
		})
		for _, i := range live {
			todo = plan.leave(i, todo)
		}
		for range 2 * n { // tokens may be a turn apart
			for i := range uint32(n) {
				todo = plan.skip(i, todo)
			}
		}
		for i := range uint32(n) {
			if plan.entries[i].first == none {
				continue
			}
			for range n { // until its turn comes
				if plan.take(i) {
					break
				}
				for k := range uint32(n) {
					if k != i {
						todo = plan.skip(k, todo)
					}
				}
			}
			require.True(t, plan.entries[i].taken, "request %d", i)
			todo = plan.leave(i, todo)
		}
	})
}
