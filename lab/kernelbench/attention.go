package kernelbench

import (
	"math"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// attention is causal attention of bfloat16: of a shape of sequences, heads, queries, keys and elements of a head. With its
// gradients it is opTrainedAttention.
func (b *rig) attention(s *tensor.Scope, w workload, shape []int) (*job, error) {
	heads := shape[0] * shape[1]
	queries, keys, dim := shape[2], shape[3], shape[4]
	var all [4]*tensor.Tensor // queries, keys, values, and the gradient of the output
	var numbers [4][]float32
	for i, rows := range [...]int{queries, keys, keys, queries} {
		flat, values, err := b.matrix(s, tensor.BFloat16, heads*rows, dim)
		if err != nil {
			return nil, err
		}
		if all[i], err = flat.Reshape(shape[0], shape[1], rows, dim); err != nil {
			return nil, err
		}
		numbers[i] = values
	}
	q, k, v, grad := all[0], all[1], all[2], all[3]
	how := ops.AttentionConfig{Causal: true}
	out, lse, err := b.ops.Attention(s, q, k, v, how)
	if err != nil {
		return nil, err
	}
	const tolerance = 1e-2
	j := &job{out: out, tolerance: tolerance, want: attended(numbers, queries, keys, dim)}
	j.run = func() error { return b.ops.AttentionInto(b.c, out, lse, q, k, v, how) }
	if w.Op != opTrainedAttention {
		return j, nil
	}
	dq, dk, dv, err := b.ops.AttentionBackward(s, grad, out, lse, q, k, v, how)
	if err != nil {
		return nil, err
	}
	forward := j.run
	j.run = func() error {
		if err := forward(); err != nil {
			return err
		}
		return b.ops.AttentionBackwardInto(b.c, dq, dk, dv, grad, out, lse, q, k, v, how)
	}
	return j, nil
}

// attended computes an element of the output from the definition.
func attended(of [4][]float32, queries, keys, dim int) func(i int) (want, scale float64) {
	return func(i int) (want, scale float64) {
		row, e := i/dim, i%dim
		head, query := row/queries, row%queries
		seen := query + keys - queries + 1
		total := 0.0
		for j := range seen {
			key, product := (head*keys+j)*dim, 0.0
			for n := range dim {
				product += float64(of[0][row*dim+n]) * float64(of[1][key+n])
			}
			p, v := math.Exp(product/math.Sqrt(float64(dim))), float64(of[2][key+e])
			total += p
			want += p * v
			scale += p * math.Abs(v)
		}
		return want / total, scale/total + 1
	}
}
