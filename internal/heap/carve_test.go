package heap

import (
	"slices"

	"github.com/stretchr/testify/require"
)

// carve checks that the blocks are contiguous at the low end of a range that Take could have cut, as many as
// fit.
func (m *model) carve(units uint32, most int) {
	before := m.ref.free()
	var blocks []int32
	got := m.heap.Carve(units, most, func(b int32) { blocks = append(blocks, b) })
	require.Len(m.t, blocks, got)
	var fits []uint32
	own := 0
	for _, s := range before {
		if binOf(s.units()) == binOf(units) {
			own++
		}
		if s.units() >= units {
			fits = append(fits, s.units())
		}
	}
	slices.Sort(fits)
	if len(fits) == 0 {
		require.Zero(m.t, got)
		return
	}
	require.Positive(m.t, got, "missed a fit for %d units: %d", units, fits)
	from := m.heap.Offset(blocks[0])
	at := slices.IndexFunc(before, func(s span) bool { return s.from == from })
	require.GreaterOrEqual(m.t, at, 0, "carved from unit %d, where no free range starts", from)
	require.Equal(m.t, min(most, int(before[at].units()/units)), got)
	m.checkChoice(units, before[at].units(), fits, own)
	for i, b := range blocks {
		require.Equal(m.t, from+uint32(i)*units, m.heap.Offset(b))
		require.Equal(m.t, units, m.heap.Units(b))
		m.ref.fill(m.heap.Offset(b), m.heap.Offset(b)+units, b)
	}
}

// takeAligned checks the start of the block, and that none is missed if a range is long enough for any start,
// or if there are few ranges.
func (m *model) takeAligned(units, align, phase uint32) {
	before := m.ref.free()
	b := m.heap.TakeAligned(units, align, phase)
	if b == None {
		for _, s := range before {
			require.Less(m.t, s.units(), units+align-1, "missed a range for %d units aligned to %d", units, align)
			if len(before) <= alignedVisits {
				front := (phase - s.from) & (align - 1)
				require.Less(m.t, s.units(), front+units, "missed a place in %v for %d units aligned to %d+%d", s, units, align, phase)
			}
		}
		return
	}
	from := m.heap.Offset(b)
	require.Equal(m.t, phase, from%align)
	require.Equal(m.t, units, m.heap.Units(b))
	for u := from; u < from+units; u++ {
		require.Equal(m.t, nobody, m.ref[u])
	}
	m.ref.fill(from, from+units, b)
}
