//go:build gpu

package kernel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/kernel"
	"github.com/go-vram/vram/kernel/expr"
	"github.com/go-vram/vram/kernel/plan"
	"github.com/go-vram/vram/tensor"
)

// workload is a kernel on tensors of a shape.
type workload struct {
	name    string
	reduces bool
	axes    []int
	of      expr.Expr
	inputs  [][]int
	output  []int
}

func workloads() []workload {
	a, b := inputs(tensor.Float32)
	const m, large, side = 1000000, 1 << 24, 4096
	square := []int{side, side}
	all := []workload{
		{name: "add/n=1000000", of: a.Add(b), inputs: [][]int{{m}, {m}}, output: []int{m}},
		{name: "add/n=16777216", of: a.Add(b), inputs: [][]int{{large}, {large}}, output: []int{large}},
		{name: "fused/n=1000000", of: fused(), inputs: [][]int{{m}, {m}}, output: []int{m}},
		{name: "fused/n=16777216", of: fused(), inputs: [][]int{{large}, {large}}, output: []int{large}},
		{name: "gelu/n=1000000", of: a.Gelu(), inputs: [][]int{{m}}, output: []int{m}},
		{name: "gelu/n=16777216", of: a.Gelu(), inputs: [][]int{{large}}, output: []int{large}},
		{name: "bias/shape=4096x4096", of: a.Add(b), inputs: [][]int{square, {side}}, output: square},
	}
	for _, n := range []int{10000, m, large} {
		name := map[int]string{10000: "10000", m: "1000000", large: "16777216"}[n]
		all = append(all,
			workload{name: "sum/n=" + name, reduces: true, of: a.Sum(), inputs: [][]int{{n}}},
			workload{name: "softmax/n=" + name, reduces: true, of: a.Softmax(), inputs: [][]int{{n}}, output: []int{n}})
	}
	rows := []int{-1}
	return append(all,
		workload{"softmax/shape=4096x4096", true, rows, a.Softmax(), [][]int{square}, square},
		workload{"layernorm/shape=4096x4096", true, rows, a.LayerNorm(1e-5), [][]int{square}, square},
		workload{"variance/shape=4096x4096", true, rows, a.Var(0), [][]int{square}, []int{side}},
		workload{"rowsums/shape=4096x4096", true, rows, a.Sum(), [][]int{square}, []int{side}},
		workload{"columnsums/shape=4096x4096", true, []int{-2}, a.Sum(), [][]int{square}, []int{side}},
		workload{"argmax/shape=4096x4096", true, rows, a.ArgMax(), [][]int{square}, []int{side}})
}

// BenchmarkKernel measures launches one behind the other, until the device is done with all of them.
func BenchmarkKernel(b *testing.B) {
	r := newRig(b)
	for _, w := range workloads() {
		var k *kernel.Kernel
		var err error
		if w.reduces {
			axes := w.axes
			if axes == nil {
				axes = plan.All
			}
			k, err = r.kernels.Reduction(axes, w.of)
		} else {
			k, err = r.kernels.Elementwise(w.of)
		}
		require.NoError(b, err)
		var in []*tensor.Tensor
		for i, shape := range w.inputs {
			in = append(in, r.normal(uint64(i), shape...))
		}
		out := outs(r.made(w.of.Type, w.output...))
		require.NoError(b, k.Run(r.c, out, in...))
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			require.NoError(b, r.c.Synchronize(context.Background()))
			for b.Loop() {
				if err := k.Run(r.c, out, in...); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, r.c.Synchronize(context.Background()))
		})
		if w.output != nil {
			graph, err := r.c.Capture(func() error {
				for range graphNodes {
					if err := k.Run(r.c, out, in...); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(b, err)
			b.Run(w.name+"/graph", func(b *testing.B) {
				for b.Loop() {
					if err := graph.Launch(r.c); err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, r.c.Synchronize(context.Background()))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/graphNodes, "ns/node")
			})
			require.NoError(b, r.c.Synchronize(context.Background()))
			require.NoError(b, graph.Close())
		}
	}
}

// graphNodes is how many runs a graph has.
const graphNodes = 20
