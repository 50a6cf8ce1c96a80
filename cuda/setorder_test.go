package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
)

// A graph waits for the writers and the readers of the buffer that SetArg or SetArgs gave it, in the way of its argument, later
// works on that buffer wait for the graph, and nothing is left of the use of the buffer that was replaced.
func TestANewArgumentIsOrderedWithReadersAndWriters(t *testing.T) {
	const writing, reading = time.Hour, 2 * time.Hour
	for name, test := range map[string]struct {
		arg   func(cuda.Buffer) cuda.Arg
		waits time.Duration
		all   bool // SetArgs
	}{
		"a read by SetArg":   {arg: cuda.In, waits: writing},
		"a write by SetArg":  {arg: cuda.InOut, waits: reading},
		"a read by SetArgs":  {arg: cuda.In, waits: writing, all: true},
		"a write by SetArgs": {arg: cuda.InOut, waits: reading, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := newRig(t)
			oldOwner, owner, reader := r.context(), r.context(), r.context()
			gpu := r.dev.GPU()
			old, next := r.alloc(oldOwner, mib), r.alloc(owner, mib)
			require.NoError(t, oldOwner.Fill8(cuda.Whole(old), 1))
			g := r.graph(c, func() {
				tmp := r.alloc(c, mib)
				require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(tmp)))
				r.free(tmp)
			})
			set := func(a cuda.Arg) {
				t.Helper()
				if test.all {
					require.NoError(t, g.SetArgs(0, oneThread, a))
				} else {
					require.NoError(t, g.SetArg(0, 0, a))
				}
			}
			occupy := func(c *cuda.Context, d time.Duration) { require.NoError(t, gpu.Launch(c.Stream().Handle(), d)) }
			took := func(c *cuda.Context) time.Duration {
				t.Helper()
				before := gpu.Now()
				r.sync(c)
				return (gpu.Now() - before).Round(time.Minute)
			}
			set(cuda.InOut(old))
			require.NoError(t, g.Launch(c))
			r.sync(c, oldOwner)

			occupy(owner, writing)
			require.NoError(t, owner.Launch(r.touch, oneThread, cuda.InOut(next)))
			require.NoError(t, reader.Launch(r.touch, oneThread, cuda.In(next)))
			occupy(reader, reading-writing)
			require.NoError(t, reader.Launch(r.touch, oneThread, cuda.In(next)))
			set(test.arg(next))
			occupy(oldOwner, 10*time.Hour) // the graph does not wait for it
			require.NoError(t, oldOwner.Launch(r.touch, oneThread, cuda.InOut(old)))
			require.NoError(t, g.Launch(c))
			assert.Equal(t, test.waits, took(c))
			r.sync(reader)

			occupy(c, writing)
			require.NoError(t, g.Launch(c))
			require.NoError(t, owner.Launch(r.touch, oneThread, cuda.InOut(next)))
			assert.Equal(t, writing, took(owner), "a later write waits for the graph")

			require.NoError(t, owner.Freeze(old))
			require.NoError(t, g.Launch(c), "the graph writes the old buffer no more")
			r.sync(c, oldOwner)
			r.free(old)
			_, err := r.dev.Trim(t.Context(), 0)
			require.NoError(t, err)
			assert.Zero(t, r.dev.Stats().PendingBytes, "the graph keeps the old buffer no more")
			require.NoError(t, owner.Freeze(next))
			if test.waits == reading {
				require.ErrorIs(t, g.Launch(c), cuda.ErrFrozen)
			} else {
				require.NoError(t, g.Launch(c))
			}
			assert.Empty(t, r.dev.Hazards())
			require.NoError(t, g.Close())
			r.free(next)
		})
	}
}
