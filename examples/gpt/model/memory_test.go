package model

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/host"
	"github.com/go-vram/vram/internal/eachcall"
)

// device returns a context, and page-locked memory, of a machine.
func device(t *testing.T, d cudadrv.Driver) (*cuda.Context, host.Allocator) {
	t.Helper()
	c, err := cuda.Open(vram.Config{Driver: d})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	memory, err := host.ByName("cuda:0/pinned", host.Options{Driver: d})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, memory.Close(context.WithoutCancel(t.Context()))) })
	return c, memory
}

// Each step reads the numbers of its own batch, although later batches are on their way.
func TestFeed(t *testing.T) {
	c, memory := device(t, sim.New(sim.Config{Bytes: true}))
	for _, memory := range []host.Allocator{nil, memory} {
		f, err := newFeed(c, 4, memory)
		require.NoError(t, err)
		p := &pass{}
		tokens, targets, rate, count := f.views(p, []int{2, 2}, []int{4})
		require.NoError(t, p.err)
		const steps = 7
		var read [steps][4]*tensor.Tensor
		scope, err := tensor.NewScope(c)
		require.NoError(t, err)
		for step := range read {
			x, y := []int64{int64(step), 1, -2, 3}, []int64{4, 5, 1 << 40, int64(step)}
			require.NoError(t, f.put(x, y, 0.5, float32(step)))
			x[0], y[0] = 99, 99
			for i, t := range []*tensor.Tensor{tokens, targets, rate, count} {
				read[step][i], err = tensor.Clone(scope, t)
				p.did(err)
			}
		}
		require.NoError(t, p.err)
		for step, all := range read {
			for i, want := range [][]int64{{int64(step), 1, -2, 3}, {4, 5, 1 << 40, int64(step)}} {
				got, err := tensor.Read[int64](all[i])
				require.NoError(t, err)
				assert.Equal(t, want, got)
			}
			for i, want := range []float32{0.5, float32(step)} {
				got, err := tensor.Item[float32](all[2+i])
				require.NoError(t, err)
				assert.InDelta(t, want, got, 0)
			}
		}
		require.NoError(t, errors.Join(scope.Close(), f.close()))
	}
}

// A batch allocates nothing on Go's heap: the simulated device alone does, for its record of the two copies.
func TestFeedAllocatesNothing(t *testing.T) {
	c, memory := device(t, sim.New(sim.Config{Bytes: true}))
	f, err := newFeed(c, 1000, memory)
	require.NoError(t, err)
	ids := make([]int64, 1000)
	each := testing.AllocsPerRun(100, func() { err = errors.Join(err, f.put(ids, ids, 1, 2)) })
	step := 0
	copies := testing.AllocsPerRun(100, func() {
		stage := cuda.Whole(f.stages[step%2])
		step++
		err = errors.Join(err, f.copying.Synchronize(context.Background()), f.copying.CopyInAsync(stage, f.locked.Bytes()), f.on.Copy(cuda.Whole(f.input), stage))
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, each, copies)
	require.NoError(t, f.close())
}

// Whichever driver call fails, a feed leaves nothing.
func TestFeedFails(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true})
	faults := fault.Wrap(machine)
	c, memory := device(t, faults)
	b := &eachcall.Bench{Faults: faults, Tolerated: []string{"cuStreamIsCapturing", "cuEventRecord"}, Left: func() map[string]int {
		machine.Device(0).Advance(time.Hour) // the work ends
		_, _ = c.Device().Trim(t.Context(), 0)
		_, _ = host.Trim(t.Context(), memory)
		all := machine.Device(0).Objects()
		all["goroutine"], all["live byte"] = runtime.NumGoroutine(), int(c.Device().Stats().LiveBytes)
		return all
	}}
	ids := []int64{1, 2, 3}
	b.Run(t, func() (undo func() error, err error) {
		f, err := newFeed(c, len(ids), memory)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, eachcall.Closes(faults, f.close)) }()
		for range 3 {
			if err := f.put(ids, ids, 1, 2); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// A training holds little more than its buffers, and after the second step asks the driver for no memory.
func TestMemory(t *testing.T) {
	c, err := cuda.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TimedKernels: true, Clock: sim.Running}), Stats: vram.StatsExact})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	o, err := ops.New(c)
	require.NoError(t, err)
	defer func() { assert.NoError(t, errors.Join(c.Synchronize(context.WithoutCancel(t.Context())), o.Close())) }()
	m, err := New(c, o, Config{Layers: 6, Width: 256, Heads: 4, Context: 256, Vocabulary: 5000, Type: tensor.BFloat16}, 1)
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	x, err := NewTrainer(m, Training{Batch: 64, Length: 256, Clip: 1, Graph: true})
	require.NoError(t, err)
	defer func() { assert.NoError(t, x.Close()) }()
	ids := make([]int64, 64*256)
	step := func() (memory uint64) {
		before := c.Device().Stats()
		require.NoError(t, x.Step(ids, ids))
		require.NoError(t, c.Synchronize(t.Context()))
		for _, call := range c.Device().Stats().Sub(before).Driver {
			if strings.HasPrefix(call.Func, "cuMem") {
				memory += call.Calls
			}
		}
		return memory
	}
	assert.NotZero(t, step())
	assert.NotZero(t, step())
	for range 3 {
		assert.Zero(t, step())
	}
	s := c.Device().Stats()
	assert.Greater(t, s.PeakLiveBytes, int64(500<<20))
	assert.Less(t, float64(s.PeakReservedBytes), 1.12*float64(s.PeakLiveBytes))
}
