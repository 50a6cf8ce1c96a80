package vram

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A stream that opens while the configuration changes ends up with the new one.
func TestAStreamThatOpensDuringAChange(t *testing.T) {
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	e, err := d.use()
	require.NoError(t, err)
	before := d.config.Load()
	require.NoError(t, d.Reconfigure(Settings{Stats: new(StatsExact)}))
	h, err := e.meter.StreamCreate()
	require.NoError(t, err)
	s, err := d.openBy(before, e, h, false)
	require.NoError(t, err)
	for range 3 {
		b, err := s.Alloc(700)
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	n := d.Stats()
	assert.EqualValues(t, 3, n.AllocCount)
	assert.Zero(t, n.MagazineHits, "a stream that counts exactly has no magazines")
	assert.EqualValues(t, 1024, n.PeakLiveBytes)
	require.NoError(t, d.Close())
}

// A call that comes late to a failing first use finds the device closed if it was closed meanwhile,
// and does not open it again.
func TestAFirstUseThatFailsDuringClose(t *testing.T) {
	driver := fault.Wrap(sim.New(sim.Config{}))
	require.NoError(t, driver.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", Result: cudadrv.Unknown}))
	d, err := Open(Config{Driver: driver})
	require.NoError(t, err)
	first := &opening{done: make(chan struct{}), err: errNoStart}
	require.True(t, d.started.CompareAndSwap(nil, first))
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	for d.started.Load() == first { // until Close waits for it
		runtime.Gosched()
	}
	d.begin(first)
	require.ErrorIs(t, first.err, cudadrv.Unknown)
	require.NoError(t, <-closed)

	late := d.started.Load() // as seen by a use that checked for Close before the Close
	require.NotNil(t, late)
	<-late.done
	require.ErrorIs(t, late.err, ErrClosed)
}
