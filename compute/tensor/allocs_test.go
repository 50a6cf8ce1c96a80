package tensor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A view is one allocation of the Go heap, a tensor with memory two, in a slot both are none; memory that is there again needs
// no driver call.
func TestHowOftenTensorsAllocate(t *testing.T) {
	driver := fault.Wrap(sim.New(sim.Config{Bytes: true}))
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	c, err := cuda.NewContext(must(dev.NewStream())(t))
	require.NoError(t, err)
	x := must(tensor.Zeros(c, tensor.Float32, 4, 6, 8))(t)
	for name, view := range map[string]func() (*tensor.Tensor, error){
		"slice":     func() (*tensor.Tensor, error) { return x.Slice(1, 0, 6, 2) },
		"index":     func() (*tensor.Tensor, error) { return x.Index(0, 1) },
		"transpose": func() (*tensor.Tensor, error) { return x.Transpose(0, 1) },
		"permute":   func() (*tensor.Tensor, error) { return x.Permute(2, 0, 1) },
		"reshape":   func() (*tensor.Tensor, error) { return x.Reshape(-1, 8) },
		"broadcast": func() (*tensor.Tensor, error) { return x.Broadcast(2, 4, 6, 8) },
		"squeeze":   func() (*tensor.Tensor, error) { return x.Squeeze() },
	} {
		assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = view() }), viewAllocs, name)
	}

	var calls atomic.Int64
	pair := func() {
		y, err := tensor.New(c, tensor.Float32, 100, 100)
		if err == nil && y.Allocate() == nil {
			err = y.Free()
		}
		if err != nil {
			calls.Add(1 << 20)
		}
	}
	for range 20 {
		pair()
	}
	driver.SetBefore(func(string) { calls.Add(1) })
	assert.LessOrEqual(t, testing.AllocsPerRun(500, pair), pairAllocs)
	var slot tensor.Slot
	turned, matrix := must(x.Layout().Transpose(0, 1))(t), must(layout.Of(100, 100))(t)
	assert.Zero(t, testing.AllocsPerRun(500, func() {
		if _, err := slot.View(x, turned); err != nil {
			calls.Add(1 << 20)
		}
		if y, err := slot.New(c, tensor.Float32, matrix); err != nil || y.Free() != nil {
			calls.Add(1 << 20)
		}
	}))
	assert.Equal(t, "float32[4 6 8] on GPU 0", x.String())
	_, err = x.Narrow(0, 1, 2)
	require.NoError(t, err)
	assert.Zero(t, calls.Load(), "driver calls")
	driver.SetBefore(nil)
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}

// Copies and fills of contiguous elements allocate no more than the same calls on buffers, which the simulated device records.
func TestACopyAllocatesNothing(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})})
	require.NoError(t, err)
	c, err := cuda.NewContext(must(dev.NewStream())(t))
	require.NoError(t, err)
	all := must(tensor.Zeros(c, tensor.Float32, 4, 6, 8))(t)
	one := must(tensor.Zeros(c, tensor.Float32, 6, 8))(t)
	part := must(all.Index(0, 2))(t)
	to, from := must(one.Range())(t), must(part.Range())(t)
	allocs := func(f func() error) float64 {
		work := func() {
			if err := errors.Join(f(), c.Synchronize(context.Background())); err != nil {
				t.Error(err)
			}
		}
		return testing.AllocsPerRun(100, work)
	}
	copies, fills := allocs(func() error { return c.Copy(to, from) }), allocs(func() error { return c.Fill32(to, 3) })
	assert.LessOrEqual(t, allocs(func() error { return tensor.Copy(c, one, part) }), copies)
	assert.LessOrEqual(t, allocs(func() error { return tensor.Copy(c, part, one) }), copies)
	assert.LessOrEqual(t, allocs(func() error { return tensor.Fill(c, one, float32(3)) }), fills)
	assert.LessOrEqual(t, allocs(func() error { return tensor.Fill(c, part, float32(3)) }), fills)
	require.NoError(t, all.Free())
	require.NoError(t, one.Free())
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}

const (
	viewAllocs = 1.0
	pairAllocs = 2.0
)
