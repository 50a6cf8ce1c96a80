package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A caller may be adopting a captured stream when all memory must be available: its capture begins during settle, and keeps
// announced uses of that stream. It ends before the whole memory is requested.
func TestNoCaptureKeepsMemoryThatMustBeThere(t *testing.T) {
	w := newWorld(1, mutateNothing)
	defer w.abandon()
	s := w.era.streams[0]
	w.do("alloc", func() {
		b, err := s.Alloc(100_000)
		w.answered(s, nil, b, 100_000, 0, err)
	})
	require.Nil(t, w.fault)
	draw := uint64(0)
	for mixed(draw, 11)%4 != 0 { // captured from the beginning
		draw++
	}
	adoption := w.start(keyOf("adopt"), "adopt", func() {
		w.openStream(draw, true)
		w.recordUse(w.held[0], w.era.streams[len(w.era.streams)-1])
	})
	w.resume(adoption, 0)
	require.False(t, w.capturedAny(), "it has not begun")
	w.whole(action{a: 1, b: 1, c: 1}) // captures may stay open while tasks settle before and after
	require.EqualValues(t, 1, w.report.Captures)
	assert.Nil(t, w.fault)
	assert.EqualValues(t, 1, w.report.Whole)
}
