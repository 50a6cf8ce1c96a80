package kernel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// Kernels on tensors of two streams, in place, split and in a graph touch nothing without an order, and nothing that is freed.
func TestKernelsUnderTheChecker(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	d, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	kernels, err := kernel.NewCompiler(c)
	require.NoError(t, err)
	x := expr.Input(0, tensor.Float32)
	softmax, err := kernels.Reduction([]int{-1}, x.Softmax())
	require.NoError(t, err)
	sum, err := kernels.Reduction(plan.All, x.Sum())
	require.NoError(t, err)
	double, err := kernels.Elementwise(x.Add(x))
	require.NoError(t, err)
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		in, err := tensor.From(s, normal(1, 2, 40000), 2, 40000)
		require.NoError(t, err)
		out, err := tensor.New(s, tensor.Float32, 2, 40000)
		require.NoError(t, err)
		total, err := tensor.New(s, tensor.Float32)
		require.NoError(t, err)
		require.NoError(t, errors.Join(softmax.Run(c, outs(out), in), double.Run(d, outs(out), out), sum.Run(c, outs(total), out)))
		got, err := tensor.Item[float32](total)
		require.NoError(t, err)
		require.InDelta(t, 4, got, 1e-4)
		g, err := c.Capture(func() error {
			return errors.Join(softmax.Run(c, outs(out), in), double.Run(c, outs(out), out), sum.Run(c, outs(total), out))
		})
		require.NoError(t, err)
		require.NoError(t, errors.Join(g.Launch(c), g.Launch(c)))
		got, err = tensor.Item[float32](total)
		require.NoError(t, err)
		require.InDelta(t, 4, got, 1e-4)
		return g.Close()
	}))
	require.NoError(t, errors.Join(c.Synchronize(context.Background()), d.Synchronize(context.Background())))
	require.NoError(t, errors.Join(kernels.Close(), c.Close(), d.Close()))
}
