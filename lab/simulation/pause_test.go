package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// Where the work of a rest is refused, the handler of shortages may free a buffer of an adopted stream, whose pages stay until
// its callers use it again or call Trim. They call it, and only memory that nobody has freed since has to be old.
func TestARestBeginsAnewAfterAFree(t *testing.T) {
	var disturbed int // rests
	for seed := range uint64(40) {
		w := newWorld(seed, mutateNothing)
		w.step = int(seed) // the handler's choices depend on it
		if w.shape.segments || w.era.ahead {
			w.abandon()
			continue // free memory does not get old
		}
		w.do("open", func() { w.openStream(1, true) })
		working, adopted := w.era.streams[0], w.era.streams[len(w.era.streams)-1]
		require.True(t, adopted.adopted && !working.adopted && !w.capturedAny())
		bytes := max(w.shape.pageBytes, sizeclass.MaxBytes+1)
		w.do("take all", func() {
			for err := error(nil); err == nil; {
				b, refused := adopted.Alloc(bytes)
				if err = refused; err == nil {
					w.enter(adopted, b, bytes, 0)
				}
			}
		})
		liveCount := len(w.held)
		for c := range uint32(4) {
			w.pause(action{b: 8 * c, c: 2 * c}) // no spike
		}
		require.Nil(t, w.fault, "seed %d: %+v", seed, w.fault)
		require.EqualValues(t, 4, w.report.Rests)
		disturbed += min(1, liveCount-len(w.held))
		w.abandon()
	}
	assert.GreaterOrEqual(t, disturbed, 5)
}
