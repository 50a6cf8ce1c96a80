package kernel_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// split is a rig with a sum that several blocks compute.
type split struct {
	*rig
	driver    *sim.Driver
	faults    *fault.Driver
	sum       *kernel.Kernel
	in, total *tensor.Tensor
}

func newSplit(t *testing.T) *split {
	t.Helper()
	driver := sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
	faults := fault.Wrap(driver)
	s := &split{rig: newRigOn(t, faults), driver: driver, faults: faults}
	var err error
	s.sum, err = s.kernels.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
	require.NoError(t, err)
	s.in, s.total = s.normal(1, 40000), s.made(tensor.Float32)
	require.NoError(t, s.total.Allocate())
	return s
}

func (s *split) run() error { return s.sum.Run(s.c, outs(s.total), s.in) }

// fills are the fills that the driver was asked for by a function.
func (s *split) fills(do func()) uint64 {
	s.Helper()
	count := func() uint64 { return s.driver.Device(0).Counts()["cuMemsetD8Async"] }
	before := count()
	do()
	return count() - before
}

// capture captures so many sums.
func (s *split) capture(count int) (g *cuda.Graph) {
	s.Helper()
	g, err := s.c.Capture(func() error {
		for range count {
			if err := s.run(); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(s, err)
	return g
}

// same launches a graph again and again: each time it has the same sum.
func (s *split) same(g *cuda.Graph, want float32) {
	s.Helper()
	for range 3 {
		require.NoError(s, tensor.Fill(s.c, s.total, float32(-1)))
		require.NoError(s, g.Launch(s.c))
		got, err := tensor.Item[float32](s.total)
		require.NoError(s, err)
		require.Equal(s, want, got)
	}
	require.NoError(s, g.Close())
}

// A capture after a launch has no fill: its tickets were zeroed before.
func TestTicketsOfAGraphAreNotFilled(t *testing.T) {
	s := newSplit(t)
	b, err := s.c.Alloc(1 << 20)
	require.NoError(t, err)
	require.NoError(t, errors.Join(s.c.Fill8(cuda.Whole(b), 0xff), b.Free()), "memory that the tickets may have next")
	require.NoError(t, s.run())
	want, err := tensor.Item[float32](s.total)
	require.NoError(t, err)
	var g *cuda.Graph
	assert.Zero(t, s.fills(func() { g = s.capture(2) }))
	require.NoError(t, s.run(), "beside the graph")
	s.same(g, want)
}

// Before any launch of the context there are none: the graph sets its own to 0.
func TestTicketsOfAFirstCapture(t *testing.T) {
	s := newSplit(t)
	var g *cuda.Graph
	assert.Equal(t, uint64(1), s.fills(func() { g = s.capture(1) }))
	require.NoError(t, s.run())
	want, err := tensor.Item[float32](s.total)
	require.NoError(t, err)
	s.same(g, want)
}

// A launch of a capture that gets no tickets of its own fails with the driver's error alone, and frees nothing else.
func TestNoTicketsForACapture(t *testing.T) {
	for name, before := range map[string]func(*split) error{
		"there are none":       func(*split) error { return nil },
		"the stock is used up": func(s *split) error { return errors.Join(s.run(), s.capture(kernel.TicketSlots).Close()) },
	} {
		s := newSplit(t)
		require.NoError(t, before(s), name)
		live := s.dev.Stats().LiveBytes
		require.NoError(t, s.faults.Add(fault.Rule{Func: "cuMemsetD8Async", Result: cudadrv.NotSupported}))
		_, err := s.c.Capture(s.run)
		s.faults.Clear()
		require.ErrorIs(t, err, cudadrv.NotSupported, name)
		require.NotErrorIs(t, err, vram.ErrBadFree, name)
		assert.Equal(t, live, s.dev.Stats().LiveBytes, name)
		require.NoError(t, s.run(), name)
		want, err := tensor.Item[float32](s.total)
		require.NoError(t, err, name)
		s.same(s.capture(1), want)
	}
}

// A stock is used up by captures and renewed by the next launch; graphs keep the memory that they have.
func TestAStockOfTicketsIsRenewed(t *testing.T) {
	s := newSplit(t)
	require.NoError(t, s.run())
	want, err := tensor.Item[float32](s.total)
	require.NoError(t, err)
	first := s.capture(1)
	assert.Zero(t, s.fills(func() { require.NoError(t, s.run()) }))
	large := kernel.TicketSlots - 1
	var g *cuda.Graph
	assert.Equal(t, uint64(2), s.fills(func() { g = s.capture(large + 2) }), "of more launches than there are tickets")
	require.NoError(t, g.Close())
	assert.Equal(t, uint64(1), s.fills(func() { require.NoError(t, s.run()) }), "the renewal")
	assert.Zero(t, s.fills(func() { require.NoError(t, s.run()) }))
	second := s.capture(1)
	s.same(first, want)
	s.same(second, want)
}

// launches counts the goroutines that launch a kernel in a capture.
func launches() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "cuda.(*capture).launch(")
}

// A context that is closed while a launch of a capture has tickets of its stock leaves the stock to that launch, which frees it;
// graphs keep the memory.
func TestTicketsOfACaptureOutliveTheirContext(t *testing.T) {
	for _, users := range []int{1, 2} { // launches in the capture at that time, one in the other
		s := newSplit(t)
		require.NoError(t, s.run())
		want, err := tensor.Item[float32](s.total)
		require.NoError(t, err)
		live := func() int64 { return s.dev.Stats().LiveBytes }
		s2, err := cuda.NewContext(s.c.Stream()) // the same stream
		require.NoError(t, err)
		require.NoError(t, s.sum.Run(s2, outs(s.total), s.in))
		before := live()
		g, err := s2.Capture(func() error {
			var second sync.WaitGroup
			s.faults.SetBefore(func(function string) {
				if function != "cuLaunchKernel" {
					return
				}
				s.faults.SetBefore(nil)
				if users > 1 {
					second.Go(func() { assert.NoError(t, s.sum.Run(s2, outs(s.total), s.in)) })
					for launches() < users { // the second has its tickets, and waits for the first in the driver
						runtime.Gosched()
					}
				}
				assert.NoError(t, s2.Close())
			})
			err := s.sum.Run(s2, outs(s.total), s.in)
			second.Wait()
			return err
		})
		s.faults.SetBefore(nil)
		require.NoError(t, err)
		assert.Less(t, live(), before, "the context's tickets are freed, with the stock")
		s.same(g, want)
		after := live()
		require.NoError(t, s.run(), "another context has tickets of its own")
		assert.Equal(t, after, live())
	}
}

// A goroutine that closes a context while another one captures a launch with tickets of its stock frees the stock once, whichever is done first.
func TestGoroutinesThatCloseAContextOfACapture(t *testing.T) {
	s := newSplit(t)
	require.NoError(t, s.run())
	want, err := tensor.Item[float32](s.total)
	require.NoError(t, err)
	live := s.dev.Stats().LiveBytes
	for range 2 {
		c, err := cuda.NewContext(s.c.Stream())
		require.NoError(t, err)
		require.NoError(t, s.sum.Run(c, outs(s.total), s.in))
		var closing sync.WaitGroup
		g, err := c.Capture(func() error {
			s.faults.SetBefore(func(function string) {
				if function == "cuLaunchKernel" {
					s.faults.SetBefore(nil)
					closing.Go(func() { assert.NoError(t, c.Close()) })
				}
			})
			return s.sum.Run(c, outs(s.total), s.in)
		})
		closing.Wait()
		s.faults.SetBefore(nil)
		require.NoError(t, err)
		s.same(g, want)
		assert.Equal(t, live, s.dev.Stats().LiveBytes)
	}
}

// A stock of tickets that is made while its context is closed is given back.
func TestAStockIsNotRenewedAfterClose(t *testing.T) {
	s := newSplit(t)
	require.NoError(t, s.run()) // all but the tickets is there
	c, err := cuda.NewContext(s.c.Stream())
	require.NoError(t, err)
	live := s.dev.Stats().LiveBytes
	fills := 0
	s.faults.SetBefore(func(function string) {
		if function != "cuMemsetD8Async" {
			return
		}
		if fills++; fills == 2 { // of the stock, after the fill of the tickets for launches
			assert.NoError(t, c.Close())
		}
	})
	require.ErrorIs(t, s.sum.Run(c, outs(s.total), s.in), cuda.ErrNotOpen)
	s.faults.SetBefore(nil)
	require.Equal(t, 2, fills)
	assert.Equal(t, live, s.dev.Stats().LiveBytes)
}
