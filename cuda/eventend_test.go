package cuda_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// destroyed waits until the driver has no more events than before.
func (p *pair) destroyed(before int) {
	p.Helper()
	for p.gpu.Objects()["event"] > before {
		runtime.Gosched()
	}
}

// An event is destroyed once: by Close, or by the wait that its context ended, when that is over; also if both come, in either order,
// while the driver waits.
func TestAnEventIsDestroyedOnce(t *testing.T) {
	for name, closes := range map[string]struct{ before, after bool }{
		"a wait alone": {}, "closed before the wait ends": {before: true}, "closed after": {after: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			defer p.close()
			events, destroys := p.gpu.Objects()["event"], p.faults.Calls("cuEventDestroy")
			e, err := p.on[0].Record()
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			entered, resume := p.holdUp("cuEventSynchronize")
			result := make(chan error, 1)
			go func() { result <- e.Synchronize(ctx) }()
			<-entered
			if closes.before {
				require.NoError(t, e.Close())
			}
			cancel()
			require.ErrorIs(t, <-result, context.Canceled)
			if closes.after {
				require.NoError(t, e.Close())
			}
			assert.Equal(t, destroys, p.faults.Calls("cuEventDestroy"), "the driver still waits for it")
			_, err = e.Done()
			require.ErrorIs(t, err, cuda.ErrNotOpen)
			resume()
			p.destroyed(events)
			require.NoError(t, e.Close())
			require.NoError(t, p.on[0].Synchronize(t.Context())) // after all goroutines of the wait
			assert.LessOrEqual(t, p.faults.Calls("cuEventDestroy"), destroys+2, "the event, and the one of Synchronize")
		})
	}
}

// The wait of a context whose goroutine the driver ends is an error, and the event can be waited for again.
func TestAWaitThatTheDriverEnds(t *testing.T) {
	p := newPair(t)
	defer p.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := p.on[0].Record()
	require.NoError(t, err)
	p.faults.SetBefore(func(function string) {
		if function == "cuEventSynchronize" {
			runtime.Goexit()
		}
	})
	require.EqualError(t, e.Synchronize(ctx), "cuda: the driver ended the goroutine that waited for an event")
	p.faults.SetBefore(nil)
	require.NoError(t, e.Synchronize(ctx))
	require.NoError(t, e.Close())
	assert.Zero(t, p.gpu.Objects()["event"])
}

// Close and a call of another goroutine may meet: the driver has the event until the call has ended.
func TestAnEventIsNotDestroyedUnderACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		defer p.close()
		c := p.on[0]
		for function, call := range map[string]func(e, other *cuda.Event) error{
			"cuEventQuery":       func(e, _ *cuda.Event) error { _, err := e.Done(); return err },
			"cuEventSynchronize": func(e, _ *cuda.Event) error { return e.Synchronize(context.Background()) },
			"cuStreamWaitEvent":  func(e, _ *cuda.Event) error { return p.on[1].WaitEvent(e) },
			"cuEventElapsedTime": func(e, other *cuda.Event) error { _, err := e.Since(other); return err },
			"elapsed, the other": func(e, other *cuda.Event) error { _, err := other.Since(e); return err },
		} {
			e, err := c.Record()
			require.NoError(t, err)
			other, err := c.Record()
			require.NoError(t, err)
			require.NoError(t, c.Synchronize(context.Background()))
			events, closed := p.gpu.Objects()["event"], false
			p.faults.SetBefore(func(called string) {
				if (called == function || called == "cuEventElapsedTime") && !closed {
					closed = true
					assert.NoError(t, e.Close(), function)
					_, err := e.Done()
					require.ErrorIs(t, err, cuda.ErrNotOpen, function)
					assert.Equal(t, events, p.gpu.Objects()["event"], function)
				}
			})
			require.NoError(t, call(e, other), function)
			p.faults.SetBefore(nil)
			require.True(t, closed, function)
			assert.Equal(t, events-1, p.gpu.Objects()["event"], function)
			require.NoError(t, e.Close())
			require.NoError(t, other.Close())
		}
	})
}

// An event that the driver does not make, or does not record, is none: nothing is left of it.
func TestAnEventThatIsNotRecorded(t *testing.T) {
	p := newPair(t)
	defer p.close()
	events := p.gpu.Objects()["event"]
	for _, function := range []string{"cuEventCreate", "cuEventRecord"} {
		require.NoError(t, p.faults.Add(fault.Rule{Func: function, First: 1, Count: 1, Result: cudadrv.OutOfMemory}))
		records := p.faults.Calls("cuEventRecord")
		e, err := p.on[0].Record()
		require.ErrorIs(t, err, cudadrv.OutOfMemory, function)
		assert.Nil(t, e)
		if function == "cuEventCreate" {
			assert.Equal(t, records, p.faults.Calls("cuEventRecord"), "there is no event to record")
		}
		p.faults.Clear()
		assert.Equal(t, events, p.gpu.Objects()["event"], function)
	}
}

// A workspace is the same memory as long as it is large enough and live.
func TestAWorkspaceIsKept(t *testing.T) {
	p := newPair(t)
	defer p.close()
	c := p.on[0]
	first, err := c.Workspace(mib)
	require.NoError(t, err)
	for _, bytes := range []int64{1, mib} {
		b, err := c.Workspace(bytes)
		require.NoError(t, err)
		assert.Equal(t, first, b)
	}
	larger, err := c.Workspace(2 * mib)
	require.NoError(t, err)
	assert.False(t, first.Live(), "it was replaced")
	require.NoError(t, larger.Free())
	again, err := c.Workspace(mib)
	require.NoError(t, err)
	assert.True(t, again.Live())
	assert.NotEqual(t, larger, again)
}

// Calls at one time get one workspace: none is freed that another call has returned.
func TestCallsGetOneWorkspace(t *testing.T) {
	p := newPair(t)
	defer p.close()
	entered, resume := p.holdUp("cuMemCreate")
	var buffers [3]cuda.Buffer
	var all sync.WaitGroup
	call := func(i int) {
		all.Go(func() {
			var err error
			buffers[i], err = p.on[0].Workspace(32*mib - int64(i))
			assert.NoError(t, err)
		})
	}
	call(0)
	<-entered
	call(1)
	call(2)
	for range 2000 { // the others get as far as they can
		runtime.Gosched()
	}
	resume()
	all.Wait()
	for _, b := range buffers {
		assert.True(t, b.Live())
		assert.Equal(t, buffers[0].Ptr(), b.Ptr())
	}
}

// A call with arguments that a kernel does not have names the size that it wants.
func TestTheWantedSizeOfAnArgument(t *testing.T) {
	g, c := openGPU(t)
	x := g.alloc(c, 64)
	defer func() { require.NoError(t, x.Free()) }()
	for i, args := range [][]cuda.Arg{
		{{}, cuda.Value(uint32(1)), cuda.Value(uint32(1))},
		{cuda.Out(x), {}, cuda.Value(uint32(1))},
	} {
		var refused *cuda.ArgumentError
		require.ErrorAs(t, c.Launch(g.fill, cuda.Cover(1, 1), args...), &refused)
		require.ErrorIs(t, refused, cuda.ErrArgumentSize)
		assert.Equal(t, i, refused.Index)
		assert.EqualValues(t, []int{8, 4}[i], refused.Want)
	}
}
