package kernel_test

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

func inputs(of tensor.Type) (a, b expr.Expr) { return expr.Input(0, of), expr.Input(1, of) }

func fused() expr.Expr {
	a, b := inputs(tensor.Float32)
	return a.Mul(b).Add(a).Relu().Mul(expr.Number(2)).Sub(b)
}

func TestAnElementwiseKernelRuns(t *testing.T) {
	r := newRig(t)
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	for _, n := range []int{0, 1, 7, 1000, 4099} {
		x, y, z := r.normal(1, n), r.normal(2, n), r.made(tensor.Float32, n)
		require.NoError(t, k.Run(r.c, outs(z), x, y))
		got, err := tensor.Read[float32](z)
		require.NoError(t, err)
		a, b := normal(1, n), normal(2, n)
		for i := range got {
			v := a[i] * b[i]
			require.Equal(t, max(v+a[i], 0)*2-b[i], got[i])
		}
	}
}

func TestReductionsRun(t *testing.T) {
	r := newRig(t)
	x := expr.Input(0, tensor.Float32)
	sum, err := r.kernels.Reduction([]int{-1}, x.Sum(), x.ArgMax())
	require.NoError(t, err)
	softmax, err := r.kernels.Reduction([]int{-1}, x.Softmax())
	require.NoError(t, err)
	for _, shape := range [][2]int{{1, 1}, {1000, 3}, {33, 40}, {9, 1000}, {5, 4096}, {3, 10000}, {1, 1 << 16}, {2, 40001}} {
		in := r.normal(3, shape[:]...)
		total, at, out := r.made(tensor.Float32, shape[0]), r.made(tensor.Int64, shape[0]), r.made(tensor.Float32, shape[:]...)
		for range 2 {
			require.NoError(t, sum.Run(r.c, outs(total, at), in))
			require.NoError(t, softmax.Run(r.c, outs(out), in))
		}
		totals, err := tensor.Read[float32](total)
		require.NoError(t, err)
		places, err := tensor.Read[int64](at)
		require.NoError(t, err)
		got, err := tensor.Read[float32](out)
		require.NoError(t, err)
		values := normal(3, shape[:]...)
		for i := range shape[0] {
			row := values[i*shape[1]:][:shape[1]]
			want, exps, top := 0.0, 0.0, 0
			for j, v := range row {
				want += float64(v)
				exps += math.Exp(float64(v))
				if v > row[top] {
					top = j
				}
			}
			require.InDelta(t, want, totals[i], 1e-5*float64(shape[1])+1e-6, shape)
			require.Equal(t, int64(top), places[i], shape)
			for j, v := range row {
				want := math.Exp(float64(v)) / exps
				require.InDelta(t, want, got[i*shape[1]+j], 1e-5*want, shape)
			}
		}
	}
}

func TestKernelsInAGraph(t *testing.T) {
	r := newRig(t)
	x := expr.Input(0, tensor.Float32)
	sum, err := r.kernels.Reduction(plan.All, x.Sum())
	require.NoError(t, err)
	softmax, err := r.kernels.Reduction(plan.All, x.Softmax())
	require.NoError(t, err)
	in, total, out := r.normal(1, 100000), r.made(tensor.Float32), r.made(tensor.Float32, 100000)
	for _, x := range outs(total, out) {
		require.NoError(t, x.Allocate())
	}
	g, err := r.c.Capture(func() error {
		return errors.Join(softmax.Run(r.c, outs(out), in), sum.Run(r.c, outs(total), out))
	})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, g.Launch(r.c))
		got, err := tensor.Item[float32](total)
		require.NoError(t, err)
		require.InDelta(t, 1, got, 1e-5)
	}
	require.NoError(t, g.Close())
}

// A result of a reduction whose shape does not fit is refused with the one that it must have, as the output has the axes or not.
func TestResultsThatDoNotFit(t *testing.T) {
	r := newRig(t)
	k, err := r.kernels.Reduction([]int{-1}, expr.Input(0, tensor.Float32).Sum())
	require.NoError(t, err)
	x := r.normal(1, 8, 4)
	for _, c := range []struct{ has, want []int }{
		{[]int{4}, []int{8}},
		{[]int{8, 4}, []int{8, 1}},
		{[]int{1, 8}, []int{8, 1}},
		{[]int{}, []int{8}},
	} {
		var shape *plan.ShapeError
		require.ErrorAs(t, k.Run(r.c, outs(r.made(tensor.Float32, c.has...)), x), &shape)
		assert.Equal(t, c.has, shape.Shape)
		assert.Equal(t, c.want, shape.Want)
	}
}

func TestOperandsThatDoNotFit(t *testing.T) {
	r := newRig(t)
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	x, y, z := r.normal(1, 8, 4), r.normal(2, 4), r.made(tensor.Float32, 8, 4)
	require.NoError(t, k.Run(r.c, outs(z), x, y))
	require.NoError(t, k.Run(r.c, outs(x), x, y), "in place")

	var count *kernel.CountError
	require.ErrorAs(t, k.Run(r.c, outs(z), x), &count)
	var operand *kernel.OperandError
	var types *tensor.TypeError
	require.ErrorAs(t, k.Run(r.c, outs(z), x, r.made(tensor.Float64, 4)), &operand)
	assert.Equal(t, 1, operand.Index)
	require.ErrorAs(t, operand, &types)
	var shape *plan.ShapeError
	require.ErrorAs(t, k.Run(r.c, outs(z), x, r.normal(2, 3)), &shape)
	require.ErrorAs(t, k.Run(r.c, outs(r.made(tensor.Float32, 4)), x, y), &shape)

	transposed, err := z.Transpose(0, 1)
	require.NoError(t, err)
	square := r.normal(1, 8, 8)
	turned, err := square.Transpose(0, 1)
	require.NoError(t, err)
	require.ErrorIs(t, k.Run(r.c, outs(square), turned, square), kernel.ErrOverlap)
	require.ErrorIs(t, k.Run(r.c, outs(turned), square, turned), kernel.ErrOverlap)
	require.NoError(t, k.Run(r.c, outs(transposed), r.normal(1, 4, 8), r.normal(1, 8)))
	wide, err := r.made(tensor.Float32, 1, 4).Broadcast(8, 4)
	require.NoError(t, err)
	require.ErrorIs(t, k.Run(r.c, outs(wide), x, y), kernel.ErrRepeats)

	require.ErrorIs(t, k.Run(r.c, outs(z), nil, y), tensor.ErrNoTensor)
	gone, err := tensor.From(r.c, make([]float32, 32), 8, 4)
	require.NoError(t, err)
	require.NoError(t, gone.Free())
	require.ErrorIs(t, k.Run(r.c, outs(z), gone, y), tensor.ErrFreed)

	_, err = r.kernels.Elementwise(expr.Input(0, tensor.Float32).Sum())
	require.ErrorIs(t, err, kernel.ErrReduces)
	_, err = r.kernels.Elementwise(expr.Input(1, tensor.Float32))
	require.ErrorIs(t, err, plan.ErrInput)
	for _, axes := range [][]int{{0}, {-1, -1}} {
		_, err = r.kernels.Reduction(axes, expr.Input(0, tensor.Float32).Sum())
		require.ErrorIs(t, err, plan.ErrAxes)
		require.ErrorContains(t, err, "counted from the end: -1 is the last one")
	}
	_, err = r.kernels.Elementwise(expr.Input(0, tensor.Float64).Sin())
	var wrong *expr.TypeError
	require.ErrorAs(t, err, &wrong)
}

// counting is a store that counts.
type counting struct{ gets, puts atomic.Int32 }

func (s *counting) Get(string) ([]byte, bool) { s.gets.Add(1); return nil, false }
func (s *counting) Put(string, []byte)        { s.puts.Add(1) }

func TestAVariantIsCompiledOnce(t *testing.T) {
	store := &counting{}
	r := newRig(t, kernel.WithStore(store))
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	again, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	for _, n := range []int{8, 16, 1000, 1001} {
		x, y, z := r.normal(1, n), r.normal(2, n), r.made(tensor.Float32, n)
		require.NoError(t, k.Run(r.c, outs(z), x, y))
		require.NoError(t, again.Run(r.c, outs(z), x, y))
	}
	assert.Equal(t, int32(1), store.gets.Load())
	assert.Equal(t, int32(1), store.puts.Load())
}

func TestPreparedKernels(t *testing.T) {
	r := newRig(t, kernel.Prepared())
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	x, y, z := r.normal(1, 64), r.normal(2, 64), r.made(tensor.Float32, 64)
	require.ErrorIs(t, k.Run(r.c, outs(z), x, y), kernel.ErrNotPrepared)
	prepared, err := k.Prepare(outs(z), x, y).Await(t.Context())
	require.NoError(t, err)
	assert.Same(t, k, prepared)
	require.NoError(t, k.Run(r.c, outs(z), x, y))
	slice, err := x.Slice(0, 0, 64, 2)
	require.NoError(t, err)
	require.ErrorIs(t, k.Run(r.c, outs(r.made(tensor.Float32, 32)), slice, slice), kernel.ErrNotPrepared)

	require.NoError(t, r.c.Synchronize(t.Context()))
	require.NoError(t, r.kernels.Close())
	_, err = k.Prepare(outs(slice), slice, slice).Await(t.Context())
	require.ErrorIs(t, err, kernel.ErrClosed)
	require.ErrorIs(t, k.Run(r.c, outs(z), x, y), cuda.ErrUnloaded)
}

func TestAWarmRunAllocatesNothing(t *testing.T) {
	r := newRigOn(t, launching(t))
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	total, err := r.kernels.Reduction(plan.All, expr.Input(0, tensor.Float32).Sum())
	require.NoError(t, err)
	x, y, z, s := r.normal(1, 1<<17), r.normal(2, 1<<17), r.made(tensor.Float32, 1<<17), r.made(tensor.Float32)
	base := testing.AllocsPerRun(200, func() { _ = cuda.Part })
	for name, run := range map[string]func() error{
		"element-wise": func() error { return k.Run(r.c, []*tensor.Tensor{z}, x, y) },
		"reduction":    func() error { return total.Run(r.c, []*tensor.Tensor{s}, x) },
	} {
		require.NoError(t, run())
		assert.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		}), base+runAllocs, name)
	}
}

// The same layouts at another alignment take another variant.
func TestGeometriesAreKept(t *testing.T) {
	store := &counting{}
	r := newRig(t, kernel.WithStore(store))
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	x, z := r.normal(1, 65), r.made(tensor.Float32, 64)
	buffer, err := x.Buffer()
	require.NoError(t, err)
	shifted, err := tensor.Over(r.c, buffer, tensor.Float32, z.Layout())
	require.NoError(t, err)
	require.NoError(t, k.Run(r.c, outs(z), shifted))
	assert.Equal(t, int32(1), store.puts.Load())
	moved, err := x.Narrow(0, 1, 64)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, k.Run(r.c, outs(z), moved))
		require.NoError(t, k.Run(r.c, outs(z), shifted))
	}
	assert.Equal(t, int32(2), store.puts.Load())
}

// lying is a store with an image that no driver takes.
type lying struct{ puts atomic.Int32 }

func (s *lying) Get(string) ([]byte, bool) { return []byte("no code"), true }
func (s *lying) Put(string, []byte)        { s.puts.Add(1) }

// An image of the store that the driver refuses is compiled again, and counted.
func TestARefusedImageIsCompiledAgain(t *testing.T) {
	store := &lying{}
	r := newRig(t, kernel.WithStore(store))
	k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	x, z := r.normal(1, 64), r.made(tensor.Float32, 64)
	require.NoError(t, k.Run(r.c, outs(z), x))
	stats := r.kernels.Stats()
	assert.Equal(t, [3]int64{1, 0, 1}, [3]int64{stats.Compiled, stats.Stored, stats.Refused})
	assert.Equal(t, int32(1), store.puts.Load())
	var none *kernel.Compiler
	assert.Equal(t, kernel.Stats{}, none.Stats())

	// Refused counts some of the compiled ones: where nothing is compiled, it counts nothing.
	r = newRig(t, kernel.WithStore(&lying{}), kernel.Prepared())
	k, err = r.kernels.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	x, z = r.normal(1, 64), r.made(tensor.Float32, 64)
	require.ErrorIs(t, k.Run(r.c, outs(z), x), kernel.ErrNotPrepared)
	stats = r.kernels.Stats()
	assert.Equal(t, [2]int64{}, [2]int64{stats.Compiled, stats.Refused})
}
