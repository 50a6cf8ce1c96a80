package ops_test

import (
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

func (r operands) attention() calls {
	of := tensor.Float16
	rows, keys := r.made(of, 2, 2, 3, 64), r.made(of, 2, 1, 5, 64)
	many, one, long := r.made(of, 1, 1, 70, 64), r.made(of, 1, 1, 1, 64), r.made(of, 1, 1, 600, 64)
	out, stats := r.made(of, 2, 2, 3, 64), r.made(tensor.Float32, 2, 2, 3)
	dq, dk, dv := r.made(of, 2, 2, 3, 64), r.made(of, 2, 1, 5, 64), r.made(of, 2, 1, 5, 64)
	stepped := func(of tensor.Type, shape ...int) *tensor.Tensor { // whose elements have gaps
		last := len(shape) - 1
		shape[last] *= 2
		x, err := r.made(of, shape...).Slice(last, 0, shape[last], 2)
		require.NoError(r, err)
		return x
	}
	strided := stepped(of, 2, 2, 3, 64)
	gaps, gapsDQ, gapsDK, gapsDV := stepped(of, 2, 2, 3, 64), stepped(of, 2, 2, 3, 64), stepped(of, 2, 1, 5, 64), stepped(of, 2, 1, 5, 64)
	apart := func(f func(q *tensor.Tensor) error, q *tensor.Tensor) call { return func() error { return f(q) } }
	forward := func(q *tensor.Tensor) error {
		return r.o.AttentionInto(r.c, out, stats, q, keys, keys, ops.AttentionConfig{})
	}
	backward := func(q *tensor.Tensor) error {
		return r.o.AttentionBackwardInto(r.c, dq, dk, dv, rows, out, stats, q, keys, keys, ops.AttentionConfig{Causal: true})
	}
	lengths := ops.AttentionConfig{} // not a tensor that is filled at random: a length above the keys traps
	var err error
	lengths.KeyLengths, err = tensor.Zeros(r.s, tensor.Int32, 1)
	require.NoError(r, err)
	manyOut, oneOut := r.made(of, 1, 1, 70, 64), r.made(of, 1, 1, 1, 64)
	return calls{
		"AttentionInto": {
			"few queries":     apart(forward, rows),
			"strided queries": apart(forward, strided),
			"strided output": func() error {
				return r.o.AttentionInto(r.c, gaps, stats, rows, keys, keys, ops.AttentionConfig{})
			},
			"many queries": func() error {
				return r.o.AttentionInto(r.c, manyOut, nil, many, many, many, ops.AttentionConfig{Causal: true})
			},
			"keys in parts":    func() error { return r.o.AttentionInto(r.c, oneOut, nil, one, long, long, ops.AttentionConfig{}) },
			"lengths of cache": func() error { return r.o.AttentionInto(r.c, oneOut, nil, one, long, long, lengths) },
		},
		"AttentionBackwardInto": {
			"contiguous": apart(backward, rows), "strided queries": apart(backward, strided),
			"strided outputs": func() error {
				return r.o.AttentionBackwardInto(r.c, gapsDQ, gapsDK, gapsDV, rows, out, stats, rows, keys, keys, ops.AttentionConfig{})
			},
		},
	}
}
