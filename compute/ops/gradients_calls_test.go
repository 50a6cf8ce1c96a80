package ops_test

import (
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/gemm"
)

func (r operands) gradientsOfFunctions() calls {
	grad, dx, dy, dbias, kept := r.zeros(16, 32), r.zeros(16, 32), r.zeros(16, 32), r.zeros(32), r.zeros(16, 1)
	all := calls{
		"NegBackwardInto": {
			"contiguous": func() error { return r.o.NegBackwardInto(r.c, dx, grad) },
			"strided":    func() error { return r.o.NegBackwardInto(r.c, r.strided, r.half) },
		},
		"ClampBackwardInto": {
			"bounds":    func() error { return r.o.ClampBackwardInto(r.c, dx, grad, r.x, 0, 1) },
			"one bound": func() error { return r.o.ClampBackwardInto(r.c, r.strided, grad, r.half, -0.5, inf) },
			"in place":  func() error { return r.o.ClampBackwardInto(r.c, dx, dx, r.x, 0, 1) },
		},
		"WhereBackwardInto": {
			"same shape":  func() error { return r.o.WhereBackwardInto(r.c, dx, dy, grad, r.mask) },
			"broadcast":   func() error { return r.o.WhereBackwardInto(r.c, kept, dbias, grad, r.mask) },
			"one of both": func() error { return r.o.WhereBackwardInto(r.c, nil, r.one, grad, r.bias) },
		},
	}
	for name, f := range map[string]func(tensor.Context, *tensor.Tensor, *tensor.Tensor, *tensor.Tensor) error{
		"AbsBackwardInto": r.o.AbsBackwardInto, "SqrtBackwardInto": r.o.SqrtBackwardInto, "RsqrtBackwardInto": r.o.RsqrtBackwardInto,
		"ExpBackwardInto": r.o.ExpBackwardInto, "LogBackwardInto": r.o.LogBackwardInto,
	} {
		all[name] = map[string]call{
			"contiguous": func() error { return f(r.c, dx, grad, r.x) },
			"in place":   func() error { return f(r.c, dx, dx, r.x) },
			"strided":    func() error { return f(r.c, r.strided, grad, r.half) },
		}
	}
	return all
}

func (r operands) gradientsOfReductions() calls {
	cube, dcube, dx, dlong := r.zeros(4, 8, 16), r.zeros(4, 8, 16), r.zeros(16, 32), r.zeros(2, r.sizes.columns)
	middle, kept, each, dhalf := r.zeros(8), r.zeros(16, 1), r.zeros(2), r.made(tensor.Float16, 16, 32)
	first, last, outer := []int{0}, []int{-1}, []int{0, -1} // as in reductions
	all := calls{}
	for name, f := range map[string]func(at tensor.Context, dx, grad, x *tensor.Tensor, axes ...int) error{
		"SumBackwardInto": func(at tensor.Context, dx, grad, _ *tensor.Tensor, axes ...int) error {
			return r.o.SumBackwardInto(at, dx, grad, axes...)
		},
		"MeanBackwardInto": func(at tensor.Context, dx, grad, _ *tensor.Tensor, axes ...int) error {
			return r.o.MeanBackwardInto(at, dx, grad, axes...)
		},
		"MaxBackwardInto": r.o.MaxBackwardInto,
		"MinBackwardInto": r.o.MinBackwardInto,
	} {
		all[name] = map[string]call{
			"last axis":    func() error { return f(r.c, dx, r.row, r.x, last...) },
			"first axis":   func() error { return f(r.c, dx, r.bias, r.x, first...) },
			"several axes": func() error { return f(r.c, dcube, middle, cube, outer...) },
			"all":          func() error { return f(r.c, dx, r.one, r.x) },
			"kept":         func() error { return f(r.c, r.strided, kept, r.x, last...) },
			"long rows":    func() error { return f(r.c, dlong, each, r.long, last...) },
			"16 bits":      func() error { return f(r.c, dhalf, r.row, r.half, last...) },
		}
	}
	return all
}

func (r operands) gradientsOfProducts() calls {
	square, tall, batch, grads := r.zeros(16, 16), r.zeros(32, 16), r.zeros(2, 3, 16, 32), r.zeros(2, 3, 16, 16)
	dx, dy, dbatch, part, dpart := r.zeros(16, 32), r.zeros(32, 16), r.zeros(2, 3, 16, 32), r.zeros(2, 1, 32, 16), r.zeros(2, 1, 32, 16)
	turned, err := r.y.Transpose(0, 1)
	require.NoError(r, err)
	dyTurned, err := r.zeros(16, 32).Transpose(0, 1)
	require.NoError(r, err)
	apart, err := r.zeros(3, 2, 16, 16).Transpose(0, 1)
	require.NoError(r, err)
	half, halfBatch, dhalf := r.made(tensor.BFloat16, 32, 16), r.made(tensor.BFloat16, 2, 3, 16, 32), r.made(tensor.BFloat16, 2, 1, 32, 16)
	halfGrads, halfPart := r.made(tensor.BFloat16, 2, 3, 16, 16), r.made(tensor.BFloat16, 2, 1, 32, 16)
	back := func(dx, dy, grad, x, y *tensor.Tensor, how ops.Product) call {
		return func() error {
			_, err := r.o.MatmulBackwardInto(r.c, dx, dy, grad, x, y, how)
			return err
		}
	}
	kernels := ops.Product{Choice: matmul.Own}
	return calls{"MatmulBackwardInto": {
		"matrices":           back(dx, dy, square, r.x, tall, kernels),
		"any way":            back(dx, dy, square, r.x, tall, ops.Product{}),
		"transposed":         back(dx, dyTurned, square, r.x, turned, kernels),
		"one of both":        back(nil, dy, square, r.x, tall, kernels),
		"strided":            back(r.strided, dy, square, r.x, tall, kernels),
		"shared weight":      back(dbatch, dy, grads, batch, tall, kernels),
		"shared, lies apart": back(nil, dy, apart, batch, tall, kernels),
		"shared on the left": back(dx, dpart, r.zeros(2, 1, 16, 16), r.x, part, kernels),
		"batch in parts":     back(dbatch, dpart, grads, batch, part, kernels),
		"rounded to 16 bits": back(dbatch, dpart, grads, batch, part, ops.Product{Choice: matmul.Own, Precision: gemm.RoundedBF16}),
		"16 bits in parts":   back(halfBatch, dhalf, halfGrads, r.made(tensor.BFloat16, 2, 3, 16, 32), halfPart, kernels),
		"other types":        back(dbatch, half, grads, batch, r.made(tensor.BFloat16, 32, 16), kernels),
	}}
}
