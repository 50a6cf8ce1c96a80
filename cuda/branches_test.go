package cuda_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A wait in a capture that the driver refuses orders nothing: the branch does not get memory whose last work it does not follow.
func TestARefusedWaitOrdersNothing(t *testing.T) {
	for _, function := range []string{"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"} {
		r, c := newFailing(t, sim.Config{})
		d := r.context()
		g, err := c.Capture(func() error {
			require.NoError(t, d.Wait(c))
			x := r.alloc(c, 64*mib)
			require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
			require.NoError(t, x.Free())
			require.NoError(t, r.faults.Add(fault.Rule{Func: function, Count: 1, Result: cudadrv.Unknown}))
			require.ErrorIs(t, d.Wait(c), cudadrv.Unknown)
			r.faults.Clear()
			y := r.alloc(d, 64*mib)
			assert.NotEqual(t, x.Ptr(), y.Ptr(), "%s was refused", function)
			require.NoError(t, y.Free())
			require.NoError(t, d.Wait(c))
			z := r.alloc(d, 64*mib)
			assert.Contains(t, []cudadrv.Ptr{x.Ptr(), y.Ptr()}, z.Ptr(), "now it follows")
			require.NoError(t, z.Free())
			return c.Wait(d)
		})
		require.NoError(t, err)
		require.NoError(t, g.Close())
	}
}

// A request of a branch that finds no memory gives back what it could not use.
func TestARefusedRequestOfABranchKeepsNothing(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	d := r.context()
	g, err := c.Capture(func() error {
		require.NoError(t, d.Wait(c))
		x := r.alloc(c, 64*mib)
		require.NoError(t, c.Launch(r.touch, oneThread, cuda.InOut(x)))
		require.NoError(t, x.Free())
		r.faults.SetCapacity(0)
		_, err := d.Alloc(64 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		again, err := c.Alloc(64 * mib) // the stream that has freed it
		require.NoError(t, err)
		r.faults.SetCapacity(fault.Unlimited)
		require.NoError(t, again.Free())
		return c.Wait(d)
	})
	require.NoError(t, err)
	require.NoError(t, g.Close())
}

// The end of a capture waits for calls of others on each of its streams, also on one that has joined it.
func TestTheEndOfACaptureWaitsForJoinedStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, d := p.on[0], p.on[1]
		called, captured, resume := make(chan error, 1), make(chan error, 1), func() {}
		go func() {
			_, err := c.Capture(func() error {
				if err := d.Wait(c); err != nil {
					return err
				}
				var entered <-chan struct{}
				entered, resume = p.holdUp("cuMemsetD8Async")
				go func() { called <- d.Fill8(cuda.Whole(p.of[1]), 3) }()
				<-entered
				return errPlanned
			})
			captured <- err
		}()
		synctest.Wait()
		assert.Equal(t, cudadrv.CaptureActive, p.status(c), "a call on the other stream runs")
		resume()
		require.NoError(t, <-called)
		require.ErrorIs(t, <-captured, errPlanned)
		p.close()
	})
}

// A capture that fails keeps no module, of however many kernels.
func TestAFailedCaptureKeepsNoModule(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	x := r.alloc(c, 64)
	m, err := c.LoadModule([]byte(ptx))
	require.NoError(t, err)
	f, err := m.Function("touch")
	require.NoError(t, err)
	_, err = c.Capture(func() error {
		for range 3 {
			require.NoError(t, c.Launch(f, oneThread, cuda.InOut(x)))
		}
		require.ErrorIs(t, m.Unload(), cuda.ErrModuleInUse)
		return errPlanned
	})
	require.ErrorIs(t, err, errPlanned)
	require.NoError(t, m.Unload())
	require.NoError(t, x.Free())
}
