package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two callers in a pipeline get all values, for any room for values and for memory, in many orders.
func TestCallersBehindEachOtherGoOn(t *testing.T) {
	var met Report
	for seed := range uint64(40) {
		w := newWorld(seed, mutateNothing)
		for len(w.era.streams) < 2 {
			w.do("open", func() { w.openStream(seed, false) })
		}
		for _, s := range w.era.streams {
			s.shares = false
			s.Exclusive()
		}
		for n := range uint32(30) {
			draw := mixed(seed, uint64(n))
			w.pipeline(action{number: n + 1, a: uint32(draw), b: n * 4, c: uint32(draw >> 32)}) //nolint:gosec // parts of it
			require.Nil(t, w.fault, "seed %d, pipeline %d: %+v", seed, n, w.fault)
		}
		met.Add(w.report)
		w.abandon()
	}
	t.Log(met.Pipelines, met.Handovers, met.Waited, met.Deadlocks)
	assert.EqualValues(t, 40*30, met.Pipelines)
	assert.Positive(t, met.Deadlocks)
}
