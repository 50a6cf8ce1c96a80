package kernel_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/internal/launchlog"
)

// within reports whether a goroutine is in a function.
func within(function string) bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), function+"(")
}

// fillsInCaptures counts the fills of a context's tickets that become part of a graph. A launch in a capture may have tickets of its own, whose
// fill is the graph's.
func (s *split) fillsInCaptures(also func(function string)) *atomic.Int64 {
	n := new(atomic.Int64)
	gpu := s.driver.Device(0)
	s.faults.SetBefore(func(function string) {
		if status, err := gpu.StreamIsCapturing(s.c.Stream().Handle()); function == "cuMemsetD8Async" && err == nil && status != cudadrv.CaptureNone && within("kernel.zeroed") {
			n.Add(1)
		}
		also(function)
	})
	return n
}

// full takes the memory that the stream holds, so that the next allocation of its size asks the driver.
func (s *split) full() {
	s.Helper()
	for {
		b, err := s.c.Alloc(256 << 10)
		require.NoError(s, err)
		s.Cleanup(func() { assert.NoError(s, b.Free()) })
		n, err := s.c.Stream().Stats(s.Context())
		require.NoError(s, err)
		if n.LargestFreeBytes < 256<<10 && n.MagazineBytes == 0 {
			_, err := s.dev.Trim(s.Context(), 0) // memory that is no stream's
			require.NoError(s, err)
			return
		}
	}
}

// A capture that another goroutine begins while a launch makes the tickets of the context leaves them to the context: their fill
// is of no graph, and the launch is of no graph, or refused.
func TestACaptureBeginsAsTicketsAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSplit(t)
		require.NoError(t, s.run())
		want, err := tensor.Item[float32](s.total)
		require.NoError(t, err)
		require.NoError(t, s.capture(kernel.TicketSlots).Close()) // the stock is used up
		s.full()

		var g *cuda.Graph
		var met atomic.Bool // the pool's goroutine makes calls at the same time
		captured, finish := make(chan error, 1), make(chan struct{})
		fills := s.fillsInCaptures(func(string) {
			if met.Load() || !within("kernel.(*contextTickets).renew") || !met.CompareAndSwap(false, true) {
				return
			}
			go func() {
				var err error
				g, err = s.c.Capture(func() error { <-finish; return nil })
				captured <- err
			}()
			synctest.Wait() // it has begun, or waits for the launch
		})
		if err := s.run(); err != nil {
			require.ErrorIs(t, err, cuda.ErrCapturing)
		}
		close(finish)
		require.NoError(t, <-captured)
		s.faults.SetBefore(nil)
		require.True(t, met.Load())
		assert.Zero(t, fills.Load(), "the stock has the fill of a graph")
		require.NoError(t, g.Close())
		require.NoError(t, s.run())
		s.same(s.capture(2), want)
	})
}

// A capture that begins during a measurement has none of its launches. No variant is disqualified for that, and the next Run
// measures. The launch of a Run after its measurement is refused while the capture is announced, and part of it once it has begun.
func TestACaptureBeginsDuringAMeasurement(t *testing.T) {
	for name, mode := range map[string]kernel.TuningMode{"Tune": kernel.TuneNever, "the first Run": kernel.TuneNow} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { captureDuringMeasurement(t, mode) }) })
	}
}

func captureDuringMeasurement(t *testing.T, mode kernel.TuningMode) {
	t.Helper()
	var n *negation
	var g *cuda.Graph
	met, captured, finish := false, make(chan error, 1), make(chan struct{})
	clock := func(s plan.Schedule) time.Duration {
		if !met {
			met = true
			go func() {
				var err error
				g, err = n.c.Capture(func() error { <-finish; return nil })
				captured <- err
			}()
			synctest.Wait()
		}
		return times{faster: 100}.of(s)
	}
	n = newNegation(t, kernel.WithTuning(small(kernel.Tuning{Mode: mode})), kernel.WithClock(clock))
	measure := func() error {
		if mode == kernel.TuneNow {
			return n.k.Run(n.c, outs(n.y), n.x)
		}
		_, err := n.k.Tune(t.Context(), outs(n.y), n.x)
		return err
	}
	err := measure()
	require.True(t, met)
	close(finish)
	require.NoError(t, <-captured)
	if mode == kernel.TuneNow && err == nil {
		assert.Len(t, g.Kernels(), 1)
	} else {
		require.ErrorIs(t, err, cuda.ErrCapturing)
		assert.Empty(t, g.Kernels())
	}
	require.NoError(t, g.Close())
	assert.Zero(t, n.kernels.Stats().Disqualified)
	assert.Zero(t, n.kernels.Stats().Tuned)
	require.NoError(t, measure())
	assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
}

// A measurement that is cancelled while its variants are compiled ends for that reason, also where a capture has begun since.
func TestAMeasurementIsCancelledInACapture(t *testing.T) {
	store := &gate{entered: make(chan struct{}, 100), open: make(chan struct{})}
	log := &logged{}
	n := newNegation(t, kernel.WithStore(store), kernel.WithLog(log), kernel.WithTuning(small(kernel.Tuning{})), kernel.WithClock(times{}.of))
	ctx, cancel := context.WithCancel(t.Context())
	tuned := make(chan error, 1)
	go func() {
		_, err := n.k.Tune(ctx, outs(n.y), n.x)
		tuned <- err
	}()
	<-store.entered
	var err error
	g, captured := n.c.Capture(func() error {
		cancel()
		err = <-tuned
		n.kernels.AwaitTuning()
		return nil
	})
	close(store.open)
	require.NoError(t, captured)
	require.NoError(t, g.Close())
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, log.all(), context.Canceled.Error())
	n.tunes()
}

// A capture begins at every third call of the driver that a measurement makes, in the short form at every eleventh: the measurement ends with the
// capture's error or is complete, and no variant is disqualified.
func TestACaptureBeginsAtCallsOfAMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		driver, _ := launchlog.New()
		faults := fault.Wrap(driver)
		r := newRigOn(t, faults, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneNever, Rounds: 1})), kernel.WithClock(times{}.of))
		n := r.negation()
		require.NoError(t, n.y.Allocate())
		tune := func() error {
			_, err := n.k.Tune(t.Context(), outs(n.y), n.x)
			return err
		}
		require.NoError(t, tune())
		step := int64(3)
		if testing.Short() {
			step = 11
		}
		refused, at := 0, int64(2)
		for ; ; at += step {
			var calls atomic.Int64
			captured, finish := make(chan error, 1), make(chan struct{})
			faults.SetBefore(func(string) {
				if calls.Add(1) != at {
					return
				}
				go func() {
					g, err := n.c.Capture(func() error { <-finish; return nil })
					if err == nil {
						err = g.Close()
					}
					captured <- err
				}()
				synctest.Wait()
			})
			err := tune()
			faults.SetBefore(nil)
			if calls.Load() < at {
				require.NoError(t, err)
				break
			}
			close(finish)
			if err != nil {
				require.ErrorIs(t, err, cuda.ErrCapturing, "call %d", at)
				refused++
			}
			require.NoError(t, <-captured)
			require.Zero(t, n.kernels.Stats().Disqualified, "call %d", at)
			require.NoError(t, tune())
		}
		assert.Greater(t, at, int64(10))
		assert.Positive(t, refused)
	})
}

// A Run that may not wait for its stream, or cannot, leaves the measurement to the next one. One that may not as the stream is captured past
// package cuda takes the best known variant.
func TestARunThatCannotWaitMeasuresNothing(t *testing.T) {
	driver := sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
	faults := fault.Wrap(driver)
	gpu := driver.Device(0)
	newNegation := func(t *testing.T) *negation {
		t.Helper()
		n := newRigOn(t, faults, kernel.WithTuning(small(kernel.Tuning{Mode: kernel.TuneNow})), kernel.WithClock(times{faster: 100}.of)).negation()
		require.NoError(t, n.y.Allocate())
		_, err := n.k.Prepare(outs(n.y), n.x).Await(t.Context())
		require.NoError(t, err)
		return n
	}
	t.Run("captured", func(t *testing.T) {
		n := newNegation(t)
		stream := n.c.Stream().Handle()
		require.NoError(t, gpu.StreamBeginCapture(stream, cudadrv.CaptureRelaxed))
		err := n.k.Run(n.c, outs(n.y), n.x)
		g, ended := gpu.StreamEndCapture(stream)
		require.NoError(t, ended)
		require.NoError(t, gpu.GraphDestroy(g))
		require.NoError(t, err)
		assert.Equal(t, int64(1), n.kernels.Stats().TuningDeferred)
		n.runs(128)
		assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
	})
	t.Run("failed", func(t *testing.T) {
		n := newNegation(t)
		require.NoError(t, faults.Add(fault.Rule{Func: "cuStreamSynchronize", Result: cudadrv.NotSupported}))
		err := n.k.Run(n.c, outs(n.y), n.x)
		faults.Clear()
		require.ErrorIs(t, err, cudadrv.NotSupported)
		assert.Zero(t, n.kernels.Stats().TuningDeferred)
		n.runs(128)
		assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
	})
	t.Run("panicked", func(t *testing.T) {
		n := newNegation(t)
		faults.SetBefore(func(function string) {
			if function == "cuStreamSynchronize" {
				panic("the driver's")
			}
		})
		assert.Panics(t, func() { _ = n.k.Run(n.c, outs(n.y), n.x) })
		faults.SetBefore(nil)
		n.runs(128)
		assert.Equal(t, int64(1), n.kernels.Stats().Tuned)
	})
}
