package ops_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/fault"
)

// call runs an operation once.
type call = func() error

// calls are the ways to run an operation that take different code: by the operation, and by the way.
type calls map[string]map[string]call

// intoOperations are the operations that make no tensor: all that take a context and return none.
func intoOperations() []string {
	context, made := reflect.TypeFor[tensor.Context](), reflect.TypeFor[*tensor.Tensor]()
	var all []string
	for m := range reflect.TypeFor[ops.Ops]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != context {
			continue
		}
		if m.Type.NumOut() == 0 || m.Type.Out(0) != made {
			all = append(all, m.Name)
		}
	}
	return all
}

// Every operation that writes into tensors that are there is in the table: one that is added is not forgotten.
func TestTheTableHasAllIntoOperations(t *testing.T) {
	all := intoOperations()
	slices.Sort(all)
	assert.Contains(t, all, "AddInto")
	assert.Contains(t, all, "AdamWAll")
	assert.Equal(t, all, slices.Sorted(maps.Keys(newRigOn(t, bookkeeping(t)).calls())))
}

// A warm operation that writes into tensors that are there allocates nothing on Go's heap, and the driver is only told of work:
// no memory is allocated, mapped, or freed.
func TestAWarmOperationAllocatesNothing(t *testing.T) {
	driver := fault.Wrap(bookkeeping(t))
	r := newRigOn(t, driver)
	var cold, told recorder
	for op, ways := range r.calls() {
		for way, f := range ways {
			name := op + ", " + way
			driver.SetBefore(cold.add)
			for range 3 { // memory of the stream is there as well
				require.NoError(t, f(), name)
			}
			driver.SetBefore(told.add)
			allocs := testing.AllocsPerRun(100, func() {
				if err := f(); err != nil {
					t.Error(err)
				}
			})
			driver.SetBefore(nil)
			assert.LessOrEqual(t, allocs, float64(runAllocs), name)
			assert.Empty(t, told.take(), name)
		}
	}
	assert.NotEmpty(t, cold.take(), "functions of the driver are seen")
}

// recorder has the functions of the driver that are called and neither submit work to a stream nor ask how far it is, which
// other goroutines may do at any time.
type recorder struct {
	mu        sync.Mutex
	functions []string
}

func (r *recorder) add(function string) {
	for _, work := range []string{"cuLaunchKernel", "cuMemset", "cuMemcpyDtoD", "cuMemcpy2D", "cuEvent", "cuStreamIsCapturing", "cuStreamQuery"} {
		if strings.HasPrefix(function, work) {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.functions = append(r.functions, function)
}

// take has the functions since the last take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.functions
	r.functions = nil
	return taken
}

// operands are tensors for the table.
type operands struct {
	*rig

	x, y, out  *tensor.Tensor // of 16 rows and 32 columns
	bias, row  *tensor.Tensor // of 32 columns, and of 16 rows
	strided    *tensor.Tensor // of 16 rows and 32 columns, which lie apart
	half, mask *tensor.Tensor // of other types
	indices    *tensor.Tensor // of int64
	classes    *tensor.Tensor // of 16 rows, of int64
	long       *tensor.Tensor // of so many columns that several blocks sum a row up
	one        *tensor.Tensor // without dimensions
	numbers    *tensor.Tensor // of int32

	sizes
	step *int // the number of the last step of AdamWAll
}

// sizes has the sizes of the table's largest operands.
type sizes struct {
	columns int // so many that several blocks sum a row up
	summed  int // of a product: so many that several blocks sum up an element
}

// onHost are sizes for tests that execute nothing.
var onHost = sizes{columns: 1 << 18, summed: 8192}

func (r *rig) operands() operands { return r.operandsOf(onHost) }

func (r *rig) operandsOf(n sizes) operands {
	r.Helper()
	o := operands{rig: r, sizes: n, step: new(int)}
	wide := r.made(tensor.Float32, 16, 64)
	var err error
	o.strided, err = wide.Slice(1, 0, 64, 2)
	require.NoError(r, err)
	o.x, o.y, o.out = r.zeros(16, 32), r.zeros(16, 32), r.zeros(16, 32)
	o.bias, o.row, o.one = r.zeros(32), r.zeros(16), r.zeros()
	o.half, o.mask = r.made(tensor.Float16, 16, 32), r.made(tensor.Bool, 16, 32)
	o.indices, o.classes = r.made(tensor.Int64, 16, 32), r.made(tensor.Int64, 16)
	o.long, o.numbers = r.zeros(2, n.columns), r.made(tensor.Int32, 16, 32)
	return o
}

// made is a tensor of zeros.
func (r *rig) made(of tensor.Type, shape ...int) *tensor.Tensor {
	r.Helper()
	t, err := tensor.Zeros(r.s, of, shape...)
	require.NoError(r, err)
	*r.zeroed = append(*r.zeroed, t)
	return t
}

// zeros is a contiguous tensor.
func (r *rig) zeros(shape ...int) *tensor.Tensor {
	r.Helper()
	return r.made(tensor.Float32, shape...)
}

// calls has every operation.
func (r *rig) calls() calls { return r.operands().calls() }

func (r operands) calls() calls {
	r.Helper()
	all := calls{}
	for _, part := range []calls{
		r.elements(), r.makers(), r.reductions(), r.rows(), r.products(), r.gradients(), r.gradientsOfRows(), r.gradientsOfFunctions(),
		r.gradientsOfReductions(), r.gradientsOfProducts(),
		r.indexing(), r.training(), r.attention(),
	} {
		maps.Copy(all, part)
	}
	return all
}

func (r operands) elements() calls {
	all := calls{
		"ClampInto": {"bounds": func() error { return r.o.ClampInto(r.c, r.out, r.x, 0, 1) }},
		"WhereInto": {"broadcast": func() error { return r.o.WhereInto(r.c, r.out, r.mask, r.bias, r.y) }},
	}
	for name, f := range map[string]func(tensor.Context, *tensor.Tensor, *tensor.Tensor, *tensor.Tensor) error{
		"AddInto": r.o.AddInto, "SubInto": r.o.SubInto, "MulInto": r.o.MulInto, "DivInto": r.o.DivInto,
		"EqInto": r.o.EqInto, "NeInto": r.o.NeInto, "LtInto": r.o.LtInto, "LeInto": r.o.LeInto, "GtInto": r.o.GtInto, "GeInto": r.o.GeInto,
	} {
		all[name] = map[string]call{
			"same shape":  func() error { return f(r.s, r.out, r.x, r.y) },
			"broadcast":   func() error { return f(r.s, r.out, r.x, r.bias) },
			"other types": func() error { return f(r.s, r.strided, r.x, r.half) },
		}
	}
	for name, f := range map[string]func(tensor.Context, *tensor.Tensor, *tensor.Tensor) error{
		"NegInto": r.o.NegInto, "AbsInto": r.o.AbsInto, "SqrtInto": r.o.SqrtInto, "RsqrtInto": r.o.RsqrtInto, "ExpInto": r.o.ExpInto,
		"LogInto": r.o.LogInto, "TanhInto": r.o.TanhInto, "SigmoidInto": r.o.SigmoidInto, "ReluInto": r.o.ReluInto, "GeluInto": r.o.GeluInto,
		"GeluTanhInto": r.o.GeluTanhInto, "SiluInto": r.o.SiluInto,
	} {
		all[name] = map[string]call{
			"contiguous": func() error { return f(r.c, r.out, r.x) },
			"in place":   func() error { return f(r.c, r.out, r.out) },
			"strided":    func() error { return f(r.c, r.strided, r.half) },
		}
	}
	return all
}

func (r operands) makers() calls {
	turned := r.made(tensor.Float32, 32, 16)
	joined, double, scalar := r.zeros(48, 32), r.made(tensor.Float64, 16, 32), r.made(tensor.Int32)
	return calls{
		"CopyInto": {
			"contiguous": func() error { return r.o.CopyInto(r.c, r.out, r.x) },
			"strided":    func() error { return r.o.CopyInto(r.c, r.out, r.strided) },
			"broadcast":  func() error { return r.o.CopyInto(r.c, r.out, r.bias) },
			"cast":       func() error { return r.o.CopyInto(r.c, r.numbers, r.x) },
		},
		"TransposeCopyInto": {"matrix": func() error { return r.o.TransposeCopyInto(r.c, turned, r.x, 0, 1) }},
		"FillInto": {
			"contiguous": func() error { return r.o.FillInto(r.c, r.out, 3) },
			"strided":    func() error { return r.o.FillInto(r.c, r.strided, 3) },
			"bool":       func() error { return r.o.FillInto(r.c, r.mask, 1) },
			"16 bits":    func() error { return r.o.FillInto(r.c, r.half, 1) },
			"64 bits":    func() error { return r.o.FillInto(r.c, double, 0.1) },
		},
		"ArangeInto": {
			"floats":  func() error { return r.o.ArangeInto(r.c, r.out, 0, 0.5) },
			"numbers": func() error { return r.o.ArangeInto(r.c, r.numbers, 0, 1) },
			"scalar":  func() error { return r.o.ArangeInto(r.c, scalar, 0, 1) },
		},
		"ConcatInto": {
			"three":    func() error { return r.o.ConcatInto(r.c, joined, 0, r.x, r.strided, r.y) },
			"the last": func() error { return r.o.ConcatInto(r.c, joined, -2, r.x, r.half, r.y) },
		},
	}
}

func (r operands) reductions() calls {
	cube, middle, each := r.zeros(4, 8, 16), r.zeros(8), r.zeros(2)
	kept, at := r.zeros(16, 1), r.made(tensor.Int64, 16)
	first, last, outer := []int{0}, []int{-1}, []int{0, -1} // a slice that is passed to a function value is on the heap
	all := calls{"SumToInto": {
		"same shape":      func() error { return r.o.SumToInto(r.c, r.out, r.x) },
		"fewer axes":      func() error { return r.o.SumToInto(r.c, r.bias, r.x) },
		"length 1":        func() error { return r.o.SumToInto(r.c, kept, r.x) },
		"no axes":         func() error { return r.o.SumToInto(r.c, r.one, cube) },
		"of several rows": func() error { return r.o.SumToInto(r.c, r.one, r.long) },
	}}
	for name, f := range map[string]func(tensor.Context, *tensor.Tensor, *tensor.Tensor, ...int) error{
		"SumInto": r.o.SumInto, "MeanInto": r.o.MeanInto, "MaxInto": r.o.MaxInto, "MinInto": r.o.MinInto,
	} {
		all[name] = map[string]call{
			"last axis":    func() error { return f(r.c, r.row, r.x, last...) },
			"first axis":   func() error { return f(r.c, r.bias, r.x, first...) },
			"several axes": func() error { return f(r.c, middle, cube, outer...) },
			"all":          func() error { return f(r.c, r.one, r.x) },
			"kept":         func() error { return f(r.c, kept, r.strided, last...) },
			"long rows":    func() error { return f(r.c, each, r.long, last...) },
		}
	}
	all["ArgMaxInto"] = map[string]call{"last axis": func() error { return r.o.ArgMaxInto(r.c, at, r.x, 1) }}
	return all
}

func (r operands) rows() calls {
	cube, other, weight := r.zeros(4, 8, 16), r.zeros(4, 8, 16), r.zeros(8, 16)
	return calls{
		"SoftmaxInto": {
			"last axis":  func() error { return r.o.SoftmaxInto(r.c, r.out, r.x, -1) },
			"first axis": func() error { return r.o.SoftmaxInto(r.c, r.out, r.x, 0) },
			"long rows":  func() error { return r.o.SoftmaxInto(r.c, r.long, r.long, 1) },
		},
		"LogSoftmaxInto": {"last axis": func() error { return r.o.LogSoftmaxInto(r.c, r.out, r.x, -1) }},
		"LayerNormInto": {
			"weight and bias": func() error { return r.o.LayerNormInto(r.c, r.out, r.x, r.bias, r.bias, 1, epsilon) },
			"alone":           func() error { return r.o.LayerNormInto(r.c, r.out, r.x, nil, nil, 1, epsilon) },
			"several axes":    func() error { return r.o.LayerNormInto(r.c, cube, cube, weight, nil, 2, epsilon) },
		},
		"LayerNormResidualInto": {
			"weight and bias": func() error { return r.o.LayerNormResidualInto(r.c, r.out, r.x, r.x, r.y, r.bias, r.bias, 1, epsilon) },
			"alone":           func() error { return r.o.LayerNormResidualInto(r.c, cube, other, cube, other, nil, nil, 2, epsilon) },
		},
		"RMSNormInto": {
			"weight": func() error { return r.o.RMSNormInto(r.c, r.out, r.x, r.bias, 1, epsilon) },
			"alone":  func() error { return r.o.RMSNormInto(r.c, r.out, r.x, nil, 1, epsilon) },
		},
		"CrossEntropyInto": {
			"all":     func() error { return r.o.CrossEntropyInto(r.c, r.row, r.x, r.classes) },
			"ignored": func() error { return r.o.CrossEntropyInto(r.c, r.row, r.half, r.classes, ops.Ignored(-100)) },
		},
	}
}

func (r operands) products() calls {
	left, right, out := r.zeros(16, 32), r.zeros(32, 16), r.zeros(16, 16)
	turned, err := r.y.Transpose(0, 1)
	require.NoError(r, err)
	batch, parts, batches := r.zeros(2, 3, 16, 32), r.zeros(2, 1, 32, 16), r.zeros(2, 3, 16, 16)
	apart, err := r.zeros(16, 32).Slice(1, 0, 32, 2)
	require.NoError(r, err)
	column, vector := r.zeros(32, 1), r.zeros(16, 1)
	deep, wide, square := r.zeros(64, r.summed), r.zeros(r.summed, 64), r.zeros(64, 64)
	multiply := func(out, x, y *tensor.Tensor, how ops.Product) call {
		return func() error {
			_, err := r.o.MatmulInto(r.c, out, x, y, how)
			return err
		}
	}
	kernels := ops.Product{Choice: matmul.Own}
	fused := kernels
	fused.Add, fused.Bias, fused.Epilogue, fused.Aux = true, r.row, gemm.GELUAux, r.zeros(16, 16)
	return calls{"MatmulInto": {
		"contiguous":            multiply(out, left, right, kernels),
		"any way":               multiply(out, left, right, ops.Product{}),
		"transposed":            multiply(out, left, turned, kernels),
		"epilogue":              multiply(out, left, right, fused),
		"batch":                 multiply(batches, batch, right, kernels),
		"batch in parts":        multiply(batches, batch, parts, kernels),
		"strided operands":      multiply(out, r.strided, right, kernels),
		"strided result":        multiply(apart, left, right, kernels),
		"other types":           multiply(out, r.half, right, kernels),
		"converted result":      multiply(r.made(tensor.BFloat16, 16, 16), left, right, kernels),
		"matrix and vector":     multiply(vector, left, column, kernels),
		"vector":                multiply(r.zeros(16), left, r.zeros(32), kernels),
		"two vectors":           multiply(r.zeros(), r.zeros(32), r.zeros(32), kernels),
		"long sums":             multiply(square, deep, wide, kernels),
		"rounded to 16 bits":    multiply(square, deep, wide, ops.Product{Choice: matmul.Own, Precision: gemm.RoundedBF16}),
		"all copied, one batch": multiply(apart, r.strided, turned, kernels),
	}}
}

func (r operands) gradients() calls {
	grad, kept := r.zeros(16, 32), r.zeros(16, 1)
	dx, dbias, dy := r.zeros(16, 32), r.zeros(32), r.zeros(16, 32)
	all := calls{
		"AddBackwardInto": {
			"same shape":  func() error { return r.o.AddBackwardInto(r.c, dx, dy, grad) },
			"broadcast":   func() error { return r.o.AddBackwardInto(r.c, dx, dbias, grad) },
			"one of both": func() error { return r.o.AddBackwardInto(r.c, nil, kept, grad) },
		},
		"SubBackwardInto": {
			"same shape":  func() error { return r.o.SubBackwardInto(r.c, dx, dy, grad) },
			"broadcast":   func() error { return r.o.SubBackwardInto(r.c, dx, dbias, grad) },
			"one of both": func() error { return r.o.SubBackwardInto(r.c, nil, r.one, grad) },
		},
		"MulBackwardInto": {
			"same shape": func() error { return r.o.MulBackwardInto(r.c, dx, dy, grad, r.x, r.y) },
			"broadcast":  func() error { return r.o.MulBackwardInto(r.c, dx, dbias, grad, r.x, r.bias) },
		},
		"DivBackwardInto": {
			"same shape": func() error { return r.o.DivBackwardInto(r.c, dx, dy, grad, r.x, r.y) },
			"broadcast":  func() error { return r.o.DivBackwardInto(r.c, dx, dbias, grad, r.x, r.bias) },
		},
	}
	for name, f := range map[string]func(tensor.Context, *tensor.Tensor, *tensor.Tensor, *tensor.Tensor) error{
		"ReluBackwardInto": r.o.ReluBackwardInto, "GeluBackwardInto": r.o.GeluBackwardInto, "GeluTanhBackwardInto": r.o.GeluTanhBackwardInto,
		"SiluBackwardInto": r.o.SiluBackwardInto, "SigmoidBackwardInto": r.o.SigmoidBackwardInto, "TanhBackwardInto": r.o.TanhBackwardInto,
	} {
		all[name] = map[string]call{
			"contiguous": func() error { return f(r.c, dx, grad, r.x) },
			"strided":    func() error { return f(r.c, r.strided, grad, r.half) },
		}
	}
	return all
}

func (r operands) gradientsOfRows() calls {
	grad, dx, dweight, dbias, losses := r.zeros(16, 32), r.zeros(16, 32), r.zeros(32), r.zeros(32), r.zeros(16)
	cube, dcube, weight := r.zeros(4, 8, 16), r.zeros(4, 8, 16), r.zeros(8, 16)
	return calls{
		"SoftmaxBackwardInto": {
			"last axis":  func() error { return r.o.SoftmaxBackwardInto(r.c, dx, grad, r.y, -1) },
			"first axis": func() error { return r.o.SoftmaxBackwardInto(r.c, dx, grad, r.y, 0) },
		},
		"LogSoftmaxBackwardInto": {"last axis": func() error { return r.o.LogSoftmaxBackwardInto(r.c, dx, grad, r.y, -1) }},
		"CrossEntropyBackwardInto": {
			"all":     func() error { return r.o.CrossEntropyBackwardInto(r.c, dx, losses, r.x, r.classes) },
			"ignored": func() error { return r.o.CrossEntropyBackwardInto(r.c, dx, losses, r.x, r.classes, ops.Ignored(3)) },
			"half":    func() error { return r.o.CrossEntropyBackwardInto(r.c, dx, r.row, r.half, r.classes) },
		},
		"CrossEntropyGradientInto": {
			"mean": func() error {
				return r.o.CrossEntropyGradientInto(r.c, r.one, losses, r.half, r.classes, ops.LossGradient{Mean: true}, ops.Ignored(3))
			},
			"sum": func() error {
				return r.o.CrossEntropyGradientInto(r.c, r.one, nil, r.strided, r.classes, ops.LossGradient{})
			},
			"scaled": func() error {
				return r.o.CrossEntropyGradientInto(r.c, nil, nil, dx, r.classes, ops.LossGradient{ScaleAt: r.one})
			},
		},
		"LayerNormBackwardInto": {
			"all": func() error { return r.o.LayerNormBackwardInto(r.c, dx, dweight, dbias, grad, r.x, r.bias, 1, epsilon) },
			"dx":  func() error { return r.o.LayerNormBackwardInto(r.c, dx, nil, nil, grad, r.x, nil, 1, epsilon) },
			"2 axes": func() error {
				return r.o.LayerNormBackwardInto(r.c, dcube, weight, nil, cube, cube, weight, 2, epsilon)
			},
		},
		"LayerNormResidualBackwardInto": {
			"all": func() error {
				return r.o.LayerNormResidualBackwardInto(r.c, dx, dweight, dbias, grad, dx, r.x, r.bias, 1, epsilon)
			},
			"in separate launches": func() error {
				return r.o.LayerNormResidualBackwardInto(r.c, r.strided, dweight, nil, grad, r.y, r.x, nil, 1, epsilon)
			},
		},
		"RMSNormBackwardInto": {
			"all":    func() error { return r.o.RMSNormBackwardInto(r.c, dx, dweight, grad, r.x, r.bias, 1, epsilon) },
			"dx":     func() error { return r.o.RMSNormBackwardInto(r.c, dx, nil, grad, r.x, nil, 1, epsilon) },
			"2 axes": func() error { return r.o.RMSNormBackwardInto(r.c, dcube, weight, cube, cube, nil, 2, epsilon) },
		},
	}
}

func (r operands) indexing() calls {
	rows, once := r.zeros(16, 32, 8), r.zeros(64, 8)
	return calls{
		"GatherInto": {
			"last axis":  func() error { return r.o.GatherInto(r.c, r.out, r.x, r.indices, 1) },
			"first axis": func() error { return r.o.GatherInto(r.c, r.strided, r.x, r.indices, 0) },
		},
		"ScatterAddInto": {
			"last axis":  func() error { return r.o.ScatterAddInto(r.c, r.out, r.indices, r.x, 1) },
			"first axis": func() error { return r.o.ScatterAddInto(r.c, r.out, r.indices, r.strided, 0) },
		},
		"GatherBackwardInto": {"last axis": func() error { return r.o.GatherBackwardInto(r.c, r.out, r.x, r.indices, 1) }},
		"EmbeddingInto":      {"matrix": func() error { return r.o.EmbeddingInto(r.c, rows, once, r.indices) }},
		"EmbeddingBackwardInto": {
			"matrix":  func() error { return r.o.EmbeddingBackwardInto(r.c, once, rows, r.indices) },
			"padding": func() error { return r.o.EmbeddingBackwardInto(r.c, once, rows, r.indices, ops.Padding(3)) },
		},
		"EmbeddingBackwardAdd": {"matrix": func() error { return r.o.EmbeddingBackwardAdd(r.c, once, rows, r.indices) }},
	}
}

func (r operands) training() calls {
	state := ops.AdamWState{Param: r.zeros(16, 32), Grad: r.x, First: r.zeros(16, 32), Second: r.zeros(16, 32)}
	apart := ops.AdamWState{Param: r.strided, Grad: r.x, First: r.zeros(16, 32), Second: r.zeros(16, 32)}
	half := ops.AdamWState{Param: r.half, Grad: r.made(tensor.Float16, 16, 32), First: r.zeros(16, 32), Second: r.zeros(16, 32)}
	copied := ops.AdamWState{Param: r.zeros(16, 32), Grad: r.x, First: r.zeros(16, 32), Second: r.zeros(16, 32), Copy: r.made(tensor.BFloat16, 16, 32)}
	states := []ops.AdamWState{state, apart, half, copied}
	grads := []*tensor.Tensor{r.x, r.half, r.strided, r.bias}
	norm, scale, nonFinite := r.zeros(), r.zeros(), r.made(tensor.Bool)
	config := ops.AdamWConfig{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	rate, step, ahead := r.zeros(1), r.zeros(1), r.made(tensor.Int64, 1)
	return calls{
		"AdamW": {"step": func() error { return r.o.AdamW(r.c, state, rate, step, config) }},
		"AdamWAll": {
			"numbers": func() error {
				*r.step++
				return r.o.AdamWAll(r.c, states, ops.AdamWStep{Rate: 1 / float64(*r.step), Step: *r.step}, config)
			},
			"tensors": func() error {
				return r.o.AdamWAll(r.c, states, ops.AdamWStep{RateAt: rate, StepAt: step, ScaleAt: scale, SkipAt: nonFinite}, config)
			},
		},
		"GradNormInto": {
			"all":  func() error { return r.o.GradNormInto(r.c, norm, scale, nonFinite, grads, 1) },
			"some": func() error { return r.o.GradNormInto(r.c, nil, scale, nil, grads, float64(*r.step)) },
		},
		"UniformInto": {
			"new bounds": func() error { return r.o.UniformInto(r.c, r.out, ops.Random{Seed: 1}, 0, float64(*r.step)) },
			"half":       func() error { return r.o.UniformInto(r.c, r.half, ops.Random{Seed: uint64(*r.step)}, 0, 1) }, //nolint:gosec // small
		},
		"NormalInto": {"strided": func() error { return r.o.NormalInto(r.c, r.strided, ops.Random{Offset: 7, Ahead: ahead}, 0, 1) }},
	}
}
