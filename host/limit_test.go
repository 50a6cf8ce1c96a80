package host

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counted has the most blocks that were live at once.
type counted struct {
	Allocator

	live, most atomic.Int64
}

func (c *counted) Alloc(bytes, align int64) (Block, error) {
	live := c.live.Add(1)
	for most := c.most.Load(); live > most && !c.most.CompareAndSwap(most, live); most = c.most.Load() {
	}
	return c.Allocator.Alloc(bytes, align)
}

func (c *counted) Free(b Block) error {
	c.live.Add(-1)
	return c.Allocator.Free(b)
}

// Goroutines that allocate at once never exceed a bound together, not even for a moment.
func TestBoundsAmongGoroutines(t *testing.T) {
	const blocks, rounds = 1, 100_000
	for _, bounds := range []Bounds{{Blocks: blocks}, {Bytes: 64 * blocks}} {
		inner := &counted{Allocator: NewAligned()}
		limit := must[*Limit](t)(Limited(inner, bounds))
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 2 * max(2, runtime.GOMAXPROCS(0)) {
			all.Go(func() {
				for range rounds {
					b, err := limit.Alloc(64, 0)
					if errors.Is(err, ErrLimit) {
						refused.Add(1)
						continue
					}
					assert.NoError(t, err)
					if refused.Load() == 0 { // until others ask for it, too
						runtime.Gosched()
					}
					assert.NoError(t, limit.Free(b))
				}
			})
		}
		all.Wait()
		require.Positive(t, refused.Load())
		assert.LessOrEqual(t, inner.most.Load(), int64(blocks), "%+v", bounds)
		assert.Zero(t, limit.Stats().LiveBlocks)
	}
}
