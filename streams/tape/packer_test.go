package tape

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawStep draws a step of requests that live up to all of it.
func drawStep(t *rapid.T, most int) []Request {
	n := rapid.IntRange(1, most).Draw(t, "length")
	longest := rapid.IntRange(1, n).Draw(t, "longest life")
	step := make([]Request, n)
	for i := range step {
		step[i] = Request{
			Units: uint32(rapid.IntRange(1, 500).Draw(t, "units")),
			Life:  uint32(rapid.IntRange(0, longest).Draw(t, "life")),
		}
	}
	return step
}

// drawGround draws ranges with gaps between them.
func drawGround(t *rapid.T, units int) []Range {
	var ground []Range
	at := uint32(0)
	for range rapid.IntRange(1, 5).Draw(t, "ranges") {
		at += uint32(rapid.IntRange(0, 50).Draw(t, "gap"))
		r := Range{at, uint32(rapid.IntRange(1, units).Draw(t, "ground"))}
		ground = append(ground, r)
		at = r.End() + 1
	}
	return ground
}

// Whatever the step and the ground, places lie on the ground and two of them that are taken at once do not overlap.
func TestPlacesDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := drawStep(t, 1200)
		p := newPacker(step, drawGround(t, 20_000))
		for !p.Run(rapid.IntRange(1, 100_000).Draw(t, "looks")) {
		}
		n := uint32(len(step))
		holders := make([][]uint32, n) // by time: who has a place then
		for i := range n {
			e := p.plan.entries[i]
			if e.first == none {
				continue
			}
			inside := false
			for _, g := range p.plan.ground {
				inside = inside || g.First <= e.first && e.first+e.units <= g.End()
			}
			require.True(t, inside, "request %d is not on the ground", i)
			for life := range e.life {
				at := (i + life) % n
				for _, other := range holders[at] {
					o := p.plan.entries[other]
					require.False(t, o.first < e.first+e.units && e.first < o.first+o.units,
						"requests %d and %d lie on the same units at %d", other, i, at)
				}
				holders[at] = append(holders[at], i)
			}
		}
	})
}
