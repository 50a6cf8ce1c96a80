package cuda_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/together"
)

// heapBytes returns the live bytes of the Go heap.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below the bound
}

// A graph and a pool that live long keep nothing of the streams that launched them: neither memory nor the time to look through
// them.
func TestAGraphForgetsStreams(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	pool, err := c.NewPool()
	require.NoError(t, err)
	x := r.alloc(c, mib)
	capture := func(with ...cuda.Option) *cuda.Graph {
		t.Helper()
		g, err := c.Capture(func() error {
			tmp, err := c.AllocZeroed(mib)
			if err != nil {
				return err
			}
			if err := c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)); err != nil {
				return err
			}
			return tmp.Free()
		}, with...)
		require.NoError(t, err)
		return g
	}
	g, shared := capture(), capture(cuda.Shared(pool))
	// step is a stream that launches both graphs, one with a buffer of its own, and a graph of the pool that is closed.
	step := func() {
		s, err := r.dev.NewStream()
		require.NoError(t, err)
		on, err := cuda.NewContext(s)
		require.NoError(t, err)
		require.NoError(t, g.Launch(on))
		require.NoError(t, shared.Launch(on))
		brief := capture(cuda.Shared(pool))
		require.NoError(t, brief.Launch(on))
		require.NoError(t, brief.Close())
		require.NoError(t, on.Close())
		require.NoError(t, s.Close())
	}
	const steps = 2000
	calls := func() (n uint64) {
		for _, function := range []string{"cuEventRecord", "cuStreamWaitEvent", "cuEventQuery", "cuGraphLaunch"} {
			n += r.faults.Calls(function)
		}
		return n
	}
	var heap int64
	var made uint64
	var perStep [2]uint64
	for i := range steps {
		switch i {
		case 99:
			made = calls()
		case 100:
			perStep[0], heap = calls()-made, heapBytes()
		case steps - 1:
			made = calls()
		}
		step()
	}
	perStep[1] = calls() - made
	var grown int64
	assert.Eventually(t, func() bool { // actors of the last streams end in the background
		grown = heapBytes() - heap
		return grown/steps < 10_000
	}, time.Minute, 20*time.Millisecond, "a stream has 70 kB")
	t.Logf("%d bytes a stream; driver calls of a step: %v", grown/steps, perStep)
	assert.InDelta(t, perStep[0], perStep[1], steps/20, "but for the queries of ticks: a graph that kept the streams would look at each of them")
	require.NoError(t, g.Close())
	require.NoError(t, shared.Close())
	require.NoError(t, pool.Close())
	require.NoError(t, x.Free())
}

// A stream whose join panicked is no part of the capture: its end does not wait for calls on that stream.
func TestAStreamWhoseJoinPanickedIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newFailing(t, sim.Config{})
		d := r.context()
		begun, over, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		began := time.Now()
		g, err := c.Capture(func() error {
			r.faults.SetBefore(func(string) { panic(recovered.Planted("in a join")) })
			assert.Panics(t, func() { _ = d.Wait(c) })
			r.faults.SetBefore(nil)
			go func() {
				ended <- d.Submit(func(cudadrv.Device, cudadrv.Stream) error {
					close(begun)
					<-over
					return nil
				})
			}()
			<-begun
			return nil
		})
		took := time.Since(began)
		close(over)
		require.NoError(t, err)
		require.NoError(t, <-ended)
		assert.Zero(t, took, "a call that does not end is waited for ten seconds")
		require.NoError(t, g.Close())
	})
}

// A graph notes each of the streams that launch it at the same time for the first time: its memory waits for all of them.
func TestManyGoroutinesLaunchAGraph(t *testing.T) {
	r, c := newRig(t)
	var on [4]*cuda.Context
	for i := range on {
		on[i] = r.context()
	}
	x := r.alloc(c, mib)
	for name, launch := range map[string]func(g *cuda.Graph, d *cuda.Context) error{
		"Launch": (*cuda.Graph).Launch,
		"note":   func(g *cuda.Graph, d *cuda.Context) error { cuda.NoteLaunch(g, d); return nil }, // without the order of a launch
	} {
		for range 150 {
			g := r.graph(c, func() { require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.In(x))) })
			together.Run(len(on), func(i int) { assert.NoError(t, launch(g, on[i])) })
			require.Equal(t, len(on), cuda.LaunchStreams(g), name)
			require.NoError(t, g.Close())
		}
	}
	r.sync(on[:]...)
	r.free(x)
	assert.Empty(t, r.dev.Hazards())
}

// An event that is closed while others use it ends once, after the last call: calls before the end succeed, and later ones are refused.
func TestManyGoroutinesUseAnEventAtItsEnd(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	destroyed := r.faults.Calls("cuEventDestroy")
	const rounds = 300
	for range rounds {
		e, err := c.Record()
		require.NoError(t, err)
		var closed atomic.Int32
		together.Run(4, func(number int) {
			if number < 2 {
				if err := e.Close(); err == nil {
					closed.Add(1)
				}
				return
			}
			for range 3 {
				if _, err := e.Done(); err != nil {
					assert.ErrorIs(t, err, cuda.ErrNotOpen)
				}
			}
		})
		require.EqualValues(t, 2, closed.Load(), "Close is idempotent")
		_, err = e.Done()
		require.ErrorIs(t, err, cuda.ErrNotOpen)
	}
	assert.EqualValues(t, rounds, r.faults.Calls("cuEventDestroy")-destroyed)
}

// The second Stop of a profile ends no other profile of the stream.
func TestAStoppedProfileEndsNoOther(t *testing.T) {
	r, c := newFailing(t, sim.Config{})
	x := r.alloc(c, mib)
	first, err := c.StartProfile()
	require.NoError(t, err)
	_, err = first.Stop()
	require.NoError(t, err)
	second, err := c.StartProfile()
	require.NoError(t, err)
	_, err = first.Stop()
	require.NoError(t, err)
	require.True(t, cuda.LaunchesSlowly(c))
	require.NoError(t, c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)))
	all, err := second.Stop()
	require.NoError(t, err)
	assert.Len(t, all, 1)
	assert.False(t, cuda.LaunchesSlowly(c))
	require.NoError(t, x.Free())
}
