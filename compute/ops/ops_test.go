package ops_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// An operation that makes tensors takes their memory from the pool once it is warm.
func TestAWarmOperationTakesNoMemoryOfTheDriver(t *testing.T) {
	r := newRigOn(t, launching(t))
	x, y := r.tensor(newArray([]int{64, 64}, r.random.NormFloat64)), r.tensor(newArray([]int{64}, r.random.NormFloat64))
	targets, err := tensor.Zeros(r.s, tensor.Int64, 64)
	require.NoError(t, err)
	work := func() {
		require.NoError(t, tensor.Scoped(r.s, func(s *tensor.Scope) error {
			z, err := r.o.Add(s, x, y)
			require.NoError(t, err)
			_, err = r.o.Softmax(s, z, 0)
			require.NoError(t, err)
			_, err = r.o.CrossEntropy(s, z, targets)
			require.NoError(t, err)
			_, _, _, err = r.o.LayerNormBackward(s, z, x, y, 1, epsilon)
			return err
		}))
	}
	work()
	reserved := func() [2]int64 {
		stats := r.dev.Stats()
		return [2]int64{stats.ReservedBytes, int64(stats.DriverMisses)} //nolint:gosec // few
	}
	before := reserved()
	for range 20 {
		work()
	}
	assert.Equal(t, before, reserved())
}

// Operations can be captured, and each launch of the graph computes them.
func TestOperationsInAGraph(t *testing.T) {
	r := newRig(t)
	a := newArray([]int{4, 9}, r.random.NormFloat64)
	x, sum, y := r.tensor(a), r.view(tensor.Float32, []int{4}), r.view(tensor.Float32, []int{4, 9})
	work := func() error {
		return tensor.Scoped(r.c, func(s *tensor.Scope) error {
			z, err := r.o.Mul(s, x, x)
			if err != nil {
				return err
			}
			return errors.Join(r.o.SumInto(s, sum, z, 1), r.o.AddInto(s, y, z, x))
		})
	}
	require.NoError(t, work())
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	for i := range a.values {
		a.values[i] *= 2
	}
	r.write(x, a.values)
	require.NoError(t, g.Launch(r.c))
	var want, sums []float64
	for _, row := range a.rows([]int{1}) {
		total := 0.0
		for _, v := range row {
			want, total = append(want, v*v+v), total+v*v
		}
		sums = append(sums, total)
	}
	r.near(want, y, 1e-6, 1)
	r.near(sums, sum, 1e-5, 1)
	require.NoError(t, g.Close())
}

// So are those with temporary memory, and products.
func TestTemporaryMemoryInAGraph(t *testing.T) {
	r := newRig(t)
	a, b := newArray([]int{4, 9}, r.random.NormFloat64), newArray([]int{9, 5}, r.random.NormFloat64)
	x, y, loss := r.tensor(a), r.tensor(b), r.view(tensor.Float32, []int{4})
	require.NoError(t, loss.Allocate())
	targets, err := tensor.From(r.s, []int64{0, 4, 2, 1})
	require.NoError(t, err)
	apart, err := tensor.New(r.s, tensor.Float32, 9, 10)
	require.NoError(t, err)
	strided, err := apart.Slice(1, 0, 10, 2)
	require.NoError(t, err)
	require.NoError(t, tensor.Copy(r.s, strided, y))
	work := func() error {
		return tensor.Scoped(r.c, func(s *tensor.Scope) error {
			logits, _, err := r.o.Matmul(s, x, strided, own)
			if err != nil {
				return err
			}
			return r.o.CrossEntropyInto(s, loss, logits, targets)
		})
	}
	require.NoError(t, work())
	g, err := r.c.Capture(work)
	require.NoError(t, err)
	require.NoError(t, r.o.FillInto(r.s, loss, 0))
	for range 2 {
		require.NoError(t, g.Launch(r.c))
	}
	var want []float64
	for i, row := range (array{[]int{4, 5}, product(a, b, []int{4, 5})}).rows([]int{1}) {
		want = append(want, logSumExp(row)-row[[]int{0, 4, 2, 1}[i]])
	}
	r.near(want, loss, 1e-5, 1)
	require.NoError(t, g.Close())
}

// Contexts of a device share its operations.
func TestTwoContexts(t *testing.T) {
	r := newRig(t)
	a := newArray([]int{7}, r.random.NormFloat64)
	x := r.tensor(a)
	stream, err := r.dev.NewStream()
	require.NoError(t, err)
	other, err := cuda.NewContext(stream)
	require.NoError(t, err)
	y, err := r.o.Add(other, x, x)
	require.NoError(t, err)
	z, err := r.o.Mul(r.s, y, x)
	require.NoError(t, err)
	var want []float64
	for _, v := range a.values {
		want = append(want, 2*v*v)
	}
	r.near(want, z, 1e-6, 0)
	require.NoError(t, y.Free())
	require.NoError(t, other.Synchronize(t.Context()))
	require.NoError(t, other.Close())
}

// Goroutines that call an operation first at the same time all have its result, also one of the kernels of products and of
// attention.
func TestManyGoroutines(t *testing.T) {
	r := newRig(t)
	x := r.tensor(newArray([]int{33}, r.random.NormFloat64))
	m, _ := r.halves(viewContiguous, tensor.BFloat16, 8, 8)
	q, _ := r.halves(viewContiguous, tensor.BFloat16, 1, 1, 9, 64)
	own := ops.Product{Choice: matmul.Own}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			assert.NoError(t, tensor.Scoped(r.c, func(s *tensor.Scope) error {
				for _, f := range []makes1{r.o.Neg, r.o.Exp, r.o.Relu, r.o.Abs} {
					if _, err := f(s, x); err != nil {
						return err
					}
				}
				_, err := r.o.Sum(s, x, false)
				_, _, failed := r.o.Matmul(s, m, m, own)
				_, _, refused := r.o.Attention(s, q, q, q, ops.AttentionConfig{})
				return errors.Join(err, failed, refused)
			}))
		})
	}
	group.Wait()
}

func TestMistakes(t *testing.T) {
	r := newRig(t)
	x, y := r.tensor(newArray([]int{2, 3}, r.random.NormFloat64)), r.tensor(newArray([]int{2}, r.random.NormFloat64))
	_, err := r.o.Add(r.s, x, y)
	var failed *ops.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "add", failed.Op)
	require.ErrorContains(t, err, "float32[2 3]")
	require.ErrorContains(t, err, "float32[2]")
	require.ErrorContains(t, r.o.AddInto(r.s, x, x, y), "float32[2]")
	square, err := r.o.Fill(r.s, tensor.Float32, 1, 3, 3)
	require.NoError(t, err)
	turned, err := square.Transpose(0, 1)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.NegInto(r.s, square, turned), kernel.ErrOverlap)

	_, err = r.o.Add(r.s, x, nil)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	require.ErrorIs(t, r.o.AddInto(r.s, nil, x, x), tensor.ErrNoTensor)
	var none ops.Ops
	_, err = none.Add(r.s, x, x)
	require.ErrorIs(t, err, ops.ErrNotOpen)
	_, err = none.Fill(r.s, tensor.Int8, 1)
	require.ErrorIs(t, err, ops.ErrNotOpen)
	var named *ops.Error
	for _, value := range []float64{1, 1.5} {
		require.ErrorAs(t, none.FillInto(r.s, x, value), &named)
		require.ErrorIs(t, named, ops.ErrNotOpen)
		require.ErrorAs(t, r.o.FillInto(r.s, nil, value), &named)
		require.ErrorIs(t, named, tensor.ErrNoTensor)
	}
	_, _, err = none.Matmul(r.s, x, x, ops.Product{})
	require.Error(t, err)
	require.ErrorIs(t, none.Close(), ops.ErrNotOpen)
	_, err = ops.New(nil)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	gone, err := r.o.Neg(r.c, x)
	require.NoError(t, err)
	require.NoError(t, gone.Free())
	_, err = r.o.Neg(r.s, gone)
	require.ErrorIs(t, err, tensor.ErrFreed)
}

// A failure has the name of the operation that was called, and says which operand is which.
// The failure of an operation that consists of others has its own name, whichever of them fails, and leaves none of its results.
func TestNamesOfOperationsThatConsistOfOthers(t *testing.T) {
	r := newRig(t)
	x, y, grad, row := r.zeros(4, 3), r.zeros(3, 5), r.zeros(4, 5), r.zeros(3)
	classes, places := r.made(tensor.Int64, 4), r.made(tensor.Int64, 4, 3)
	r.o.Kernels().Freeze()
	one := func(_ *tensor.Tensor, err error) error { return err }
	two := func(_, _ *tensor.Tensor, err error) error { return err }
	three := func(_, _, _ *tensor.Tensor, err error) error { return err }
	product := func(_, _ *tensor.Tensor, _ [2]matmul.Path, err error) error { return err }
	for want, all := range map[string][]error{
		"cast":                         {one(r.o.Cast(r.c, x, tensor.Int8))},
		"transpose copy":               {one(r.o.TransposeCopy(r.c, x, 0, 1)), r.o.TransposeCopyInto(r.c, y, r.zeros(5, 3), 0, 1)},
		"sum to":                       {one(r.o.SumTo(r.c, x, 3)), r.o.SumToInto(r.c, row, x)},
		"concat":                       {one(r.o.Concat(r.c, 0, x, x))},
		"cross entropy":                {one(r.o.CrossEntropy(r.c, x, classes))},
		"cross entropy backward":       {one(r.o.CrossEntropyBackward(r.c, r.zeros(4), x, classes))},
		"cross entropy gradient":       {two(r.o.CrossEntropyGradient(r.c, x, classes, ops.LossGradient{}))},
		"scatter-add":                  {one(r.o.ScatterAdd(r.c, x, places, x, 0)), r.o.ScatterAddInto(r.c, r.zeros(4, 3), places, x, 0)},
		"gather backward":              {one(r.o.GatherBackward(r.c, x, x, places, 0))},
		"embedding backward":           {one(r.o.EmbeddingBackward(r.c, x, x, classes))},
		"mean backward":                {one(r.o.MeanBackward(r.c, row, x, 0))},
		"add backward":                 {two(r.o.AddBackward(r.c, x, x, row))},
		"sub backward":                 {two(r.o.SubBackward(r.c, x, row, x))},
		"layer norm backward":          {three(r.o.LayerNormBackward(r.c, x, x, row, 1, epsilon))},
		"layer norm residual backward": {three(r.o.LayerNormResidualBackward(r.c, x, x, x, row, 1, epsilon))},
		"RMS norm backward":            {two(r.o.RMSNormBackward(r.c, x, x, row, 1, epsilon))},
		"gradient norm":                {three(r.o.GradNorm(r.c, []*tensor.Tensor{x, y}, 1))},
		"AdamW":                        {r.o.AdamWAll(r.c, []ops.AdamWState{{Param: x, Grad: r.zeros(4, 3), First: r.zeros(4, 3), Second: r.zeros(4, 3)}}, ops.AdamWStep{Step: 1}, ops.AdamWConfig{})},
		"matmul backward":              {product(r.o.MatmulBackward(r.c, grad, x, y, own))},
	} {
		for _, err := range all {
			require.ErrorIs(t, err, kernel.ErrNotPrepared, want)
			var failed *ops.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, want, failed.Op)
		}
	}
	require.NoError(t, r.s.Close())
	assert.Zero(t, r.dev.Stats().LiveBytes, "results are freed without a scope, too")
}

func TestNamesInFailures(t *testing.T) {
	r := newRig(t)
	x, wide, none := r.zeros(2, 3), r.made(tensor.Float64, 2, 3), (*tensor.Tensor)(nil)
	indices := r.made(tensor.Int64, 2, 3)
	square := r.zeros(3, 3)
	turned, err := square.Transpose(0, 1)
	require.NoError(t, err)
	fail := func(_ *tensor.Tensor, err error) error { return err }
	both := func(_, _ *tensor.Tensor, err error) error { return err }
	_, _, product := r.o.Matmul(r.s, x, x, ops.Product{})
	for want, err := range map[string]error{
		"operand 1 float32[2 3] on GPU 0: 3 columns times 2 rows: ": product,
		"ops: cast of operand 0 no tensor: ":                        fail(r.o.Cast(r.s, none, tensor.Int8)),
		"ops: transpose copy of operand 0 no tensor: ":              fail(r.o.TransposeCopy(r.s, none, 0, 1)),
		"ops: transpose copy of output 0 float32[3 3] ":             r.o.TransposeCopyInto(r.s, square, square, 0, 1),
		"ops: sum to of ":                                                            r.o.SumToInto(r.s, x, square),
		"ops: sum to of output 0 float32[5] ":                                        fail(r.o.SumTo(r.s, x, 5)),
		"ops: scatter-add of operand 0 no tensor":                                    fail(r.o.ScatterAdd(r.s, none, indices, x, 0)),
		"ops: add backward of ":                                                      both(r.o.AddBackward(r.s, none, x, x)),
		"ops: sub backward of ":                                                      both(r.o.SubBackward(r.s, none, x, x)),
		"ops: arange of int8 from 0 to 3 by 0: ":                                     fail(r.o.Arange(r.s, tensor.Int8, 0, 3, 0)),
		"ops: uniform of float32[-1]: ":                                              fail(r.o.Uniform(r.s, tensor.Float32, ops.Random{}, 0, 1, -1)),
		"ops: fill of float32[-1]: ":                                                 fail(r.o.Fill(r.s, tensor.Float32, 0, -1)),
		"second moment float64[2 3] on GPU 0, rate float32[] on GPU 0,":              r.o.AdamW(r.s, ops.AdamWState{Param: wide, Grad: r.made(tensor.Float64, 2, 3), First: r.made(tensor.Float64, 2, 3), Second: r.made(tensor.Float64, 2, 3)}, r.zeros(), r.zeros(), ops.AdamWConfig{Beta1: 0.5, Beta2: 0.5}),
		"ops: AdamW of parameter no tensor, gradient no tensor,":                     r.o.AdamWAll(r.s, make([]ops.AdamWState, 1), ops.AdamWStep{Step: 1}, ops.AdamWConfig{}),
		"ops: sum of operand 0 float32[2 3] on GPU 0: axis 2 of 2 dimensions: ":      fail(r.o.Sum(r.s, x, false, 1, 2)),
		"axis -1 twice, of 2 dimensions: ":                                           fail(r.o.Sum(r.s, x, false, 1, -1)),
		"ops: softmax of operand 0 float32[2 3] on GPU 0: axis -3 of 2 dimensions: ": fail(r.o.Softmax(r.s, x, -3)),
		"operand 1 int64[2 3] on GPU 0: axis 2 of 2 dimensions: ":                    r.o.GatherInto(r.s, x, x, indices, 2),
		"the last 3 of 2 dimensions: ":                                               fail(r.o.RMSNorm(r.s, x, nil, 3, epsilon)),
		"kernel: vram_":                                                              r.o.GeluInto(r.s, square, turned),
	} {
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 400, err)
	}
	_, _, _, err = r.o.LayerNormBackward(r.s, none, x, nil, 1, epsilon)
	require.ErrorContains(t, err, "layer norm")
}
