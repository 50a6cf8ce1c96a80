package attention_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda/gemm"
)

// offsets returns the begins of sequences with those lengths, and the end.
func offsets(lengths ...int64) (all []int32, total, longest int64) {
	all = append(all, 0)
	for _, n := range lengths {
		total += n
		longest = max(longest, n)
		all = append(all, int32(total))
	}
	return all, total, longest
}

// Sequences of different lengths, one after the other, have the results that each has alone, and gradients. A length of 0 is
// one.
func TestOffsets(t *testing.T) {
	r := newRig(t)
	for n, causal := range []bool{false, true} {
		p := attention.Problem{Batch: 5, Heads: 4, KeyHeads: 2, Dim: 64, Type: gemm.BFloat16, Causal: causal}
		queries, keys := []int64{70, 0, 3, 129, 1}, []int64{70, 5, 0, 64, 131}
		q, allQueries, longestQuery := offsets(queries...)
		k, allKeys, longestKey := offsets(keys...)
		p.Queries, p.Keys, p.AllQueries, p.AllKeys = longestQuery, longestKey, allQueries, allKeys
		flat := p
		flat.Batch, flat.Queries, flat.Keys = 1, allQueries, allKeys
		b := r.backward(r.forward(flat, n == 0), n == 1)
		b.Problem = p
		b.QueryOffsets, b.KeyOffsets = r.numbers(q...), r.numbers(k...)
		b.run(r)
		b.checkSequences(r, q, k)
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// checkSequences compares the rows of each sequence with the definition.
func (b *backward) checkSequences(r *rig, q, k []int32) {
	r.Helper()
	b.Scale = 1 / math.Sqrt(float64(b.Dim))
	x := b.forward
	o, lse, now := r.read(x.o), r.read(x.lse), [3][]byte{r.read(b.dq), r.read(b.dk), r.read(b.dv)}
	group := x.Heads / x.KeyHeads
	for keyHead := range x.KeyHeads {
		keys, values := x.rowsOf(x.k, 0, keyHead, x.AllKeys), x.rowsOf(x.v, 0, keyHead, x.AllKeys)
		dk, dv := zeros(x.AllKeys, x.Dim), zeros(x.AllKeys, x.Dim)
		for h := keyHead * group; h < (keyHead+1)*group; h++ {
			var dq [][]float64
			for s := range x.Batch {
				from, end := k[s], k[s+1]
				for i := q[s]; i < q[s+1]; i++ {
					query := x.q.row(0, h, int64(i))
					row := attend(query, keys[from:end], values[from:end], seen(x.Causal, int64(i-q[s]), int64(q[s+1]-q[s]), int64(end-from)), x.Scale, x.Dim)
					x.checkRow(r, o, lse, row, 0, h, int64(i))
					dq = append(dq, row.gradients(query, b.grad.row(0, h, int64(i)), keys[from:end], values[from:end], dk[from:end], dv[from:end], x.Scale))
				}
			}
			b.compare(r, "queries", now[0], b.dq, 0, h, dq)
		}
		b.compare(r, "keys", now[1], b.dk, 0, keyHead, dk)
		b.compare(r, "values", now[2], b.dv, 0, keyHead, dv)
	}
}

// Caches in pages, of which each sequence has so many keys, have the results of keys that follow each other: for one query,
// whose keys are split over blocks, for some, and for many.
func TestPages(t *testing.T) {
	r := newRig(t)
	for n, queries := range []int64{1, 3, 70} {
		for _, dim := range []int64{64, 128} {
			p := attention.Problem{
				Batch: 3, Heads: 4, KeyHeads: 2, Queries: queries, Keys: 640, Dim: dim, Type: types()[n%2], Causal: n > 0,
				PageRows: 16, Pages: 130, PagesPerSequence: 41,
			}
			if queries == 70 {
				p.Keys = 144
			}
			r.pages(p, []int32{1, int32(p.Keys), int32(p.Keys) - 37})
		}
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}

// pages checks the forward pass with a table.
func (r *rig) pages(p attention.Problem, lengths []int32) {
	r.Helper()
	p, err := p.Check()
	require.NoError(r, err)
	x := &forward{Problem: p}
	x.q = r.matrix(p.Type, p.Batch, p.Heads, p.Queries, p.Dim, true, r.random.NormFloat64)
	x.k = r.matrix(p.Type, p.Pages, p.KeyHeads, p.PageRows, p.Dim, true, r.random.NormFloat64)
	x.v = r.matrix(p.Type, p.Pages, p.KeyHeads, p.PageRows, p.Dim, true, r.random.NormFloat64)
	x.outputs(r, true)
	table := make([]int32, p.Batch*p.PagesPerSequence)
	for i, page := range r.random.Perm(len(table)) {
		table[i] = int32(page)
	}
	x.Table, x.KeyLengths = r.numbers(table...), r.numbers(lengths...)
	require.NoError(r, r.a.Forward(r.c, x.Problem, x.Operands))
	o, lse := r.read(x.o), r.read(x.lse)
	for b := range p.Batch {
		for h := range p.Heads {
			var keys, values [][]float64
			for j := range int64(lengths[b]) {
				page := int64(table[b*p.PagesPerSequence+j/p.PageRows])
				keys = append(keys, x.k.row(page, h/2, j%p.PageRows))
				values = append(values, x.v.row(page, h/2, j%p.PageRows))
			}
			for i := range p.Queries {
				x.checkRow(r, o, lse, attend(x.q.row(b, h, i), keys, values, seen(p.Causal, i, p.Queries, int64(lengths[b])), p.Scale, p.Dim), b, h, i)
			}
		}
	}
}
