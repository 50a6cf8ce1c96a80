package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// rig is a simulated device with real bytes and a stepped clock, whose calls fail when told.
type rig struct {
	t      testing.TB
	faults *fault.Driver
	device cudadrv.Device
	memory cudadrv.HostMemory
	sim    *sim.Device
	driver *sim.Driver // without the faults
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	simulator := sim.New(sim.Config{Bytes: true, TotalBytes: 1 << 30})
	r := &rig{t: tb, faults: fault.Wrap(simulator), sim: simulator.Device(0), driver: simulator}
	var err error
	r.device, err = r.faults.Open(0)
	require.NoError(tb, err)
	var ok bool
	r.memory, ok = r.device.(cudadrv.HostMemory)
	require.True(tb, ok)
	return r
}

func (r *rig) stream() cudadrv.Stream {
	r.t.Helper()
	s, err := r.device.StreamCreate()
	require.NoError(r.t, err)
	return s
}

// busy gives a stream work that takes so long.
func (r *rig) busy(s cudadrv.Stream, d time.Duration) {
	r.t.Helper()
	require.NoError(r.t, r.sim.Launch(s, d))
}

// cache is a page-locked cache of the device, which is empty when the test ends.
func (r *rig) cache(keepBytes int64) *Pool {
	r.t.Helper()
	p, err := NewPageLocked(r.device, PoolConfig{KeepBytes: keepBytes})
	require.NoError(r.t, err)
	return p
}

// end closes an allocator, all of whose blocks were freed, and sees that the driver has everything
// back.
func (r *rig) end(a Allocator) {
	r.t.Helper()
	r.faults.Clear()
	require.NoError(r.t, a.Close(r.t.Context()))
	if p, ok := a.(*Pool); ok {
		require.NoError(r.t, checkBooks(p))
	}
	s := a.Stats()
	assert.Zero(r.t, s.LiveBlocks)
	assert.Zero(r.t, s.KeptBytes+s.PendingBytes+s.ReleasingBytes)
	counts := r.sim.Counts() // injected failures never got there
	assert.Equal(r.t, counts["cuMemHostAlloc"], counts["cuMemFreeHost"])
	assert.Equal(r.t, counts["cuEventCreate"], counts["cuEventDestroy"])
	assert.NoError(r.t, r.device.Close())
}

func (r *rig) fail(function string, first, count uint64, result cudadrv.Result) {
	r.t.Helper()
	require.NoError(r.t, r.faults.Add(fault.Rule{Func: function, First: first, Count: count, Result: result}))
}

func alloc(tb testing.TB, a Allocator, bytes, align int64) Block {
	tb.Helper()
	b, err := a.Alloc(bytes, align)
	require.NoError(tb, err)
	return b
}

func free(tb testing.TB, b Block) {
	tb.Helper()
	require.NoError(tb, b.Free())
}

// vramStream is a stream of a vram.Device on a simulated device of its own.
func vramStream(tb testing.TB) *vram.Stream {
	tb.Helper()
	return vramStreamOf(tb, sim.New(sim.Config{Bytes: true, TotalBytes: 1 << 30}))
}

// vramStreamOf is a stream of a vram.Device of a driver.
func vramStreamOf(tb testing.TB, driver cudadrv.Driver) *vram.Stream {
	tb.Helper()
	device, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, device.Close()) })
	s, err := device.NewStream()
	require.NoError(tb, err)
	return s
}
