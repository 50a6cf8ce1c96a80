package kernel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// BenchmarkRun measures the host's part of a warm run, and the launch of a kernel with as many arguments.
func BenchmarkRun(b *testing.B) {
	r := newRigOn(b, launching(b))
	k, err := r.kernels.Elementwise(fused())
	require.NoError(b, err)
	rows, err := r.kernels.Reduction([]int{-1}, expr.Input(0, tensor.Float32).Softmax())
	require.NoError(b, err)
	total, err := r.kernels.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
	require.NoError(b, err)
	x, y, z, s := r.normal(1, 1<<10, 1<<10), r.normal(2, 1<<10, 1<<10), r.made(tensor.Float32, 1<<10, 1<<10), r.made(tensor.Float32)
	text := ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }\n"
	m, err := r.c.LoadModule([]byte(text))
	require.NoError(b, err)
	f, err := m.Function("f")
	require.NoError(b, err)
	buffers := [3]cuda.Buffer{}
	for i, t := range outs(x, y, z) {
		buffers[i], err = t.Buffer()
		require.NoError(b, err)
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"launch", func() error {
			return r.c.Launch(f, cuda.Cover(1<<20, 256), cuda.In(buffers[0]), cuda.In(buffers[1]), cuda.Out(buffers[2]), cuda.Value(uint32(1)))
		}},
		{"elementwise", func() error { return k.Run(r.c, []*tensor.Tensor{z}, x, y) }},
		{"softmax", func() error { return rows.Run(r.c, []*tensor.Tensor{z}, x) }},
		{"sum", func() error { return total.Run(r.c, []*tensor.Tensor{s}, x) }},
	} {
		require.NoError(b, c.run())
		b.Run("work="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
				if i%256 == 255 {
					b.StopTimer()
					require.NoError(b, r.c.Synchronize(context.Background()))
					b.StartTimer()
				}
			}
		})
	}
	require.NoError(b, r.c.Synchronize(context.Background()))
	require.NoError(b, m.Unload())
}
