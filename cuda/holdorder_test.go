package cuda_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/vramtest"
)

// A stream that has waited for a pool's memory waits again once the pool has got memory from other work, whichever call has
// allocated it. The clock shows the wait: the other work takes an hour.
func TestMemoryThatAPoolTakesLaterIsWaitedForAgain(t *testing.T) {
	const bytes = 40 * mib
	for name, allocate := range map[string]func(c *cuda.Context) (cuda.Buffer, error){
		"Alloc": func(c *cuda.Context) (cuda.Buffer, error) { return c.Alloc(bytes) },
		"AllocFor": func(c *cuda.Context) (cuda.Buffer, error) {
			return c.AllocFor(context.Background(), vram.Request{Bytes: bytes, Tag: "x"})
		},
		"AllocBatch": func(c *cuda.Context) (cuda.Buffer, error) {
			all := make([]cuda.Buffer, 1)
			err := c.AllocBatch(all, []int64{bytes})
			return all[0], err
		},
		"Workspace": func(c *cuda.Context) (cuda.Buffer, error) { return c.Workspace(bytes) },
	} {
		t.Run(name, func(t *testing.T) {
			r, c := newRig(t, vramtest.Config(vram.Config{LimitBytes: 64 * mib, Waits: vram.WaitsAlways}))
			d, busy := r.context(), r.context()
			pool, err := c.NewPool()
			require.NoError(t, err)
			var first, second cuda.Buffer
			one := r.graph(c, func() { first = r.alloc(c, mib) }, cuda.Shared(pool))
			require.NoError(t, d.Fill8(cuda.Whole(first), 1))
			r.sync(d)

			x := r.alloc(busy, 50*mib)
			began := r.dev.Now()
			require.NoError(t, r.dev.GPU().Launch(busy.Stream().Handle(), time.Hour))
			require.NoError(t, busy.Fill8(cuda.Part(x, 0, 1), 1))
			at := x.Ptr()
			r.free(x)
			two := r.graph(c, func() {
				var err error
				second, err = allocate(c)
				require.NoError(t, err)
			}, cuda.Shared(pool))
			require.True(t, second.Ptr() < at+cudadrv.Ptr(50*mib) && at < second.Ptr()+cudadrv.Ptr(bytes), "the test is about memory of other work")
			if name == "Workspace" { // only launches of the graph have it
				require.NoError(t, two.Launch(d))
			} else {
				require.NoError(t, d.Fill8(cuda.Part(second, 0, 1), 2))
			}
			r.sync(d)
			assert.GreaterOrEqual(t, r.dev.Now()-began, time.Hour)
			require.NoError(t, pool.Close())
			if name != "Workspace" {
				r.free(second)
			}
			r.free(first)
			require.NoError(t, one.Close())
			require.NoError(t, two.Close())
		})
	}
}
