package kernelbench

import (
	"math"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// pageRows are the keys of a page of a cache.
const pageRows = 16

// attention is causal attention of bfloat16: of a shape of sequences, heads, queries, keys and elements of a head. With its
// gradients it is opTrainedAttention. The keys and values of opPagedAttention lie in pages in another order.
func (b *rig) attention(s *tensor.Scope, w workload, shape []int) (*job, error) {
	batch, heads, queries, keys, dim := shape[0], shape[1], shape[2], shape[3], shape[4]
	var all [4]*tensor.Tensor // queries, keys, values, and the gradient of the output
	x := attended{heads: heads, queries: queries, keys: keys, dim: dim}
	how := ops.AttentionConfig{Causal: true}
	if w.Op == opPagedAttention {
		x.pages = batch * keys / pageRows
		if err := x.cache(s, &how, batch); err != nil {
			return nil, err
		}
	}
	for i, rows := range [...]int{queries, keys, keys, queries} {
		flat, values, err := b.repeated(s, batch*heads*rows, dim)
		if err != nil {
			return nil, err
		}
		form := []int{batch, heads, rows, dim}
		if x.pages > 0 && rows == keys {
			form = []int{x.pages, heads, pageRows, dim}
		}
		if all[i], err = flat.Reshape(form...); err != nil {
			return nil, err
		}
		x.numbers[i] = values
	}
	q, k, v, grad := all[0], all[1], all[2], all[3]
	out, lse, err := b.ops.Attention(s, q, k, v, how)
	if err != nil {
		return nil, err
	}
	const tolerance = 1e-2
	j := &job{out: out, tolerance: tolerance, want: x.element}
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

// repeated is a matrix of bfloat16 whose numbers are random and, where there are many, begin again after some millions.
func (b *rig) repeated(s *tensor.Scope, rows, cols int) (*tensor.Tensor, []float32, error) {
	const period = 1<<22 + 1
	n := rows * cols
	if n <= period {
		return b.matrix(s, tensor.BFloat16, rows, cols)
	}
	values := b.random(period)
	rounded := make([]half.BFloat16, n)
	for i, v := range values {
		rounded[i] = half.NewBFloat16(v)
	}
	for at := period; at < n; {
		at += copy(rounded[at:], rounded[:period])
	}
	t, err := tensor.From(s, rounded, rows, cols)
	return t, values, err
}

// attended computes elements of the output from the definition.
type attended struct {
	heads, queries, keys, dim int
	pages                     int          // 0: none
	numbers                   [4][]float32 // of queries, keys, values, and gradients, each again and again
}

// page is the number of the page that is number i of the sequences' pages, one sequence after the other.
func (x *attended) page(i int) int { return x.pages - 1 - i }

// cache makes the table of pages and the lengths of sequences.
func (x *attended) cache(s *tensor.Scope, how *ops.AttentionConfig, batch int) (err error) {
	table, lengths := make([]int32, x.pages), make([]int32, batch)
	for i := range table {
		table[i] = int32(x.page(i)) //nolint:gosec // few
	}
	for i := range lengths {
		lengths[i] = int32(x.keys) //nolint:gosec // few
	}
	if how.Table, err = tensor.From(s, table, batch, x.pages/batch); err != nil {
		return err
	}
	how.KeyLengths, err = tensor.From(s, lengths, batch)
	return err
}

// key is the row of a key, of all rows of keys.
func (x *attended) key(head, j int) int {
	if x.pages == 0 {
		return head*x.keys + j
	}
	sequence := head / x.heads
	return (x.page(sequence*x.keys/pageRows+j/pageRows)*x.heads+head%x.heads)*pageRows + j%pageRows
}

func (x *attended) at(of, i int) float64 { return float64(x.numbers[of][i%len(x.numbers[of])]) }

func (x *attended) element(i int) (want, scale float64) {
	row, e := i/x.dim, i%x.dim
	head, query := row/x.queries, row%x.queries
	seen := query + x.keys - x.queries + 1
	total := 0.0
	for j := range seen {
		key, product := x.key(head, j)*x.dim, 0.0
		for n := range x.dim {
			product += x.at(0, row*x.dim+n) * x.at(1, key+n)
		}
		p, v := math.Exp(product/math.Sqrt(float64(x.dim))), x.at(2, key+e)
		total += p
		want += p * v
		scale += p * math.Abs(v)
	}
	return want / total, scale/total + 1
}
