package ops_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

// BenchmarkInto measures the host time of warm operations, and the run of a kernel alone for comparison.
func BenchmarkInto(b *testing.B) {
	r := newRigOn(b, bookkeeping(b)).operands()
	k, err := r.o.Kernels().Elementwise(expr.Input(0, tensor.Float32).Add(expr.Input(1, tensor.Float32)))
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		run  call
	}{
		{"kernel", func() error { return k.Run(r.c, []*tensor.Tensor{r.out}, r.x, r.y) }},
		{"add", func() error { return r.o.AddInto(r.c, r.out, r.x, r.y) }},
		{"sum", func() error { return r.o.SumInto(r.c, r.row, r.x, 1) }},
		{"sum_to", func() error { return r.o.SumToInto(r.c, r.bias, r.x) }},
		{"cross_entropy", func() error { return r.o.CrossEntropyInto(r.c, r.row, r.x, r.classes) }},
		{"layer_norm_backward", func() error {
			return r.o.LayerNormBackwardInto(r.c, r.out, r.bias, nil, r.x, r.y, nil, 1, epsilon)
		}},
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
}
