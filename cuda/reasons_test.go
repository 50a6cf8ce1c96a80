package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A call that fails returns the reason, and no other that follows from it; and no buffer.
func TestTheReasonIsReturned(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	x := r.alloc(c, mib)
	launch := func() error { return c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(x)) }
	fails := func(function string) {
		t.Helper()
		require.NoError(t, r.faults.Add(fault.Rule{Func: function, First: 1, Result: cudadrv.Unknown}))
	}

	_, want := c.Alloc(1 << 50)
	require.Error(t, want)
	b, err := c.AllocZeroed(1 << 50)
	require.EqualError(t, err, want.Error())
	assert.Zero(t, b)
	fails("cuMemsetD8Async")
	b, err = c.AllocZeroed(mib)
	require.ErrorIs(t, err, cudadrv.Unknown)
	assert.Zero(t, b)

	for _, function := range []string{"cuGraphExecDestroy", "cuGraphDestroy"} {
		g, err := c.Capture(launch)
		require.NoError(t, err)
		fails(function)
		require.ErrorIs(t, g.Close(), cudadrv.Unknown, function)
		r.faults.Clear()
	}

	e, err := c.Record()
	require.NoError(t, err)
	for function, call := range map[string]func() error{
		"cuEventQuery":       func() error { _, err := e.Done(); return err },
		"cuEventSynchronize": func() error { return e.Synchronize(t.Context()) },
		"cuStreamWaitEvent":  func() error { return c.WaitEvent(e) },
	} {
		r.faults.Clear()
		fails(function)
		require.ErrorIs(t, call(), cudadrv.Unknown, function)
	}
	r.faults.Clear()
	fails("cuEventDestroy")
	require.ErrorIs(t, e.Close(), cudadrv.Unknown)
	r.faults.Clear()
	require.NoError(t, x.Free())
}
