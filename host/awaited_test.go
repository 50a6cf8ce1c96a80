package host

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The event that a Trim or a Close waits for stays that of its use, also if the block becomes free, and is used and freed again,
// before the driver's wait begins: a Trim does not wait for uses that were announced after its call.
func TestAnEventThatIsAwaitedIsNotUsedAgain(t *testing.T) {
	const bytes, long = 1 << 20, time.Hour
	for _, streams := range []int{1, 3} { // of the uses of the first block
		r := newRig(t)
		p := r.cache(1 << 30)
		b := alloc(t, p, bytes, 0)
		for range streams {
			s := r.stream()
			r.busy(s, time.Second)
			require.NoError(t, b.Use(s))
		}
		free(t, b)
		late := r.stream()
		var waits atomic.Int32
		r.faults.SetBefore(func(function string) {
			if function != "cuEventSynchronize" || waits.Add(1) > 1 {
				return
			}
			r.sim.Advance(2 * time.Second)
			r.busy(late, long)
			var next []Block
			for range 2 { // the first one is the block that becomes free
				next = append(next, alloc(t, p, bytes, 0))
				for range streams {
					assert.NoError(t, next[len(next)-1].Use(late))
				}
			}
			assert.NoError(t, FreeAll(next...))
		})
		began := r.sim.Now()
		_, err := p.Trim(t.Context())
		require.NoError(t, err)
		require.Positive(t, waits.Load())
		assert.Less(t, r.sim.Now()-began, long, "it waited for a later use")
		assert.EqualValues(t, 2, p.Stats().PendingBytes/bytes)
		r.faults.SetBefore(nil)
		r.end(p)
		assert.GreaterOrEqual(t, r.sim.Now()-began, long)
	}
}
