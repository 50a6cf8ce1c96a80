package vram

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
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

// A call that waits for a failing first use finds the device closed if Close was called during the use,
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

// counted is a driver that answers DeviceCount only.
type counted struct {
	cudadrv.Driver
	count int
	err   error
}

func (c counted) DeviceCount() (int, error) { return c.count, c.err }
func (counted) Name() string                { return "dynamic" }

// auto takes the GPU where there is one, the simulator where there is none, and neither where the
// driver is broken.
func TestAutoSimulatesOnlyWithoutAGPU(t *testing.T) {
	call := &cudadrv.CallError{Func: "cuInit", Result: cudadrv.Unknown}
	for name, c := range map[string]struct {
		counted
		want string // "": an error
	}{
		"a device":            {counted{count: 1}, "dynamic"},
		"no devices":          {counted{}, "sim"},
		"no library":          {counted{err: &dynamic.LibraryError{Tried: []string{"libcuda.so.1"}}}, "sim"},
		"no device":           {counted{err: &dynamic.InitError{Call: &cudadrv.CallError{Func: "cuInit", Result: cudadrv.NoDevice}}}, "sim"},
		"an old driver":       {counted{err: &dynamic.VersionError{Have: 10020, Needed: 11080}}, ""},
		"another library":     {counted{err: &dynamic.SymbolError{Symbols: []string{"cuMemAlloc_v2"}}}, ""},
		"a driver that fails": {counted{err: &dynamic.InitError{Call: call}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := automatic(c.counted)
			if c.want == "" {
				require.ErrorIs(t, err, ErrNoDriver)
				assert.True(t, errors.Is(err, c.err))
				assert.Nil(t, d)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, d.Name())
		})
	}
}

// onWarning is a handler that calls a function for each line.
type onWarning struct {
	slog.Handler
	call func()
}

func (h onWarning) Enabled(context.Context, slog.Level) bool { return true }

func (h onWarning) Handle(context.Context, slog.Record) error {
	h.call()
	return nil
}

// A function that is posted at the very end, when all earlier ones have been called, is called,
// too.
func TestAnEventThatIsPostedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n *notices
		called := 0
		late := onWarning{slog.DiscardHandler, func() { n.post(func() { called++ }) }}
		n = newNotices(slog.New(late), nil)
		n.post(func() { n.dropped.Add(1) }) // of which the logger hears when nothing else is due
		synctest.Wait()
		assert.Equal(t, 1, called)
		n.post(func() { called++ })
		synctest.Wait()
		assert.Equal(t, 2, called)
		assert.Zero(t, n.due.Load())
	})
}

// The functions for the compiler work.
func TestInlinedPairs(t *testing.T) {
	t.Parallel()
	d, err := Open(Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	require.NoError(t, pair(s))
	require.NoError(t, d.Close())
}
